<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Writes a tag before each line of an output that comes in pieces, and ends its last line. */
final class LineTag
{
    private readonly string $prefix;
    private bool $atStart = true;

    public function __construct(string $tag)
    {
        $this->prefix = "{$tag}\t";
    }

    /** Bytes of output that the tag makes no larger than this, in bytes, even if all of them are ends of lines. */
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
