<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * Jobs or commands that wait for a slot, in one lane for each run() or execute() call. Lanes rotate, so that a call
 * with few commands does not wait for all commands of another call.
 *
 * @template T of object{id: int, lane: int}
 */
final class WaitingJobs
{
    /** @var array<int, non-empty-array<int, T>> jobs by lane and id; the lane of the next job comes first */
    private array $lanes = [];

    /** @var array<int, int> lane by job id; the job that has waited longest comes first */
    private array $laneOf = [];

    /** @param T $job */
    public function add(object $job): void
    {
        if ($this->lanes === []) {
            $this->clear(); // a large array keeps its size when it gets empty, and key() would pass over empty places
        }
        $this->laneOf[$job->id] = $job->lane;
        $this->lanes[$job->lane][$job->id] = $job;
    }

    public function isEmpty(): bool
    {
        return $this->lanes === [];
    }

    public function oldest(): ?int
    {
        return key($this->laneOf); // array_key_first() would pass over all removed entries in each call
    }

    /** @return array<int, T> by id */
    public function all(): array
    {
        return array_replace([], ...$this->lanes);
    }

    /**
     * Removes and returns the next job, and moves its lane behind all others. At least one job must be waiting.
     *
     * @return T
     */
    public function next(): object
    {
        $lane = key($this->lanes) ?? throw new \LogicException('No job waits');
        $jobs = $this->lanes[$lane];
        $id = key($jobs);
        $job = $jobs[$id];
        // The lane is removed before the job. So only $jobs refers to the array, and unset() does not copy the array.
        self::removeKey($this->lanes, $lane);
        self::removeKey($this->laneOf, $id);
        self::removeKey($jobs, $id);
        if ($jobs !== []) {
            $this->lanes[$lane] = $jobs;
        }

        return $job;
    }

    public function isAmongNext(int $id, int $count): bool
    {
        $jobs = clone $this;
        while ($count-- > 0 && !$jobs->isEmpty()) {
            if ($jobs->next()->id === $id) {
                return true;
            }
        }

        return false;
    }

    /**
     * Undoes the last call of {@see next()}, which must have returned this job.
     *
     * @param T $job
     */
    public function putBack(object $job, bool $wasOldest): void
    {
        $lane = $job->lane;
        $others = $this->lanes[$lane] ?? [];
        $this->lanes = [$lane => [$job->id => $job] + $others] + $this->lanes;
        $place = [$job->id => $lane];
        $this->laneOf = $wasOldest ? $place + $this->laneOf : $this->laneOf + $place;
    }

    /** @return bool whether the job was waiting */
    public function remove(int $id): bool
    {
        $lane = $this->laneOf[$id] ?? null;
        if ($lane === null) {
            return false;
        }
        self::removeKey($this->laneOf, $id);
        if (\count($this->lanes[$lane]) === 1) {
            self::removeKey($this->lanes, $lane);
        } else {
            self::removeKey($this->lanes[$lane], $id); // @phpstan-ignore assign.propertyType (another job remains)
        }

        return true;
    }

    public function clear(): void
    {
        $this->lanes = $this->laneOf = [];
    }

    /**
     * Removes an entry. Moves the internal pointer off the entry first, because unset() does so only before PHP 8.4.
     *
     * @template V
     *
     * @param array<int, V> $entries
     *
     * @param-out array<int, V> $entries
     */
    private static function removeKey(array &$entries, int $key): void
    {
        if (key($entries) === $key) {
            next($entries);
        }
        unset($entries[$key]);
    }
}
