<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Async\FiberSwitch;

/** Loads classes in advance, because a class can't be loaded later while no file descriptor is free. */
final class Preload
{
    /** @param class-string ...$classes loaded in addition to the classes that the event loop and each wait need */
    public static function load(string ...$classes): void
    {
        array_map(class_exists(...), [
            ...$classes,
            FiberSwitch::class,
            LoopCallback::class,
            SelfWaitException::class,
            Warnings::class,
            EventLoop\UncaughtThrowable::class,
            EventLoop\Internal\ClosureHelper::class,
        ]);
        // The first defer() and the first delay() load other classes of the event loop.
        EventLoop::cancel(EventLoop::defer(static fn() => null));
        EventLoop::cancel(EventLoop::delay(0, static fn() => null));
    }
}
