<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Divides records among jobs. Each job gets the values of its records, but no standard input. */
final class ValueInputs implements JobInputs
{
    private const LOOKAHEAD = 256;

    /** Lookahead if a job gets as many values as fit into a command. It is small, as such jobs need much memory. */
    private const LOOKAHEAD_OF_LARGE_JOBS = 1;

    public function __construct(
        private readonly InputSources $sources,
        private readonly Packing $packing,
        private readonly JobFormat $format,
    ) {}

    public function count(InputWait $wait): ?int
    {
        $records = $this->sources->count($wait);
        $maxRecords = $this->packing->maxRecords;
        $isExact = $maxRecords !== null && !$this->packing->isSpread;

        return $records === null || !$isExact ? null : (int) ceil($records / max(1, $maxRecords));
    }

    /** Returns the name of the record if each job has one record of one source; otherwise the name of the job. */
    public function nameOf(int $number): string
    {
        return ($this->packing->isOneByOne() ? $this->sources->recordName() : 'job') . " {$number}";
    }

    public function lookahead(): int
    {
        return $this->packing->maxRecords === null ? self::LOOKAHEAD_OF_LARGE_JOBS : self::LOOKAHEAD;
    }

    public function jobs(InputWait $wait, \Closure $concurrency): \Generator
    {
        $source = $this->packing->isOneByOne() ? $this->sources->plainSource() : null;
        if ($source !== null) {
            foreach ($source->records($wait) as $number => $record) {
                yield $number => JobValues::of([$record]);
            }

            return;
        }
        $number = 0;
        foreach ($this->packed($wait, $concurrency) as $values) {
            if ($wait->isStopped()) {
                return;
            }
            yield ++$number => $values;
        }
    }

    public function withInput(InputJob $job): InputJob
    {
        return $job;
    }

    public function describe(string $command): string
    {
        return $command;
    }

    public function finished(InputJob $job): void {}

    public function close(): void {}

    /**
     * @param \Closure(): int $concurrency
     *
     * @return \Generator<int, JobValues>
     */
    private function packed(InputWait $wait, \Closure $concurrency): \Generator
    {
        $source = $this->format->addsRecordsUnchanged() && $this->packing->maxRecords !== 0
            ? $this->sources->plainSource()
            : null;
        $separator = $source?->textSeparator();

        return $source === null || $separator === null
            ? $this->packing->jobs($this->sources->rows($wait), $this->format, $concurrency)
            : (new TextPacking($this->packing, $separator, $this->format))->jobs($source->texts($wait), $concurrency);
    }
}
