<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\Internal\NumberRange;

/**
 * Ends a run early when a number (or share) of its commands has failed, or when a number (or share) has succeeded.
 *
 * With `soonAfter...()`, running commands finish. With `nowAfter...()`, running commands are cancelled. No command
 * starts after the run was halted. So a run with a policy reads no commands in advance: it reads a command from its
 * input only when a slot is free for it.
 */
final class HaltPolicy
{
    /** A policy with a share ends a run only after at least this number of failures, or of successes. */
    private const MIN_EVENTS = 3;

    /** Exactly one of $count and $share is null. */
    private function __construct(
        public readonly bool $cancelsRunning,
        public readonly bool $onSuccess,
        public readonly ?int $count,
        public readonly ?float $share,
    ) {
        if ($count !== null && $count < 1) {
            throw new \ValueError("A halt policy needs a count of 1 or more, not {$count}");
        }
        if ($share !== null && !($share > 0 && $share <= 1)) {
            throw new \ValueError('A halt policy needs a share above 0 and up to 1, not ' . NumberRange::text($share));
        }
    }

    public static function soonAfterFailures(int $count): self
    {
        return new self(false, false, $count, null);
    }

    public static function nowAfterFailures(int $count): self
    {
        return new self(true, false, $count, null);
    }

    public static function soonAfterSuccesses(int $count): self
    {
        return new self(false, true, $count, null);
    }

    public static function nowAfterSuccesses(int $count): self
    {
        return new self(true, true, $count, null);
    }

    /** @param float $share share of ended commands that failed, above 0 and up to 1; at least three must fail */
    public static function soonAfterFailureShare(float $share): self
    {
        return new self(false, false, null, $share);
    }

    /** @param float $share as for {@see soonAfterFailureShare()} */
    public static function nowAfterFailureShare(float $share): self
    {
        return new self(true, false, null, $share);
    }

    /** @param float $share share of ended commands that succeeded, above 0 and up to 1; at least three must succeed */
    public static function soonAfterSuccessShare(float $share): self
    {
        return new self(false, true, null, $share);
    }

    /** @param float $share as for {@see soonAfterSuccessShare()} */
    public static function nowAfterSuccessShare(float $share): self
    {
        return new self(true, true, null, $share);
    }

    /** Returns whether a run has to end after these numbers of succeeded and failed commands. */
    public function isReached(int $succeeded, int $failed): bool
    {
        $events = $this->onSuccess ? $succeeded : $failed;

        return $this->share === null
            ? $events >= $this->count
            // Divides instead of multiplying, because 7 / 100 === 0.07, but 0.07 * 100 > 7.
            : $events >= self::MIN_EVENTS && $events / ($succeeded + $failed) >= $this->share;
    }
}
