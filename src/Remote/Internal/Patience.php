<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerUnavailableException;

/** Asks an engine that is not available again, less and less often. */
final class Patience
{
    /**
     * @template T
     *
     * @param float             $seconds  for which it is asked
     * @param \Closure(bool): T $question is told whether it may have been done before
     *
     * @return T
     *
     * @throws BrokerUnavailableException the last one
     */
    public static function ask(float $seconds, \Closure $question): mixed
    {
        $backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $end = Clock::now() + $seconds;
        for ($attempt = 1;; ++$attempt) {
            try {
                return $question($attempt > 1);
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
