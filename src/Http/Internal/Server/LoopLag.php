<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;

/** How late the event loop comes to its timers: what blocks it, every request waits for. */
final class LoopLag
{
    /** Seconds between two looks, and looks whose longest is kept. */
    private const INTERVAL = 0.5;
    private const WINDOW = 60;

    private ?string $timer = null;
    private int $due = 0;
    private float $last = 0.0;

    /** The longest of the window before, and of this one, of which so many looks were made. */
    private float $before = 0.0;
    private float $longest = 0.0;
    private int $looks = 0;

    /** Looks while something is served only: a server without clients uses no CPU. */
    public function start(): void
    {
        if ($this->timer === null) {
            $this->due = (int) hrtime(true) + (int) (self::INTERVAL * 1e9);
            $this->timer = EventLoop::unreference(EventLoop::repeat(self::INTERVAL, $this->look(...)));
        }
    }

    public function stop(): void
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
            $this->timer = null;
        }
    }

    /** Seconds, at the last look. */
    public function last(): float
    {
        return $this->last;
    }

    /** Seconds, the most of the last half minute at least and of the last minute at most. */
    public function longest(): float
    {
        return max($this->before, $this->longest);
    }

    private function look(): void
    {
        $now = (int) hrtime(true);
        $this->last = max(0.0, ($now - $this->due) / 1e9);
        $this->due = $now + (int) (self::INTERVAL * 1e9);
        $this->longest = max($this->longest, $this->last);
        if (++$this->looks === self::WINDOW) {
            [$this->before, $this->longest, $this->looks] = [$this->longest, 0.0, 0];
        }
    }
}
