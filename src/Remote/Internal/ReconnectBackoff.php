<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\Async\Condition;
use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerUnavailableException;

/** Retries a request while the engine is not available. The pauses grow to 2 s at most. */
final class ReconnectBackoff
{
    public static function backoff(): Backoff
    {
        return new Backoff(0.05, 2.0, 2.0, 0.5);
    }

    /**
     * Calls $request until it does not throw a {@see BrokerUnavailableException}.
     *
     * @template T
     *
     * @param float             $seconds seconds for which the request is retried
     * @param \Closure(bool): T $request gets false in the first call, and true in a retry. Before a retry, the engine
     *                                   has perhaps executed the request already
     *
     * @return T
     *
     * @throws BrokerUnavailableException when a retry would begin more than $seconds after the call
     */
    public static function retry(float $seconds, \Closure $request): mixed
    {
        $backoff = null;
        $end = Clock::now() + $seconds;
        for ($attempt = 1;; ++$attempt) {
            try {
                return $request($attempt > 1);
            } catch (BrokerUnavailableException $failure) {
                $backoff ??= self::backoff();
                $delay = $backoff->after($attempt);
                if (Clock::now() + $delay > $end) {
                    throw $failure;
                }
                (new Condition())->waitFor($delay);
            }
        }
    }
}
