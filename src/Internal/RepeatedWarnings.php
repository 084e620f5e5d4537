<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Decides whether an occurrence of an event is reported: only if the event did not occur in the minute before. */
final class RepeatedWarnings
{
    private const QUIET_NANOSECONDS = 60_000_000_000;

    /** Maximum number of remembered events. If there are more, the object forgets all earlier events. */
    private const MAX_WARNINGS = 1_000;

    /** @var array<string, int> time of the last occurrence, by event */
    private array $last = [];

    /** @param (\Closure(): int)|null $clock replacement of hrtime(), in nanoseconds */
    public function __construct(private readonly ?\Closure $clock = null) {}

    /** Records an occurrence of an event. Returns whether the event did not occur in the minute before. */
    public function isNew(string $what): bool
    {
        $now = $this->clock === null ? (int) hrtime(true) : ($this->clock)();
        $last = $this->last[$what] ?? null;
        if ($last === null && \count($this->last) >= self::MAX_WARNINGS) {
            $this->last = [];
        }
        $this->last[$what] = $now;

        return $last === null || $now - $last > self::QUIET_NANOSECONDS;
    }
}
