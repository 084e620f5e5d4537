<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\ColumnSeparator;
use Spindle\Cli\Internal\UsageException;

/** Implements --group-by: consecutive lines with the same value in a column are one record. */
final class GroupEnds implements RecordEnds
{
    private readonly ColumnSeparator $separator;

    /**
     * @param string $separator regular expression that separates columns, without delimiters
     * @param int    $column    number of the column, starting at 1
     *
     * @throws UsageException when the regular expression is invalid
     */
    public function __construct(string $separator, private readonly int $column)
    {
        $this->separator = new ColumnSeparator($separator);
    }

    public function last(string $text, int $from, int $limit): int
    {
        $last = $from;
        foreach ($this->ends($text, $from, $limit) as $end) {
            $last = $end;
        }

        return $last;
    }

    public function next(string $text, int $from, int $limit, int $count): ?int
    {
        foreach ($this->ends($text, $from, $limit) as $end) {
            if (--$count === 0) {
                return $end;
            }
        }

        return null;
    }

    public function certain(string $text, int $from): int
    {
        return $from;
    }

    public function withoutSeparators(string $block): string
    {
        return $block;
    }

    /**
     * Yields the ends of records: the start of each complete line with another value than the line before.
     *
     * @return \Generator<int, int> positions in $text, without meaningful keys
     */
    private function ends(string $text, int $from, int $limit): \Generator
    {
        $previous = null;
        while (($end = strpos($text, "\n", $from)) !== false && $end < $limit) {
            $columns = $this->separator->split(substr($text, $from, $end - $from), $this->column + 1);
            $value = $columns[$this->column - 1] ?? '';
            if ($previous !== null && $value !== $previous) {
                yield $from;
            }
            $previous = $value;
            $from = $end + 1;
        }
    }
}
