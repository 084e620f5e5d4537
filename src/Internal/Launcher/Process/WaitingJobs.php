<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Jobs that wait for a slot, in one lane for each run() or execute() call. Lanes rotate, so small calls start soon. */
final class WaitingJobs
{
    /** @var array<int, non-empty-array<int, LauncherJob>> jobs by lane and id; the lane of the next job comes first */
    private array $lanes = [];

    /** @var array<int, int> lane by job id; the job that has waited longest comes first */
    private array $laneOf = [];

    public function add(LauncherJob $job): void
    {
        $this->laneOf[$job->id] = $job->lane;
        $this->lanes[$job->lane][$job->id] = $job;
    }

    public function isEmpty(): bool
    {
        return $this->lanes === [];
    }

    /** Removes and returns the next job, and moves its lane behind all others. At least one job must be waiting. */
    public function next(): LauncherJob
    {
        $lane = array_key_first($this->lanes) ?? throw new \LogicException('No job waits');
        $job = $this->lanes[$lane][array_key_first($this->lanes[$lane])];
        $job->overtakesOthers = array_key_first($this->laneOf) !== $job->id;

        return $this->takeFrom($lane, $job->id);
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

    /** Undoes the last call of {@see next()}, which must have returned this job. */
    public function putBack(LauncherJob $job): void
    {
        $lane = $job->lane;
        $others = $this->lanes[$lane] ?? [];
        $this->lanes = [$lane => [$job->id => $job] + $others] + $this->lanes;
        $place = [$job->id => $lane];
        $this->laneOf = $job->overtakesOthers ? $this->laneOf + $place : $place + $this->laneOf;
    }

    /** @return bool whether the job was waiting */
    public function remove(int $id): bool
    {
        if (!isset($this->laneOf[$id])) {
            return false;
        }
        $this->takeFrom($this->laneOf[$id], $id);

        return true;
    }

    public function clear(): void
    {
        $this->lanes = $this->laneOf = [];
    }

    /** Removes and returns a job, and moves its lane behind all others. */
    private function takeFrom(int $lane, int $id): LauncherJob
    {
        $jobs = $this->lanes[$lane];
        $job = $jobs[$id];
        // The lane is removed before the job. So only $jobs refers to the array, and unset() does not copy the array.
        unset($this->lanes[$lane], $this->laneOf[$id]);
        unset($jobs[$id]);
        if ($jobs !== []) {
            $this->lanes[$lane] = $jobs;
        }

        return $job;
    }
}
