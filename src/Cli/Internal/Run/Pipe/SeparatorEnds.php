<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputWait;

/** A record ends between the texts of --recend and --recstart. If both texts are empty, each byte is a record. */
final class SeparatorEnds implements RecordEnds
{
    private readonly string $separator;

    public function __construct(private readonly string $end, private readonly string $start)
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

        return $position === false || $position < $from ? $from : $position + \strlen($this->end);
    }

    public function next(string $text, int $from, int $limit, int $count): ?int
    {
        if ($this->separator === '') {
            return $from + $count > $limit ? null : $from + $count;
        }
        $highest = $limit - \strlen($this->separator);
        $size = \strlen($this->end);
        $minimum = $size === 0 ? 1 : 0;
        for (; $count > 0; --$count) {
            $position = $from + $minimum > $highest ? false : strpos($text, $this->separator, $from + $minimum);
            if ($position === false || $position > $highest) {
                return null;
            }
            $from = $position + $size;
        }

        return $from;
    }

    /**
     * Returns the end of the record at the first separator that starts at byte $from or later. Returns null if there is
     * none, or when $wait is stopped.
     */
    public function nextInFile(InputWait $wait, PartedFile $file, int $from): ?int
    {
        if ($this->separator === '') {
            return $from;
        }
        $overlap = \strlen($this->separator) - 1;
        $text = '';
        foreach ($file->bytes($wait, $from) as $bytes) {
            $text .= $bytes;
            $position = strpos($text, $this->separator);
            if ($position !== false) {
                return $from + $position + \strlen($this->end);
            }
            $from += max(0, \strlen($text) - $overlap);
            $text = $overlap === 0 ? '' : substr($text, -$overlap);
        }

        return null;
    }

    public function certain(string $text, int $from): int
    {
        return max($from, $this->last($text, $from, \strlen($text)) - \strlen($this->end));
    }

    public function withoutSeparators(string $block): string
    {
        if ($this->separator === '') {
            return $block;
        }
        $text = str_replace($this->separator, '', $block);
        $text = str_starts_with($text, $this->start) ? substr($text, \strlen($this->start)) : $text;
        foreach (["\n", ''] as $rest) { // GNU parallel also removes --recend before a last line feed
            if (str_ends_with($text, $this->end . $rest)) {
                return substr($text, 0, \strlen($text) - \strlen($this->end . $rest)) . $rest;
            }
        }

        return $text;
    }
}
