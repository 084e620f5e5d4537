<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

final class LineBuffer
{
    /** Largest number of bytes to keep of an incomplete line. A longer line is printed in several pieces. */
    private const MAX_BYTES = 4 << 20;

    /** Maximum bytes that {@see add()} returns for one of the {@see parts()}: its lines with their tags. */
    private const MAX_TAGGED_BYTES = 16 << 20;

    private readonly ?LineTag $tag;
    /** Number of bytes that {@see LineOutput} is printing, and that stay in memory until they are written. */
    public int $printedBytes = 0;

    private string $rest = '';
    public int $length = 0;

    public function __construct(?string $tag)
    {
        $this->tag = $tag === null ? null : new LineTag($tag);
    }

    /** @return list<string> the bytes in parts that are small enough for {@see add()}, because a tag can be long */
    public function parts(string $bytes): array
    {
        return $this->tag === null ? [$bytes] : str_split($bytes, $this->tag->maxPieceBytes(self::MAX_TAGGED_BYTES));
    }

    public function heldBytes(): int
    {
        return \strlen($this->rest) + $this->printedBytes;
    }

    /** Adds bytes. Returns the lines that are complete, with their tags; with $isFull, also an incomplete line. */
    public function add(string $bytes, bool $isFull = false): string
    {
        $this->length += \strlen($bytes);
        $end = strrpos($bytes, "\n");
        $end = $end === false ? 0 : $end + 1;
        if ($end === 0 && ($isFull || \strlen($this->rest) + \strlen($bytes) > self::MAX_BYTES)) {
            $end = \strlen($bytes);
        }
        if ($end === 0) {
            $this->rest .= $bytes;

            return '';
        }
        $lines = $this->rest . substr($bytes, 0, $end);
        $this->rest = substr($bytes, $end);

        return $this->tagged($lines);
    }

    /** Returns the incomplete last line if the output of the job has ended without a line feed; else ''. */
    public function end(): string
    {
        $rest = $this->tagged($this->rest);
        $this->rest = '';

        return $rest . $this->tag?->end();
    }

    private function tagged(string $lines): string
    {
        return $this->tag?->piece($lines) ?? $lines;
    }
}
