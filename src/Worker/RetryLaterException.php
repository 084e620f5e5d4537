<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Internal\NumberRange;
use Spindle\SpindleException;

/**
 * Thrown by a task that wants to run again later, for example after an HTTP response with the status 429.
 *
 * A {@see WorkerPool} with retries, and the agents of a {@see \Spindle\Remote\RemoteExecutor}, run the task again after
 * the delay. This counts neither as an attempt nor as a failure. Other executors, and pools without retries, report the
 * exception to the caller. For a generator task, pools always report it, and agents report it after the first item.
 *
 * A task can be postponed any number of times within MAX_TOTAL_SECONDS of its first RetryLaterException. After that,
 * the exception counts as a failed attempt, so the retry policy decides. The next attempt waits for at least $seconds.
 */
final class RetryLaterException extends \RuntimeException implements SpindleException
{
    /** Seconds after the first RetryLaterException of a task until such an exception counts as a failed attempt. */
    public const MAX_TOTAL_SECONDS = 86_400.0;

    private const MAX_DELAY_SECONDS = 31_622_400.0;

    /**
     * @param float  $seconds delay before the next run, from 0 to 31,622,400 (366 days). The code of the exception is
     *                        this delay in milliseconds
     * @param string $reason  for logs and dead letters
     *
     * @throws \ValueError when the delay is out of range
     */
    public function __construct(public readonly float $seconds, string $reason = '', ?\Throwable $previous = null)
    {
        if (!($seconds >= 0 && $seconds <= self::MAX_DELAY_SECONDS)) {
            throw new \ValueError(
                'The delay before the next run of a task must be from 0 to 31,622,400 seconds (366 days), not '
                    . NumberRange::text($seconds),
            );
        }
        // Another process has only the data of a Thrown object, so the delay is also the code.
        parent::__construct(
            "The task asked to run again in {$seconds} s" . ($reason === '' ? '' : ": {$reason}"),
            (int) ceil($seconds * 1000),
            $previous,
        );
    }

    /** @internal Returns the delay in seconds if the exception is a RetryLaterException; otherwise null. */
    public static function delayOf(Thrown $thrown): ?float
    {
        return $thrown->isA(self::class) && \is_int($thrown->code)
            ? max(0.0, min(self::MAX_DELAY_SECONDS, $thrown->code / 1000))
            : null;
    }
}
