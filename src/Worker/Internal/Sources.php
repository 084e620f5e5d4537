<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Those that a pool has: its submissions, and the loops that are under way. They take turns. */
final class Sources
{
    /** @var array<int, Source> by number; the first one is asked first, and the last one was asked last */
    private array $sources;

    public function __construct(private readonly Submissions $submissions)
    {
        $this->sources = [$submissions->id() => $submissions];
    }

    public function add(MapRun $run): void
    {
        $this->sources[$run->id()] = $run;
    }

    public function remove(MapRun $run): void
    {
        unset($this->sources[$run->id()]);
    }

    /**
     * Tasks for a worker; null when there are none now.
     *
     * @param int  $workers that share what there is
     * @param bool $quick   only of sources whose tasks take little time
     */
    public function next(int $most, int $workers, bool $quick): ?Batch
    {
        foreach ($this->sources as $id => $source) {
            if ($quick && !$source->pace()->isQuick()) {
                continue;
            }
            $batch = $source->take($most, $workers);
            if ($batch !== null) {
                if (\count($this->sources) > 1) {
                    unset($this->sources[$id]);
                    $this->sources[$id] = $source;
                }

                return $batch;
            }
        }

        return null;
    }

    /** How many workers could have a batch now; a large number where there is no telling. */
    public function demand(): int
    {
        $demand = 0;
        foreach ($this->sources as $source) {
            $demand = min(\PHP_INT_MAX >> 1, $demand + min(\PHP_INT_MAX >> 2, $source->demand()));
        }

        return $demand;
    }

    /** Whether somebody may wait for an outcome. */
    public function areOpen(): bool
    {
        return $this->submissions->open() > 0 || \count($this->sources) > 1;
    }

    /** Whether all tasks that were taken in have their outcomes, and no more will be. */
    public function areSettled(): bool
    {
        foreach ($this->sources as $source) {
            if ($source instanceof MapRun && !$source->isSettled()) {
                return false;
            }
        }

        return $this->submissions->open() === 0;
    }

    public function close(): void
    {
        foreach ($this->sources as $source) {
            $source->close();
        }
    }

    public function abort(\Throwable $reason): void
    {
        foreach ($this->sources as $source) {
            $source->abort($reason);
        }
    }
}
