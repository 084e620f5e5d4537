<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

/** A record ends after a text, or before a text, or between two texts. Without both, each byte is a record. */
final class TextEnds implements RecordEnds
{
    private readonly string $separator;

    public function __construct(private readonly string $end, string $start)
    {
        $this->separator = $end . $start;
    }

    public function last(string $text, int $from, int $limit): int
    {
        if ($this->separator === '') {
            return $limit;
        }
        $highest = $limit - \strlen($this->separator);
        $position = $highest < $from ? false : strrpos($text, $this->separator, $highest - \strlen($text));

        return $position === false ? $from : max($from, $position + \strlen($this->end));
    }

    public function next(string $text, int $from, int $limit): ?int
    {
        if ($this->separator === '') {
            return $from < $limit ? $from + 1 : null;
        }
        $position = $this->find($text, $this->end === '' ? $from + 1 : $from);

        return $position === null || $position + \strlen($this->separator) > $limit
            ? null
            : $position + \strlen($this->end);
    }

    /** Returns the first end of a record in a file whose separator begins at $from or later; null for none. */
    public function nextInFile(PartedFile $file, int $from): ?int
    {
        if ($this->separator === '') {
            return $from;
        }
        $overlap = \strlen($this->separator) - 1;
        $text = '';
        foreach ($file->bytes($from) as $bytes) {
            $text .= $bytes;
            $position = $this->find($text, 0);
            if ($position !== null) {
                return $from + $position + \strlen($this->end);
            }
            $from += max(0, \strlen($text) - $overlap);
            $text = $overlap === 0 ? '' : substr($text, -$overlap);
        }

        return null;
    }

    public function removedFrom(string $block): string
    {
        return $this->separator === '' ? $block : str_replace($this->separator, '', $block);
    }

    private function find(string $text, int $from): ?int
    {
        $position = $from > \strlen($text) ? false : strpos($text, $this->separator, $from);

        return $position === false ? null : $position;
    }
}
