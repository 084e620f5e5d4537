<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\SessionChanges;

/**
 * Which statements are short, learnt from how long each took: those may share a session with others, for a statement behind another on
 * the same session waits for it. One that is not known, or was slow, runs alone.
 */
final class Paces
{
    /** Nanoseconds up to which a statement is short. */
    public const SHORT = 5_000_000;

    /** How often one that was slow has to be short before it counts as short again. */
    private const PROBATION = 10;

    /** Statements that are remembered. */
    private const MOST = 4_096;

    /** @var array<string, int> by SQL, how often each has to be short yet */
    private array $pending = [];

    public function isShort(string $sql): bool
    {
        return ($this->pending[$sql] ?? 1) === 0;
    }

    public function learn(string $sql, int $nanoseconds): void
    {
        if (SessionChanges::suspects($sql) || SessionChanges::controlsTransaction($sql)) {
            // What it changes, or the transaction that it opens, must concern nobody who shares the session.
            $this->remember($sql, \PHP_INT_MAX);
        } elseif ($nanoseconds > self::SHORT) {
            $this->remember($sql, self::PROBATION);
        } elseif (!isset($this->pending[$sql])) {
            $this->remember($sql, 0);
        } elseif ($this->pending[$sql] > 0) {
            --$this->pending[$sql];
        }
    }

    private function remember(string $sql, int $pending): void
    {
        if (\count($this->pending) >= self::MOST && !isset($this->pending[$sql])) {
            $this->pending = [];
        }
        $this->pending[$sql] = $pending;
    }
}
