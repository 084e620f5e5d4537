<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Appends lines to a stream without blocking. Lines are lost when the disk is full or a reader is too slow. */
final class LineFile
{
    /** Bytes that a writable pipe accepts without blocking: PIPE_BUF of pipe(7). A socket accepts more. */
    private const PIPE_BUF_BYTES = 4096;

    private const S_IFMT = 0o170000;
    private const S_IFIFO = 0o010000;
    private const S_IFSOCK = 0o140000;

    /** Whether the last line is incomplete, so that the next write must begin with a line break. */
    private bool $isIncomplete = false;

    /**
     * @param resource $stream
     * @param bool     $isBlocking whether a write could block; then each write is preceded by a check
     */
    public function __construct(private readonly mixed $stream, private readonly bool $isBlocking = false) {}

    /**
     * Opens standard error without a change for other processes that use it. A pipe is opened again as non-blocking.
     * Only writes to a terminal or a file can block.
     */
    public static function standardError(): self
    {
        $type = (fstat(\STDERR)['mode'] ?? 0) & self::S_IFMT;
        $own = $type === self::S_IFIFO ? @fopen('/proc/self/fd/2', 'ane') : false;

        return $own !== false
            ? new self($own)
            : new self(\STDERR, \in_array($type, [self::S_IFIFO, self::S_IFSOCK], true));
    }

    /** @return string|null why the line was not written completely; null on success */
    public function append(string $line): ?string
    {
        $bytes = ($this->isIncomplete ? "\n" : '') . "{$line}\n";
        if (!\is_resource($this->stream)) {
            return 'it was closed';
        }
        error_clear_last();
        $written = $this->isBlocking ? $this->writeWithoutBlocking($bytes) : (int) @fwrite($this->stream, $bytes);
        if ($written === \strlen($bytes)) {
            $this->isIncomplete = false;

            return null;
        }
        $this->isIncomplete = $this->isIncomplete || $written > 0;

        return error_get_last()['message'] ?? 'its reader is too slow';
    }

    /** @return int number of bytes that could be written */
    private function writeWithoutBlocking(string $bytes): int
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
