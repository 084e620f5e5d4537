<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/**
 * The input of a run: the records of its sources, packed into the values of jobs. Another kind of input, which is not
 * made of values, needs another implementation of {@see jobs()} and {@see count()}.
 */
final class JobInputs
{
    public function __construct(
        private readonly InputSources $sources,
        private readonly Packing $packing,
        private readonly JobFormat $format,
    ) {}

    /** Counts the jobs; null if they can't be counted before the input is read. */
    public function count(): ?int
    {
        $records = $this->sources->count();
        $maxRecords = $this->packing->maxRecords;
        $isExact = $maxRecords !== null && !$this->packing->isSpread;

        return $records === null || !$isExact ? null : (int) ceil($records / max(1, $maxRecords));
    }

    /** Returns what a message calls a job: the record, if each job has one record of one source. */
    public function nameOf(int $number): string
    {
        return ($this->packing->isOneByOne() ? $this->sources->recordName() : 'job') . " {$number}";
    }

    /**
     * Yields the values of each job. Ends early when $wait is stopped. Can be called once.
     *
     * @param \Closure(): int $concurrency number of jobs that run at once
     *
     * @return \Generator<int, list<string>> by number, from 1
     *
     * @throws UsageException when the input can't be read, or a record does not fit into a command
     */
    public function jobs(InputWait $wait, \Closure $concurrency): \Generator
    {
        $source = $this->packing->isOneByOne() ? $this->sources->plainSource() : null;
        if ($source !== null) {
            foreach ($source->records($wait) as $number => $record) {
                yield $number => [$record];
            }

            return;
        }
        $rows = $this->sources->rows($wait);
        $number = 0;
        foreach ($this->packing->jobs($rows, $this->format, $concurrency) as $values) {
            if ($wait->isStopped()) {
                return;
            }
            yield ++$number => $values;
        }
    }
}
