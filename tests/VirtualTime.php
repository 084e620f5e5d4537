<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;
use Spindle\Internal\Clock;

/**
 * Runs each test in virtual time: timers, delays, leases and timeouts take no real time.
 *
 * The event loop and {@see Clock} show the time of a {@see VirtualDriver}. Calls of hrtime() and microtime() show real
 * time. A test that waits for another process must not use this trait.
 */
trait VirtualTime
{
    private ?VirtualDriver $virtualDriver = null;

    /** Runs before the other hooks, such as those that record which watchers exist. */
    #[Before(100)]
    protected function enterVirtualTime(): void
    {
        $this->virtualDriver = new VirtualDriver(1_000_000.0, 2_000_000.0); // at most 11 days for a test
        self::replaceDriver($this->virtualDriver);
        Clock::replace($this->virtualDriver->time(...));
    }

    /** Runs after the other hooks. */
    #[After(-100)]
    protected function leaveVirtualTime(): void
    {
        Clock::replace(null);
        $this->virtualDriver = null;
        self::replaceDriver((new DriverFactory())->create());
    }

    /** Returns the virtual time in seconds. */
    protected function now(): float
    {
        return $this->virtualDriver?->time() ?? throw new \LogicException('Virtual time has not begun');
    }

    /** Advances the clock without running anything, as if the process had been stopped. */
    protected function freeze(float $seconds): void
    {
        $this->virtualDriver?->freeze($seconds);
    }

    /** Replaces the driver. If the old one is still running, because it waited for {main}, its loop is ended first. */
    private static function replaceDriver(EventLoop\Driver $driver): void
    {
        $old = EventLoop::getDriver();
        if ($old->isRunning()) {
            $old->stop();
            $old->run();
        }
        EventLoop::setDriver($driver);
    }
}
