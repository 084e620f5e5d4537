<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Sources of a pool: its submissions and the running maps. They are served in rotation. */
final class TaskSources
{
    /** @var array<int, Source> sources by number, the one that waited longest first */
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

    /** @param bool $quick whether to use only sources whose tasks take little time */
    public function next(int $maxTasks, int $workers, bool $quick): ?Batch
    {
        foreach ($this->sources as $id => $source) {
            if ($quick && !$source->sizing()->isQuick()) {
                continue;
            }
            $batch = $source->take($maxTasks, $workers);
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

    /** Returns how many workers could be given a batch now; a large number if the input is of unknown length. */
    public function demand(): int
    {
        $demand = 0;
        foreach ($this->sources as $source) {
            $demand = min(\PHP_INT_MAX >> 1, $demand + min(\PHP_INT_MAX >> 2, $source->demand()));
        }

        return $demand;
    }

    /** Returns whether a caller may be waiting for an outcome. */
    public function areOpen(): bool
    {
        return $this->submissions->openCount() > 0 || \count($this->sources) > 1;
    }

    /** Returns whether all accepted tasks have outcomes, and no map will read more of its input. */
    public function areSettled(): bool
    {
        foreach ($this->sources as $source) {
            if ($source instanceof MapRun && !$source->isSettled()) {
                return false;
            }
        }

        return $this->submissions->openCount() === 0;
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
