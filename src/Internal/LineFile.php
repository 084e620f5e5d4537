<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Appends lines to a stream. Lines are lost if the disk is full, or if the reader of a pipe or socket is too slow. */
final class LineFile
{
    /** Whether the last line is incomplete, so that the next write must begin with a line break. */
    private bool $isIncomplete = false;

    /**
     * @param resource $stream
     * @param PipeWriter|null $writer writes to the stream; needed for a pipe or socket in blocking mode
     */
    public function __construct(private readonly mixed $stream, private readonly ?PipeWriter $writer = null) {}

    /**
     * Creates an instance for standard error. Keeps the blocking mode of descriptor 2, which other processes may share.
     * If standard error is a pipe, opens the pipe a second time. The second descriptor is non-blocking, and shares its
     * mode with no other process. So only writes to a terminal or a file can block.
     */
    public static function standardError(): self
    {
        $own = FileType::of(\STDERR) === FileType::Pipe
            ? Warnings::suppressed(static fn(): mixed => fopen('/proc/self/fd/2', 'ane'))
            : false;

        return $own !== false ? new self($own) : new self(\STDERR, new PipeWriter(\STDERR));
    }

    /** @return string|null why the line was not written completely; null on success */
    public function append(string $line): ?string
    {
        $bytes = ($this->isIncomplete ? "\n" : '') . "{$line}\n";
        if (!\is_resource($this->stream)) {
            return 'it was closed';
        }
        error_clear_last();
        $written = $this->writer?->write($bytes) ?? (int) FileSizeLimit::write($this->stream, $bytes);
        if ($written === \strlen($bytes)) {
            $this->isIncomplete = false;

            return null;
        }
        $this->isIncomplete = $this->isIncomplete || $written > 0;

        return error_get_last()['message'] ?? 'its reader is too slow';
    }
}
