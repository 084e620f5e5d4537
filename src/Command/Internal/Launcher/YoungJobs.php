<?php

declare(strict_types=1);

namespace Spindle\Command\Internal\Launcher;

use Spindle\Command\Internal\Protocol;

/**
 * Jobs whose output is not listened to yet. A command that is over within milliseconds and writes less than its pipe
 * holds then wakes the launcher once, by its exit, instead of three times; one that fills its pipe waits that long at
 * most, and when one has, the next ones are heard from the start.
 */
final class YoungJobs
{
    /** How long a job is young, in nanoseconds. */
    private const AGE = 20_000_000;

    /** A job that wrote so much, in bytes, is taken for one that had to wait; so many jobs after it are not made to. */
    private const MUCH = 1 << 15;
    private const HEARD_AFTER = 64;

    /** @var array<int, Job> by id, the oldest first */
    private array $jobs = [];

    private int $heard = 0;

    /** @return bool false when the job is to be listened to at once */
    public function add(Job $job): bool
    {
        if ($this->heard > 0 || $job->idleTimeout > 0 || ($job->flags & (Protocol::STREAM_STDOUT | Protocol::STREAM_STDERR)) !== 0) {
            --$this->heard;

            return false;
        }
        $this->jobs[$job->id] = $job;

        return true;
    }

    /** The job is over, and this was its output in bytes. */
    public function remove(Job $job, int $written): void
    {
        unset($this->jobs[$job->id]);
        if ($written >= self::MUCH) {
            $this->heard = self::HEARD_AFTER;
        }
    }

    /**
     * Takes out those that are no longer young, as long as there are any.
     *
     * @param int $deadline on the monotonic clock in nanoseconds, 0 for none; set to when the next one grows up, if that
     *                      is before
     */
    public function next(int &$deadline): ?Job
    {
        foreach ($this->jobs as $id => $job) {
            $end = $job->started + self::AGE;
            if ($end <= hrtime(true)) {
                unset($this->jobs[$id]);

                return $job;
            }
            if ($deadline === 0 || $end < $deadline) {
                $deadline = $end;
            }

            return null;
        }

        return null;
    }
}
