<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Jobs whose values are the records of sources. */
final class ValueInputs implements JobInputs
{
    private const LOOKAHEAD = 256;

    public function __construct(
        private readonly InputSources $sources,
        private readonly Packing $packing,
        private readonly JobFormat $format,
    ) {}

    public function count(): ?int
    {
        $records = $this->sources->count();
        $maxRecords = $this->packing->maxRecords;
        $isExact = $maxRecords !== null && !$this->packing->isSpread;

        return $records === null || !$isExact ? null : (int) ceil($records / max(1, $maxRecords));
    }

    /** Returns the name of the record, if each job has one record of one source. */
    public function nameOf(int $number): string
    {
        return ($this->packing->isOneByOne() ? $this->sources->recordName() : 'job') . " {$number}";
    }

    public function lookahead(): int
    {
        return self::LOOKAHEAD;
    }

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

    public function withInput(InputJob $job): InputJob
    {
        return $job;
    }

    public function describe(string $command): string
    {
        return $command;
    }

    public function finished(int $number): void {}

    public function close(): void {}
}
