<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\Backoff;

/** How often a job is tried before it is among the dead letters, and after which pauses. */
final class JobRetryPolicy
{
    private readonly Backoff $backoff;

    /**
     * @param int   $tries    how often it may throw or run for too long; 1 for no second try
     * @param int   $crashes  how often its worker or its agent may die of it
     * @param float $delay    seconds before the second try
     * @param float $factor   what each further delay is multiplied with
     * @param float $maxDelay seconds that a delay never exceeds
     * @param float $jitter   share of a delay that is random: at 1.0 it is any length up to the whole
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly int $tries = 5,
        public readonly int $crashes = 3,
        public readonly float $delay = 1.0,
        public readonly float $factor = 4.0,
        public readonly float $maxDelay = 600.0,
        public readonly float $jitter = 0.5,
    ) {
        if ($tries < 1 || $crashes < 1 || $tries > 1000 || $crashes > 1000) {
            throw new \ValueError('A job is tried 1 to 1,000 times, and may crash as often');
        }
        $this->backoff = new Backoff($delay, $factor, $maxDelay, $jitter);
    }

    /** One try and nothing more, as a {@see \Spindle\Worker\WorkerPool} has it without retries. */
    public static function none(): self
    {
        return new self(tries: 1, crashes: 1);
    }

    /**
     * @param int $fails so far, at least 1
     *
     * @return float seconds; exponential backoff with jitter
     */
    public function delayAfter(int $fails): float
    {
        return $this->backoff->after($fails);
    }
}
