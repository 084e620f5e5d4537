<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop\FiberLocal;

/** Identifies the function that the loop has called. The fiber is not enough: it runs several functions in turn. */
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
