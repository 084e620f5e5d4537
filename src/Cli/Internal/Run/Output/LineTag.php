<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

/** Adds a tag before each line of an output that arrives in pieces. Adds a line feed to an incomplete last line. */
final class LineTag
{
    private readonly string $prefix;
    private bool $atLineStart = true;

    public function __construct(string $tag)
    {
        $this->prefix = "{$tag}\t";
    }

    /**
     * Returns the largest size of a piece that fits into $limit bytes with tags, even if all bytes are line feeds.
     *
     * @return positive-int
     */
    public function maxPieceBytes(int $limit): int
    {
        return max(1, intdiv($limit, \strlen($this->prefix) + 1));
    }

    public function piece(string $bytes): string
    {
        if ($bytes === '') {
            return '';
        }
        $start = $this->atLineStart ? $this->prefix : '';
        $this->atLineStart = $bytes[-1] === "\n";
        $body = $this->atLineStart ? substr($bytes, 0, -1) : $bytes;

        return $start . str_replace("\n", "\n{$this->prefix}", $body) . ($this->atLineStart ? "\n" : '');
    }

    public function end(): string
    {
        $end = $this->atLineStart ? '' : "\n";
        $this->atLineStart = true;

        return $end;
    }
}
