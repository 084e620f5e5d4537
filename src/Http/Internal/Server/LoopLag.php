<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;

/** Measures how late the event loop runs its timers. Code that blocks the loop delays every request by that time. */
final class LoopLag
{
    private const INTERVAL_SECONDS = 0.5;

    private const WINDOW_NANOSECONDS = 60_000_000_000;

    private ?string $timer = null;
    private int $due = 0;

    /** The last measurement: time by hrtime(), and lag in seconds. */
    private int $measuredAt = 0;
    private float $last = 0.0;

    /**
     * Measurements of the last minute that are higher than all later ones, the highest first. {@see max()} needs no
     * other measurement, because a later one was at least as high.
     *
     * @var list<array{int, float}> time by hrtime(), and lag in seconds
     */
    private array $highest = [];

    /** @param (\Closure(): int)|null $clock replacement of hrtime() */
    public function __construct(private readonly ?\Closure $clock = null) {}

    /** Starts to measure. The server measures only while connections are open, so that it uses no CPU when idle. */
    public function start(): void
    {
        if ($this->timer === null) {
            $this->due = $this->now() + (int) (self::INTERVAL_SECONDS * 1e9);
            $measure = OwnCallback::of($this->measure(...));
            $this->timer = EventLoop::unreference(EventLoop::repeat(self::INTERVAL_SECONDS, $measure));
        }
    }

    public function stop(): void
    {
        if ($this->timer === null) {
            return;
        }
        EventLoop::cancel($this->timer);
        $this->timer = null;
        if ($this->now() > $this->due) {
            $this->measure(); // the code that closed the last connection may have blocked the loop
        }
    }

    /** Returns the last measured lag in seconds; 0 if the measurement is older than a minute. */
    public function last(): float
    {
        return $this->now() - $this->measuredAt > self::WINDOW_NANOSECONDS ? 0.0 : $this->last;
    }

    public function max(): float
    {
        $this->dropOld($this->now());

        return $this->highest[0][1] ?? 0.0;
    }

    private function measure(): void
    {
        $now = $this->now();
        $this->last = max(0.0, ($now - $this->due) / 1e9);
        $this->measuredAt = $now;
        $this->due = $now + (int) (self::INTERVAL_SECONDS * 1e9);
        $this->dropOld($now);
        while ($this->highest !== [] && $this->highest[array_key_last($this->highest)][1] <= $this->last) {
            array_pop($this->highest);
        }
        $this->highest[] = [$now, $this->last];
    }

    private function dropOld(int $now): void
    {
        while ($this->highest !== [] && $now - $this->highest[0][0] > self::WINDOW_NANOSECONDS) {
            array_shift($this->highest);
        }
    }

    private function now(): int
    {
        return $this->clock === null ? (int) hrtime(true) : ($this->clock)();
    }
}
