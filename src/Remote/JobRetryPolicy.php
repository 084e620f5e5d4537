<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\Backoff;

/** The number of attempts before a job becomes a dead letter, and the pauses between them. */
final class JobRetryPolicy
{
    private readonly Backoff $backoff;

    /**
     * @param int   $attempts attempts that may throw or exceed the time limit; 1 for no retry
     * @param int   $crashes  attempts in which the job's worker or agent may crash
     * @param float $delay    seconds before the second attempt
     * @param float $factor   by which each further delay is multiplied
     * @param float $maxDelay longest delay in seconds
     * @param float $jitter   random fraction of a delay: at 1.0 the delay has any length up to the whole
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly int $attempts = 5,
        public readonly int $crashes = 3,
        public readonly float $delay = 1.0,
        public readonly float $factor = 4.0,
        public readonly float $maxDelay = 600.0,
        public readonly float $jitter = 0.5,
    ) {
        if ($attempts < 1 || $crashes < 1 || $attempts > 1000 || $crashes > 1000) {
            throw new \ValueError('The attempts and the crashes of a job must be from 1 to 1,000');
        }
        $this->backoff = new Backoff($delay, $factor, $maxDelay, $jitter);
    }

    /** Returns a policy of a single attempt, like a {@see \Spindle\Worker\WorkerPool} without retries. */
    public static function none(): self
    {
        return new self(attempts: 1, crashes: 1);
    }

    /**
     * @param int $failures failed attempts so far, at least 1
     *
     * @return float seconds; exponential backoff with jitter
     */
    public function delayAfter(int $failures): float
    {
        return $this->backoff->after($failures);
    }
}
