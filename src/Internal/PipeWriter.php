<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Writes to a stream in blocking mode, but never waits for the reader of a pipe or socket. */
final class PipeWriter
{
    /** Bytes that a writable pipe accepts without blocking: PIPE_BUF of pipe(7). A socket accepts more. */
    private const PIPE_BUF_BYTES = 4096;

    private readonly bool $hasReader;

    /** @param resource $stream */
    public function __construct(private readonly mixed $stream)
    {
        $this->hasReader = \in_array(FileType::of($stream), [FileType::Pipe, FileType::Socket], true);
    }

    /** Writes the bytes that the stream accepts now, and returns their number. Waits only for files and terminals. */
    public function write(string $bytes): int
    {
        if (!$this->hasReader) {
            return (int) FileSizeLimit::write($this->stream, $bytes);
        }
        $written = 0;
        foreach (str_split($bytes, self::PIPE_BUF_BYTES) as $piece) {
            $sent = $this->isWritable() ? (int) Warnings::write($this->stream, $piece) : 0;
            $written += $sent;
            if ($sent < \strlen($piece)) {
                break;
            }
        }

        return $written;
    }

    private function isWritable(): bool
    {
        [$none, $writable] = [null, [$this->stream]];

        return (int) Warnings::suppressed(static fn(): int|false => stream_select($none, $writable, $none, 0)) > 0;
    }
}
