<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

/** Lines go to the end of it, each in one write, which never waits: what is full or too slow loses them. */
final class LineFile
{
    /** Whether the last line was written in part: the next one must not be taken for its end. */
    private bool $torn = false;

    /** @param resource $stream */
    public function __construct(private readonly mixed $stream) {}

    /** @return string|null why it was not written; null when it was */
    public function append(string $line): ?string
    {
        $bytes = ($this->torn ? "\n" : '') . "{$line}\n";
        if (!\is_resource($this->stream)) {
            return 'it was closed';
        }
        error_clear_last();
        $written = (int) @fwrite($this->stream, $bytes);
        if ($written === \strlen($bytes)) {
            $this->torn = false;

            return null;
        }
        $this->torn = $this->torn || $written > 0;

        return error_get_last()['message'] ?? 'its reader is too slow';
    }
}
