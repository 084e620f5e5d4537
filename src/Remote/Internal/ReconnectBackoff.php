<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerUnavailableException;

/** Retries requests while the engine is not available, with growing pauses. */
final class ReconnectBackoff
{
    /**
     * @template T
     *
     * @param float             $seconds for which the request is retried
     * @param \Closure(bool): T $request the request; gets true if an earlier one may have been done
     *
     * @return T
     *
     * @throws BrokerUnavailableException of the last request
     */
    public static function retry(float $seconds, \Closure $request): mixed
    {
        $backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $end = Clock::now() + $seconds;
        for ($attempt = 1;; ++$attempt) {
            try {
                return $request($attempt > 1);
            } catch (BrokerUnavailableException $failure) {
                $delay = $backoff->after($attempt);
                if (Clock::now() + $delay > $end) {
                    throw $failure;
                }
                \Amp\delay($delay);
            }
        }
    }
}
