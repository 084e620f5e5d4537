<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Internal\Backoff;
use Spindle\Internal\NumberRange;

/**
 * Decides which failed tasks are retried, how often, and after which delay. A task is never retried if it was
 * cancelled, if its argument or result cannot be serialized, or once it has returned a generator.
 */
final class TaskRetryPolicy
{
    /** A task that has ended this many workers is not retried again, because it would probably end the next one. */
    private const MAX_CRASHES = 2;
    private const CLASS_PATTERN = '/^(?:\\\\?[a-z_\x80-\xff][\w\x80-\xff]*+)++(?:@anonymous.*)?$/Dis';

    /** @var bool|list<class-string<\Throwable>> */
    public readonly bool|array $onThrow;

    private readonly Backoff $backoff;

    /**
     * @param int                                 $retries   maximum retries of a task; 0 for none
     * @param bool                                $onCrash   whether to retry a task whose worker crashed; at most once
     * @param bool                                $onTimeout whether to retry a task that exceeded its time limit
     * @param bool|class-string<\Throwable>|list<class-string<\Throwable>> $onThrow whether to retry after an exception,
     *                                                       or after which types
     * @param float                               $delay     seconds before the first retry; 0 for no delays
     * @param float                               $factor    factor by which the delay grows with each retry
     * @param float                               $maxDelay  largest delay in seconds
     * @param float                               $jitter    largest share of a delay that is subtracted at random. With
     *                                                       0.5, a pause lasts 50 to 100 % of the delay
     *
     * @throws \ValueError when a number is out of its range, or a type is not the name of a class
     */
    public function __construct(
        public readonly int $retries,
        public readonly bool $onCrash = true,
        public readonly bool $onTimeout = true,
        bool|string|array $onThrow = true,
        public readonly float $delay = 0.1,
        public readonly float $factor = 2.0,
        public readonly float $maxDelay = 60.0,
        public readonly float $jitter = 0.5,
    ) {
        NumberRange::checkCount('The number of retries', $retries, 0);
        $types = \is_string($onThrow) ? [$onThrow] : $onThrow;
        if (\is_array($types) && array_filter($types, self::isClassName(...)) !== $types) {
            throw new \ValueError('onThrow must be true, false or names of classes, such as TypeError::class');
        }
        $this->onThrow = $types;
        $this->backoff = new Backoff($delay, $factor, $maxDelay, $jitter);
    }

    /** @param int $crashes number of attempts, including the last one, in which the worker crashed */
    public function shouldRetry(TaskException $failure, int $attempts, int $crashes): bool
    {
        return $attempts <= $this->retries && match (true) {
            $failure instanceof WorkerCrashedException => $this->onCrash && $crashes < self::MAX_CRASHES,
            $failure instanceof TaskTimeoutException => $this->onTimeout,
            $failure instanceof TaskFailedException => \is_bool($this->onThrow)
                ? $this->onThrow
                : $failure->thrown->isA(...$this->onThrow),
            default => false,
        };
    }

    /**
     * Returns whether the only reason against a further attempt is that the task has ended too many workers.
     *
     * @internal
     */
    public function isCrashLimitReached(int $attempts, int $crashes): bool
    {
        return $this->onCrash && $attempts <= $this->retries && $crashes >= self::MAX_CRASHES;
    }

    /** @return float seconds before the next attempt; exponential backoff with jitter */
    public function delayAfter(int $attempts): float
    {
        return $this->backoff->after($attempts);
    }

    private static function isClassName(mixed $type): bool
    {
        return \is_string($type) && preg_match(self::CLASS_PATTERN, $type) === 1;
    }
}
