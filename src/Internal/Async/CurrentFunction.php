<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop\FiberLocal;

/** Identifies a call by the event loop. The current fiber does not: the loop uses one fiber for many calls. */
final class CurrentFunction
{
    /** @var FiberLocal<\stdClass>|null */
    private static ?FiberLocal $identity = null;

    /** Returns an object that differs for each call by the event loop. The object is freed when the call ends. */
    public static function identity(): \stdClass
    {
        return (self::$identity ??= new FiberLocal(static fn(): \stdClass => new \stdClass()))->get();
    }
}
