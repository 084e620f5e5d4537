<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\UsageException;

/**
 * Combines the records of several sources. Linked sources (:::+) form a group, in which row N has record N of each
 * source. Any other source is a group by itself. Each row of a group is combined with each row of the other groups, as
 * in nested loops: the first group is the outermost loop. The rows of the first group are read on demand. The rows of
 * the other groups are needed again for each row of the first group, so temporary files keep these rows.
 */
final class InputSources
{
    private const BYTE_ORDER_MARK = "\u{FEFF}";

    /** @var array<int, RecordSpool> rows of groups that have been read to the end, by the index of the group */
    private array $spools = [];

    /** Whether any source has a record. If no source has one, there are no rows. */
    private bool $hasRecords = false;

    /**
     * @param non-empty-list<non-empty-list<InputSource>> $groups
     * @param bool $repeatsShorter whether a source that ends early starts again, as by --link; if not, the group ends
     * @param bool $isShuffled whether the combinations have a random order, as by --shuf
     */
    public function __construct(
        private readonly array $groups,
        private readonly RecordFields $fields,
        private readonly bool $repeatsShorter = false,
        private readonly bool $isShuffled = false,
    ) {}

    /** Returns the only source; null for several sources, or if options change the records or their order. */
    public function plainSource(): ?InputSource
    {
        $isSingle = \count($this->groups) === 1 && \count($this->groups[0]) === 1;

        return $isSingle && !$this->isShuffled && $this->fields->changesNothing() ? $this->groups[0][0] : null;
    }

    public function recordName(): string
    {
        $source = $this->plainSource();

        return $source === null ? 'job' : $source->recordName;
    }

    public function hasColumns(): bool
    {
        return $this->fields->hasColumns() || \count($this->groups) > 1 || \count($this->groups[0]) > 1;
    }

    /** Returns the number of values in each row; null if the number depends on the columns of each record. */
    public function width(): ?int
    {
        return $this->fields->hasColumns() ? null : array_sum(array_map(\count(...), $this->groups));
    }

    /**
     * Removes the first record of each source.
     *
     * @return list<string> names of columns
     *
     * @throws UsageException when the first record can't be read or split, or is too long
     */
    public function header(): array
    {
        $names = [];
        foreach (array_merge(...$this->groups) as $source) {
            $header = $source->header();
            if ($header === null) {
                continue;
            }
            // Excel begins files with a byte order mark. As in GNU parallel, names have no carriage return at the end.
            $header = str_starts_with($header, self::BYTE_ORDER_MARK) ? substr($header, 3) : $header;
            array_push($names, ...$this->fields->values(rtrim($header, "\r")));
        }

        return $names;
    }

    /** Returns the number of rows; null if it is unknown or exceeds PHP_INT_MAX, or if $wait is stopped. */
    public function count(InputWait $wait): ?int
    {
        $total = 1.0; // as an integer, the product could overflow
        $sum = 0;
        foreach ($this->groups as $group) {
            $counts = array_map(static fn(InputSource $source): ?int => $source->count($wait), $group);
            if (\in_array(null, $counts, true) || !$this->fields->keepsAll()) {
                return null;
            }
            $sum += array_sum($counts);
            $total *= max(1, $this->repeatsShorter ? max($counts) : min($counts));
        }

        return match (true) {
            $sum === 0 => 0,
            $total < \PHP_INT_MAX => (int) $total,
            default => null,
        };
    }

    /**
     * Yields the values of each combination. Ends early when $wait is stopped.
     *
     * @return \Generator<int, list<string>> without meaningful keys
     *
     * @throws UsageException        when the input can't be read
     * @throws OutputFailedException when a temporary file can't be written
     */
    public function rows(InputWait $wait): \Generator
    {
        return $this->isShuffled ? self::shuffled($wait, $this->ordered($wait)) : $this->ordered($wait);
    }

    /** @return \Generator<int, list<string>> */
    private function ordered(InputWait $wait): \Generator
    {
        foreach ($this->combinations($wait, 0) as $row) {
            if (!$this->hasRecords) {
                return;
            }
            yield $row;
        }
    }

