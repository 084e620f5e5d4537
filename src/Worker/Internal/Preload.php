<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\DeferredFuture;
use Amp\Future;
use Amp\Future\UnhandledFutureError;
use Amp\Internal\FutureState;
use Revolt\EventLoop;
use Revolt\EventLoop\FiberLocal;
use Revolt\EventLoop\Internal\DriverSuspension;
use Revolt\EventLoop\UncaughtThrowable;
use Spindle\LauncherException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerStartException;

/** Loads the classes that report exhausted descriptors. A class file needs a descriptor itself. */
final class Preload
{
    public static function classes(): void
    {
        array_map(class_exists(...), [
            TaskCode::class, Portable::class, Submission::class, Protocol::class, Mark::class, Reception::class, Outcome::class,
            WorkerStartException::class, WorkerCrashedException::class, TaskFailedException::class, LauncherException::class,
            DeferredFuture::class, FutureState::class, Future::class, UnhandledFutureError::class,
            DriverSuspension::class, FiberLocal::class, UncaughtThrowable::class,
        ]);
        // These calls load the loop's own classes.
        EventLoop::cancel(EventLoop::defer(static fn() => null));
        EventLoop::cancel(EventLoop::delay(0, static fn() => null));
    }
}
