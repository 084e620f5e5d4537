<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;

/** A new event loop, set by EventLoop::setDriver(), with timers that have the ids of callbacks of the earlier loop. */
final readonly class ReplacedLoop
{
    /** @param list<string> $timers callback ids */
    private function __construct(private array $timers) {}

    /** Replaces the event loop, which must not be running. */
    public static function start(int $timers = 30): self
    {
        EventLoop::setDriver((new DriverFactory())->create());
        $ids = [];
        for ($count = 0; $count < $timers; ++$count) {
            $ids[] = EventLoop::unreference(EventLoop::delay(60, static fn() => null));
        }

        return new self($ids);
    }

    /** Runs the earlier loop for one turn, so that it can be replaced, and replaces it. */
    public static function startAfterATurn(int $timers = 30): self
    {
        EventLoop::delay(0, EventLoop::getDriver()->stop(...));
        EventLoop::run();

        return self::start($timers);
    }

    /** Returns the number of timers that no other code has cancelled. */
    public function remainingTimers(): int
    {
        return \count(array_intersect($this->timers, EventLoop::getIdentifiers()));
    }
}