    /**
     * @param \Generator<int, list<string>> $rows
     *
     * @return \Generator<int, list<string>>
     */
    private static function shuffled(InputWait $wait, \Generator $rows): \Generator
    {
        $spool = new RecordSpool();
        $order = new ShuffledOrder();
        foreach ($rows as $row) {
            $order->add($spool->add(0, $row));
            $wait->letLoopRun();
        }
        foreach ($order->positions() as $position) {
            yield $spool->at($position);
        }
    }

    /** @return \Generator<int, list<string>> */
    private function combinations(InputWait $wait, int $index): \Generator
    {
        $group = $this->groups[$index] ?? null;
        if ($group === null) {
            return;
        }
        foreach ($this->group($wait, $index, $group) as $row) {
            if ($index === \count($this->groups) - 1) {
                yield $row;
                continue;
            }
            foreach ($this->combinations($wait, $index + 1) as $more) {
                yield [...$row, ...$more];
            }
        }
    }

    /**
     * @param non-empty-list<InputSource> $group
     *
     * @return \Generator<int, list<string>>
     */
    private function group(InputWait $wait, int $index, array $group): \Generator
    {
        if ($index === 0) {
            yield from $this->linked($wait, $group);

            return;
        }
        if (isset($this->spools[$index])) {
            yield from $this->spools[$index]->records();

            return;
        }
        $spool = new RecordSpool();
        foreach ($this->linked($wait, $group) as $row) {
            $spool->add(0, $row);
            yield $row;
        }
        $this->spools[$index] = $spool;
    }

    /**
     * @param non-empty-list<InputSource> $sources
     *
     * @return \Generator<int, list<string>>
     */
    private function linked(InputWait $wait, array $sources): \Generator
    {
        if (\count($sources) === 1) {
            yield from $this->values($wait, $sources[0]);

            return;
        }
        $spools = array_map(static fn(): RecordSpool => new RecordSpool(), $sources);
        $cursors = array_map(fn(InputSource $source): \Generator => $this->values($wait, $source), $sources);
        $hasEnded = array_fill(0, \count($sources), false);
        while (!$wait->isStopped()) {
            $row = [];
            foreach ($cursors as $i => $cursor) {
                if (!$cursor->valid()) {
                    if (!$this->repeatsShorter || $wait->isStopped()) {
                        return;
                    }
                    $hasEnded[$i] = true;
                    $cursors[$i] = $cursor = $spools[$i]->records();
                }
                array_push($row, ...$cursor->current());
            }
            if (!\in_array(false, $hasEnded, true)) {
                return;
            }
            yield $row;
            foreach ($cursors as $i => $cursor) {
                if ($this->repeatsShorter && !$hasEnded[$i] && $cursor->valid()) {
                    $spools[$i]->add(0, $cursor->current());
                }
                $cursor->next();
            }
        }
    }

    /**
     * Yields the values of each record. As in GNU parallel, a source without records counts as a source with one empty
     * value. Otherwise, there would be no combinations with the records of other sources.
     *
     * @return \Generator<int, list<string>>
     */
    private function values(InputWait $wait, InputSource $source): \Generator
    {
        $isEmpty = true;
        foreach ($this->records($wait, $source) as $record) {
            if (!$this->fields->skips($record)) {
                $isEmpty = false;
                $this->hasRecords = true;
                yield $this->fields->values($record);
            }
        }
        if ($isEmpty && !$wait->isStopped()) {
            yield [''];
        }
    }

    /**
     * Yields the records before the record that ends the input (-E). With -L, joins a record that ends with a blank and
     * the record after it.
     *
     * @return \Generator<int, string>
     *
     * @throws UsageException when a record, joined with the records that continue it, is too long
     */
    private function records(InputWait $wait, InputSource $source): \Generator
    {
        $continued = '';
        $number = 0;
        foreach ($source->records($wait) as $record) {
            ++$number;
            if ($this->fields->isEnd($record)) {
                break;
            }
            $continued .= $record;
            if (!$this->fields->isContinued($continued)) {
                yield $continued;
                $continued = '';
            } elseif (\strlen($continued) > RecordSplitter::MAX_RECORD_BYTES) {
                throw InputSource::tooLong($number, ', with the lines that it continues,');
            }
        }
        if ($continued !== '' && !$wait->isStopped()) {
            yield $continued;
        }
    }
}
