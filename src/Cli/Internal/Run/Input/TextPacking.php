<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/**
 * Packs records into jobs. The command of a job gets each of its records, unchanged, as one argument. Makes the same
 * jobs as {@see Packing::jobs()}, but faster: adds text with thousands of records in one step, without splitting it.
 */
final class TextPacking
{
    private int $baseBytes = 0;
    private int $baseWords = 0;

    /** Records of the next job, with a separator at the end of each. */
    private string $text = '';

    private int $count = 0;

    /** @param non-empty-string $separator one byte */
    public function __construct(
        private readonly Packing $packing,
        private readonly string $separator,
        private readonly JobFormat $format,
    ) {}

    /**
     * @param \Generator<int, string> $texts       consecutive records, with a separator at the end of each
     * @param \Closure(): int         $concurrency number of jobs that run at the same time
     *
     * @return \Generator<int, JobValues>
     *
     * @throws UsageException when a record does not fit into a command
     */
    public function jobs(\Generator $texts, \Closure $concurrency): \Generator
    {
        $number = 0;
        [$this->baseBytes, $this->baseWords] = $this->format->baseSize($sequence = 1, max(1, $concurrency()));
        foreach ($texts as $text) {
            for ($at = 0; $at < \strlen($text); $at = $end) {
                [$end, $count] = $this->fitting($text, $at);
                if ($this->count + $count === 0) {
                    $end = $this->endOf(1, $text, $at);
                    $count = 1;
                    $bytes = $this->baseBytes + $end - $at;
                    if (!$this->packing->fitsAlone($bytes, $this->baseWords + 1)) {
                        throw $this->packing->tooLong($number + 1, $bytes);
                    }
                }
                $number += $count;
                $this->count += $count;
                $this->text .= substr($text, $at, $end - $at);
                if ($end < \strlen($text) || $this->count === $this->packing->maxRecords) {
                    $values = JobValues::ofText(substr($this->text, 0, -1), $this->separator);
                    $this->text = '';
                    $this->count = 0;
                    yield $values;
                    [$this->baseBytes, $this->baseWords] = $this->format->baseSize(++$sequence, max(1, $concurrency()));
                }
            }
        }
        $jobs = $this->packing->isSpread ? max(1, $concurrency()) : 1;
        $size = (int) ceil($this->count / $jobs);
        for ($at = 0; $at < \strlen($this->text); $at = $end) {
            $end = $this->endOf($size, $this->text, $at);
            yield JobValues::ofText(substr($this->text, $at, $end - $at - 1), $this->separator);
        }
    }

    /** @return array{int, int} end of the records from $at that fit into the next job, and their number */
    private function fitting(string $text, int $at): array
    {
        $bytes = $this->baseBytes + \strlen($this->text);
        $words = $this->baseWords + $this->count;
        $end = min(\strlen($text), $at + max(0, $this->packing->maxBytes - $bytes));
        if ($this->packing->maxRecords !== null) {
            $end = min($end, $this->endOf($this->packing->maxRecords - $this->count, $text, $at));
        }
        $end = $this->lastEnd($text, $end);
        if ($end <= $at) {
            return [$at, 0];
        }
        $count = substr_count($text, $this->separator, $at, $end - $at);
        while ($count > 0 && !$this->packing->fits($bytes + $end - $at, $words + $count)) {
            $end = $this->lastEnd($text, $end - 1);
            --$count;
        }

        return [$end, $count];
    }

    /** Returns the end of the last record that ends at or before $offset; 0 if there is none. */
    private function lastEnd(string $text, int $offset): int
    {
        $separator = $offset === 0 ? false : strrpos($text, $this->separator, $offset - 1 - \strlen($text));

        return $separator === false ? 0 : $separator + 1;
    }

    /** Returns the offset after $count records from $at; the end of the text if it has fewer records. */
    private function endOf(int $count, string $text, int $at): int
    {
        for (; $count > 0 && $at < \strlen($text); --$count) {
            $at = (int) strpos($text, $this->separator, $at) + 1;
        }

        return $at;
    }
}
