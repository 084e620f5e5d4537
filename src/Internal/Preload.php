<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

/** Loads classes that are needed when no descriptor is free: loading a class needs a descriptor itself. */
final class Preload
{
    /**
     * Loads the given classes, and those of the event loop.
     *
     * @param class-string ...$classes
     */
    public static function classes(string ...$classes): void
    {
        array_map(class_exists(...), [
            ...$classes,
            EventLoop\UncaughtThrowable::class,
            EventLoop\Internal\ClosureHelper::class,
        ]);
        // Loads the loop's own classes.
        EventLoop::cancel(EventLoop::defer(static fn() => null));
        EventLoop::cancel(EventLoop::delay(0, static fn() => null));
    }
}
