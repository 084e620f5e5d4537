<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\Backoff;

/** Sets how often a job is retried, and after which pauses. If the last attempt fails, the job is a dead letter. */
final class JobRetryPolicy
{
    private readonly Backoff $backoff;

    /**
     * @param int   $maxAttempts number of failed attempts after which the job becomes a dead letter (is kept for
     *                           inspection); 1 for no retry. An attempt fails if the task throws or exceeds its
     *                           timeout, but not if it throws a {@see \Spindle\Worker\RetryLaterException}
     * @param int   $maxCrashes  number of crashes of the job's worker or agent after which the job is a dead letter
     * @param float $delay       seconds to wait after the first failed attempt (not after a crash). Then the job joins
     *                           the end of the queue, so the second attempt starts later if other jobs are waiting
     * @param float $factor      ratio of each delay to the delay before it
     * @param float $maxDelay    maximum delay in seconds; the wait in the queue after a delay does not count
     * @param float $jitter      random part of each delay: at 0.5, at least half of the delay remains
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly int $maxAttempts = 5,
        public readonly int $maxCrashes = 3,
        public readonly float $delay = 1.0,
        public readonly float $factor = 4.0,
        public readonly float $maxDelay = 600.0,
        public readonly float $jitter = 0.5,
    ) {
        if ($maxAttempts < 1 || $maxCrashes < 1 || $maxAttempts > 1000 || $maxCrashes > 1000) {
            throw new \ValueError('The maximum attempts and the maximum crashes of a job must be from 1 to 1,000');
        }
        $this->backoff = new Backoff($delay, $factor, $maxDelay, $jitter);
    }

    /**
     * Returns a policy without retries: a failed or crashed job becomes a dead letter immediately. A task has a
     * second attempt only if its agent lacks code that is needed to decode it, because another agent may have the code.
     */
    public static function none(): self
    {
        return new self(maxAttempts: 1, maxCrashes: 1);
    }

    /** Returns the delay in seconds before the next attempt, after $failures (at least 1) failed attempts. */
    public function delayAfter(int $failures): float
    {
        return $this->backoff->after($failures);
    }
}
