<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * How many tasks of a source make a good batch, learnt from how long they take.
 *
 * A batch is to take about a millisecond: long beside what sending it costs, short beside what anybody notices. The
 * mean of logarithms follows the usual task, whatever a rare long one takes: others that wait behind that are taken back.
 */
final class Pace
{
    /** In nanoseconds. */
    private const BATCH = 1_000_000;

    private const LARGEST = 4096;
    private const GROWTH = 8;

    /** So many batches say little; so many tasks in a batch take long. */
    private const FEW = 8;
    private const SMALL = 16;

    /** A source whose batches take longer than this, in nanoseconds, has no worker wait for its next one noticeably. */
    private const QUICK = 5_000_000;

    /** The logarithm of the nanoseconds that a task takes. */
    private ?float $typical = null;
    private int $largest = 1;
    private int $learnt = 0;

    /**
     * @param int $elapsed nanoseconds that the tasks took together
     * @param int $longest nanoseconds of the longest of them
     */
    public function learn(int $count, int $elapsed, int $longest): void
    {
        if ($count === 0) {
            return;
        }
        ++$this->learnt;
        $each = log(max(1, $count > 1 ? ($elapsed - $longest) / ($count - 1) : $elapsed));
        $this->typical = $this->typical === null ? $each : ($this->typical + $each) / 2;
        $this->largest = min(self::LARGEST, max($this->largest, $count * self::GROWTH));
    }

    /** Tasks for the next batch. */
    public function size(): int
    {
        return $this->typical === null ? 1 : max(1, min($this->largest, (int) (self::BATCH / exp($this->typical))));
    }

    /** Whether each result is to be sent at once: where tasks take long beside that, and while little is known of them. */
    public function isEager(): bool
    {
        return $this->learnt < self::FEW || $this->size() <= self::SMALL;
    }

    /** Whether a worker should have its next batch before it is done with one. */
    public function isQuick(): bool
    {
        return $this->typical !== null && exp($this->typical) < self::QUICK;
    }
}
