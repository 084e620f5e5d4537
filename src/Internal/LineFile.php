<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Appends lines to a stream without waiting. Lines are lost when the stream is full or its reader too slow. */
final class LineFile
{
    /** Bytes that fit into a ready pipe: PIPE_BUF of pipe(7). Sockets take more. */
    private const PIPE_BUF_BYTES = 4096;

    private const S_IFMT = 0o170000;
    private const S_IFIFO = 0o010000;
    private const S_IFSOCK = 0o140000;

    /** Whether the last line is incomplete, so that a line break must precede the next one. */
    private bool $isIncomplete = false;

    /**
     * @param resource $stream
     * @param bool     $wouldWait whether writes would wait for room, so that it is checked first
     */
    public function __construct(private readonly mixed $stream, private readonly bool $wouldWait = false) {}

    /** Opens standard error, unchanged for others: a pipe is reopened, non-blocking. Only a terminal can block. */
    public static function standardError(): self
    {
        $type = (fstat(\STDERR)['mode'] ?? 0) & self::S_IFMT;
        $own = $type === self::S_IFIFO ? @fopen('/proc/self/fd/2', 'ane') : false;

        return $own !== false
            ? new self($own)
            : new self(\STDERR, \in_array($type, [self::S_IFIFO, self::S_IFSOCK], true));
    }

    /** @return string|null why the line was not written; null on success */
    public function append(string $line): ?string
    {
        $bytes = ($this->isIncomplete ? "\n" : '') . "{$line}\n";
        if (!\is_resource($this->stream)) {
            return 'it was closed';
        }
        error_clear_last();
        $written = $this->wouldWait ? $this->writeWhatFits($bytes) : (int) @fwrite($this->stream, $bytes);
        if ($written === \strlen($bytes)) {
            $this->isIncomplete = false;

            return null;
        }
        $this->isIncomplete = $this->isIncomplete || $written > 0;

        return error_get_last()['message'] ?? 'its reader is too slow';
    }

    /** @return int number of bytes */
    private function writeWhatFits(string $bytes): int
    {
        $written = 0;
        foreach (str_split($bytes, self::PIPE_BUF_BYTES) as $piece) {
            [$none, $writable] = [null, [$this->stream]];
            $sent = (int) @stream_select($none, $writable, $none, 0) > 0 ? (int) @fwrite($this->stream, $piece) : 0;
            $written += $sent;
            if ($sent < \strlen($piece)) {
                break;
            }
        }

        return $written;
    }
}
