<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * Jobs that wait for a slot, in lanes: the next one is the first of the lane whose turn it is, so that a run with few
 * commands does not wait behind one with many.
 */
final class WaitingJobs
{
    /** @var array<int, non-empty-array<int, Job>> by lane and id; the lane whose turn it is comes first */
    private array $lanes = [];

    /** @var array<int, int> lane by id */
    private array $laneOf = [];

    public function add(Job $job): void
    {
        $this->laneOf[$job->id] = $job->lane;
        $this->lanes[$job->lane][$job->id] = $job;
    }

    public function isEmpty(): bool
    {
        return $this->lanes === [];
    }

    /** Takes out the next one and puts its lane behind the others; there must be one. */
    public function next(): Job
    {
        $lane = array_key_first($this->lanes) ?? throw new \LogicException('No job waits');

        return $this->takeFrom($lane, array_key_first($this->lanes[$lane]));
    }

    /** Puts back the one that was taken out last: it is the next one again. */
    public function putBack(Job $job): void
    {
        $lane = $job->lane;
        $others = $this->lanes[$lane] ?? [];
        $this->lanes = [$lane => [$job->id => $job] + $others] + $this->lanes;
        $this->laneOf[$job->id] = $lane;
    }

    /** @return bool whether it was there */
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

    private function takeFrom(int $lane, int $id): Job
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
