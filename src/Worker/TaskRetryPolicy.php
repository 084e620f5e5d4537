<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Internal\Backoff;
use Spindle\Internal\NumberRange;

/**
 * Which failures of tasks are tried again, how often, and after which pause. A task that was cancelled, whose arguments
 * or result can't travel, or of which items were yielded already, is not.
 */
final class TaskRetryPolicy
{
    private readonly Backoff $backoff;

    /**
     * @param int                                  $retries    further attempts after the first; 0 for none
     * @param bool                                 $onCrash    when its worker ended; a task that ended two is not tried again
     * @param bool                                 $onTimeout  when it ran for too long
     * @param bool|list<class-string<\Throwable>>  $onThrow    when it threw: anything, nothing, or one of these
     * @param float                                $delay      seconds before the first retry; 0 for none
     * @param float                                $factor     what each further delay is multiplied with
     * @param float                                $maxDelay   seconds that a delay never exceeds
     * @param float                                $jitter     share of a delay that is random: at 1.0 it is any length up to the whole
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly int $retries,
        public readonly bool $onCrash = true,
        public readonly bool $onTimeout = true,
        public readonly bool|array $onThrow = true,
        public readonly float $delay = 0.1,
        public readonly float $factor = 2.0,
        public readonly float $maxDelay = 60.0,
        public readonly float $jitter = 0.5,
    ) {
        NumberRange::count('The number of retries', $retries, 0);
        $this->backoff = new Backoff($delay, $factor, $maxDelay, $jitter);
    }

    /**
     * @param int $attempts made so far, at least 1
     * @param int $crashes  of workers in which it ran
     */
    public function wants(TaskException $failure, int $attempts, int $crashes): bool
    {
        return $attempts <= $this->retries && match (true) {
            $failure instanceof WorkerCrashedException => $this->onCrash && $crashes < 2,
            $failure instanceof TaskTimeoutException => $this->onTimeout,
            $failure instanceof TaskFailedException => \is_bool($this->onThrow) ? $this->onThrow : $failure->thrown->isA(...$this->onThrow),
            default => false,
        };
    }

    /**
     * @param int $attempts made so far, at least 1
     *
     * @return float seconds before the next; exponential backoff with jitter
     */
    public function delayAfter(int $attempts): float
    {
        return $this->backoff->after($attempts);
    }
}
