<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;

/** How late the event loop comes to its timers: what blocks it, every request waits for. */
final class LoopLag
{
    /** Seconds between two looks. */
    private const INTERVAL = 0.5;

    /** Nanoseconds for which a look counts. */
    private const WINDOW = 60_000_000_000;

    private ?string $timer = null;
    private int $due = 0;

    /** The last look: when, by hrtime(), and seconds. */
    private int $lookedAt = 0;
    private float $last = 0.0;

    /** @var list<array{int, float}> looks of the window after each of which none was worse: when, by hrtime(), and seconds, the worst first */
    private array $worst = [];

    /** @param (\Closure(): int)|null $clock in place of hrtime() */
    public function __construct(private readonly ?\Closure $clock = null) {}

    /** Looks while something is served only: a server without clients uses no CPU. */
    public function start(): void
    {
        if ($this->timer === null) {
            $this->due = $this->now() + (int) (self::INTERVAL * 1e9);
            $this->timer = EventLoop::unreference(EventLoop::repeat(self::INTERVAL, $this->look(...)));
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
            $this->look(); // what has blocked the loop has ended the last connection too
        }
    }

    /** Seconds, at the last look; 0 when that was more than a minute ago. */
    public function last(): float
    {
        return $this->now() - $this->lookedAt > self::WINDOW ? 0.0 : $this->last;
    }

    /** Seconds, the most of the last minute. */
    public function longest(): float
    {
        $this->forget($this->now());

        return $this->worst[0][1] ?? 0.0;
    }

    private function look(): void
    {
        $now = $this->now();
        $this->last = max(0.0, ($now - $this->due) / 1e9);
        $this->lookedAt = $now;
        $this->due = $now + (int) (self::INTERVAL * 1e9);
        $this->forget($now);
        while ($this->worst !== [] && $this->worst[array_key_last($this->worst)][1] <= $this->last) {
            array_pop($this->worst);
        }
        $this->worst[] = [$now, $this->last];
    }

    private function forget(int $now): void
    {
        while ($this->worst !== [] && $now - $this->worst[0][0] > self::WINDOW) {
            array_shift($this->worst);
        }
    }

    private function now(): int
    {
        return $this->clock === null ? (int) hrtime(true) : ($this->clock)();
    }
}
