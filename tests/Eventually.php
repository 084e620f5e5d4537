<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Assert;
use Spindle\Internal\Clock;

use function Amp\delay;

/** Waits until a condition holds, and fails after a deadline. Tests use it to wait for other processes. */
final class Eventually
{
    private const LOOK = 0.005;
    private const STILL = 0.1;

    /**
     * Waits while the event loop runs. In virtual time, the deadline is virtual as well.
     *
     * @param callable(): bool $condition
     */
    public static function holds(callable $condition, string $claim, float $seconds = 15.0): void
    {
        self::look($condition, $claim, $seconds, Clock::now(...), static fn() => delay(self::LOOK));
    }

    /**
     * Waits without running the event loop.
     *
     * @param callable(): bool $condition
     */
    public static function holdsByItself(callable $condition, string $claim, float $seconds = 15.0): void
    {
        $clock = static fn(): float => hrtime(true) / 1e9;
        self::look($condition, $claim, $seconds, $clock, static fn() => usleep((int) (self::LOOK * 1e6)));
    }

    /**
     * Waits until a count is above 0 and stays the same for 0.1 s, while the event loop runs.
     *
     * @param callable(): int $count
     */
    public static function standsStill(callable $count, string $claim, float $seconds = 15.0): void
    {
        [$last, $since] = [0, Clock::now()];
        self::holds(static function () use ($count, &$last, &$since): bool {
            if ($count() !== $last) {
                [$last, $since] = [$count(), Clock::now()];
            }

            return $last > 0 && Clock::now() - $since >= self::STILL;
        }, $claim, $seconds);
    }

    /**
     * @param callable(): bool  $condition
     * @param \Closure(): float $clock
     * @param \Closure(): void  $pause
     */
    private static function look(
        callable $condition,
        string $claim,
        float $seconds,
        \Closure $clock,
        \Closure $pause,
    ): void {
        $end = $clock() + $seconds;
        $holds = $condition();
        while (!$holds && $clock() < $end) {
            $pause();
            $holds = $condition();
        }
        Assert::assertTrue($holds, "Not so within {$seconds} s: {$claim}");
    }
}
