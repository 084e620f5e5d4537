<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Assert;

use function Amp\delay;

/** Waits for what another process does, for as long as it takes and no longer than it may. */
final class Eventually
{
    private const LOOK = 0.005;

    /**
     * Turns the event loop meanwhile.
     *
     * @param callable(): bool $condition
     */
    public static function holds(callable $condition, string $claim, float $seconds = 5.0): void
    {
        self::look($condition, $claim, $seconds, static fn() => delay(self::LOOK));
    }

    /**
     * Leaves the event loop alone: what it would do does not happen meanwhile.
     *
     * @param callable(): bool $condition
     */
    public static function holdsByItself(callable $condition, string $claim, float $seconds = 5.0): void
    {
        self::look($condition, $claim, $seconds, static fn() => usleep((int) (self::LOOK * 1e6)));
    }

    /**
     * @param callable(): bool $condition
     * @param \Closure(): void $pause
     */
    private static function look(callable $condition, string $claim, float $seconds, \Closure $pause): void
    {
        $end = hrtime(true) + (int) ($seconds * 1e9);
        $holds = $condition();
        while (!$holds && hrtime(true) < $end) {
            $pause();
            $holds = $condition();
        }
        Assert::assertTrue($holds, "Not so within {$seconds} s: {$claim}");
    }
}
