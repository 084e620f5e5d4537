<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Exponential backoff with jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. */
final class Backoff
{
    /**
     * @param float $delay    seconds before the first retry; 0 for no delays
     * @param float $factor   each delay is the previous delay times this number; at least 1
     * @param float $maxDelay upper limit of a delay, in seconds
     * @param float $jitter   largest share of a delay that is subtracted at random, from 0 (nothing) to 1 (all of it)
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        private readonly float $delay,
        private readonly float $factor,
        private readonly float $maxDelay,
        private readonly float $jitter,
    ) {
        NumberRange::checkSeconds('The delay before a retry', $delay);
        NumberRange::checkSeconds('The maxDelay before a retry', $maxDelay);
        if (!($factor >= 1)) {
            throw new \ValueError('The factor of retry delays must be 1 or more, not ' . NumberRange::text($factor));
        }
        if (!($jitter >= 0 && $jitter <= 1)) {
            throw new \ValueError('The jitter of retry delays must be from 0 to 1, not ' . NumberRange::text($jitter));
        }
    }

    /** Returns the seconds until the next attempt. `$attempts` is the number of past attempts (1 or more). */
    public function after(int $attempts): float
    {
        // A delay of 0 is not multiplied: the power may be INF, and 0 * INF is NAN.
        $delay = $this->delay > 0 ? min($this->maxDelay, $this->delay * $this->factor ** ($attempts - 1)) : 0.0;

        return $delay * (1 - $this->jitter * mt_rand() / mt_getrandmax());
    }
}
