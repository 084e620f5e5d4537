<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Testing;

use Revolt\EventLoop;
use Spindle\Http\Internal\Process\FiberOutputDriver;
use Spindle\Internal\OutputBuffers;

/** Keeps the output buffers of fibers apart during requests, as in a process of `spindle serve`. */
final class SeparateOutput
{
    private static int $requests = 0;
    private static ?int $sharedLevel = null;

    private function __construct() {}

    /** Wraps the driver of the event loop, except in a fiber, where the driver can't be replaced. */
    public static function prepare(): void
    {
        $driver = EventLoop::getDriver();
        if ($driver instanceof FiberOutputDriver || \Fiber::getCurrent() !== null) {
            return;
        }
        if ($driver->isRunning()) { // {main} has waited before: a running driver can't be replaced
            $driver->stop();
            $driver->run();
        }
        EventLoop::setDriver(new FiberOutputDriver($driver));
    }

    public static function begin(): void
    {
        if (self::$requests++ === 0) {
            self::$sharedLevel = OutputBuffers::$sharedLevel;
            if (EventLoop::getDriver() instanceof FiberOutputDriver) {
                OutputBuffers::$sharedLevel ??= ob_get_level();
            }
        }
    }

    public static function end(): void
    {
        if (--self::$requests === 0) {
            OutputBuffers::$sharedLevel = self::$sharedLevel;
        }
    }
}
