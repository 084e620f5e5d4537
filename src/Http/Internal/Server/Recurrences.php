<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/** What happens again and again is reported when it begins, and anew when it begins again after a quiet minute. */
final class Recurrences
{
    /** Nanoseconds after which what happens counts as new. */
    private const QUIET = 60_000_000_000;

    /** Different things that are told apart. */
    private const MAX_KINDS = 1_000;

    /** @var array<string, int> when each has happened last, by the clock */
    private array $last = [];

    /** @param (\Closure(): int)|null $clock in place of hrtime(), in nanoseconds */
    public function __construct(private readonly ?\Closure $clock = null) {}

    /** Notes that this happens, and returns whether it has not happened before, or not for a minute. */
    public function begins(string $what): bool
    {
        $now = $this->clock === null ? (int) hrtime(true) : ($this->clock)();
        $last = $this->last[$what] ?? null;
        if ($last === null && \count($this->last) >= self::MAX_KINDS) {
            $this->last = [];
        }
        $this->last[$what] = $now;

        return $last === null || $now - $last > self::QUIET;
    }
}
