<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Writes a tag before each line of an output that arrives in pieces, and ends the last line. */
final class LineTag
{
    private readonly string $prefix;
    private bool $atStart = true;

    public function __construct(string $tag)
    {
        $this->prefix = "{$tag}\t";
    }

    /** Returns how many bytes of output have at most $most bytes with tags, even if every byte ends a line. */
    public function pieceSize(int $most): int
    {
        return max(1, intdiv($most, \strlen($this->prefix) + 1));
    }

    public function piece(string $bytes): string
    {
        if ($bytes === '') {
            return '';
        }
        $start = $this->atStart ? $this->prefix : '';
        $this->atStart = $bytes[-1] === "\n";
        $body = $this->atStart ? substr($bytes, 0, -1) : $bytes;

        return $start . str_replace("\n", "\n{$this->prefix}", $body) . ($this->atStart ? "\n" : '');
    }

    public function end(): string
    {
        $end = $this->atStart ? '' : "\n";
        $this->atStart = true;

        return $end;
    }
}
