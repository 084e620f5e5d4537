<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Jobs that wait for a slot. Lanes take turns, so that a run with few commands does not wait for one with many. */
final class WaitingJobs
{
    /** @var array<int, non-empty-array<int, LauncherJob>> by lane and id; the next lane comes first */
    private array $lanes = [];

    /** @var array<int, int> lane by id */
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

    /** Removes and returns the next job, and moves its lane to the end. There must be a job. */
    public function next(): LauncherJob
    {
        $lane = array_key_first($this->lanes) ?? throw new \LogicException('No job waits');

        return $this->takeFrom($lane, array_key_first($this->lanes[$lane]));
    }

    /** Puts the job back that was removed last, as the next one. */
    public function putBack(LauncherJob $job): void
    {
        $lane = $job->lane;
        $others = $this->lanes[$lane] ?? [];
        $this->lanes = [$lane => [$job->id => $job] + $others] + $this->lanes;
        $this->laneOf[$job->id] = $lane;
    }

    /** @return bool whether it was waiting */
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

    private function takeFrom(int $lane, int $id): LauncherJob
    {
        $jobs = $this->lanes[$lane];
        $job = $jobs[$id];
        unset($this->lanes[$lane], $this->laneOf[$id]); // first, so that the next line copies nothing
        unset($jobs[$id]);
        if ($jobs !== []) {
            $this->lanes[$lane] = $jobs;
        }

        return $job;
    }
}
