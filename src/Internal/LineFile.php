<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Lines go to the end of it, each in one write if it can be, which never waits: what is full or too slow loses them. */
final class LineFile
{
    /** So many bytes fit where there is room at all: https://man7.org/linux/man-pages/man7/pipe.7.html (PIPE_BUF), and into a socket many more. */
    private const PIECE = 4096;

    private const TYPE = 0o170000;
    private const PIPE = 0o010000;
    private const SOCKET = 0o140000;

    /** Whether the last line was written in part: the next one must not be taken for its end. */
    private bool $torn = false;

    /**
     * @param resource $stream
     * @param bool     $wouldWait whether a write to it waits for room, so that it has to be looked for
     */
    public function __construct(private readonly mixed $stream, private readonly bool $wouldWait = false) {}

    /**
     * Leaves it as it is for the programs that share it: of a pipe this opens an end of its own, where it may, that does not
     * wait. Only a terminal is waited for.
     */
    public static function standardError(): self
    {
        $type = (fstat(\STDERR)['mode'] ?? 0) & self::TYPE;
        $own = $type === self::PIPE ? @fopen('/proc/self/fd/2', 'ane') : false;

        return $own !== false ? new self($own) : new self(\STDERR, \in_array($type, [self::PIPE, self::SOCKET], true));
    }

    /** @return string|null why it was not written; null when it was */
    public function append(string $line): ?string
    {
        $bytes = ($this->torn ? "\n" : '') . "{$line}\n";
        if (!\is_resource($this->stream)) {
            return 'it was closed';
        }
        error_clear_last();
        $written = $this->wouldWait ? $this->writeWhatFits($bytes) : (int) @fwrite($this->stream, $bytes);
        if ($written === \strlen($bytes)) {
            $this->torn = false;

            return null;
        }
        $this->torn = $this->torn || $written > 0;

        return error_get_last()['message'] ?? 'its reader is too slow';
    }

    /** @return int bytes */
    private function writeWhatFits(string $bytes): int
    {
        $written = 0;
        foreach (str_split($bytes, self::PIECE) as $piece) {
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
