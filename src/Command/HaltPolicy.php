<?php

declare(strict_types=1);

namespace Spindle\Command;

/**
 * Ends a run before its input ends: after a number, or a share, of failures or successes.
 *
 * "Soon" lets running commands finish. "Now" cancels them. With a policy, a command leaves the pool only when a slot is
 * free, so that none starts after the decision.
 */
final class HaltPolicy
{
    /** Minimum number of failures or successes before their share counts. */
    private const MIN_EVENTS = 3;

    private function __construct(
        public readonly bool $now,
        public readonly bool $onSuccess,
        public readonly ?int $count,
        public readonly ?float $share,
    ) {
        if ($count !== null && $count < 1) {
            throw new \ValueError("A halt policy needs a count of 1 or more, not {$count}");
        }
        if ($share !== null && !($share > 0 && $share <= 1)) {
            throw new \ValueError("A halt policy needs a share above 0 and up to 1, not {$share}");
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

    /** @param float $share share of the ended commands, above 0 and up to 1; at least three must have failed */
    public static function soonAfterFailureShare(float $share): self
    {
        return new self(false, false, null, $share);
    }

    /** @param float $share as for {@see soonAfterFailureShare()} */
    public static function nowAfterFailureShare(float $share): self
    {
        return new self(true, false, null, $share);
    }

    /** @param float $share share of the ended commands, above 0 and up to 1; at least three must have succeeded */
    public static function soonAfterSuccessShare(float $share): self
    {
        return new self(false, true, null, $share);
    }

    /** @param float $share as for {@see soonAfterSuccessShare()} */
    public static function nowAfterSuccessShare(float $share): self
    {
        return new self(true, true, null, $share);
    }

    public function isReached(int $succeeded, int $failed): bool
    {
        $events = $this->onSuccess ? $succeeded : $failed;

        return $this->share === null
            ? $events >= $this->count
            : $events >= self::MIN_EVENTS && $events >= $this->share * ($succeeded + $failed);
    }
}
