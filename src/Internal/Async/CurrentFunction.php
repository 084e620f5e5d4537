<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop\FiberLocal;

/** Identifies the running function. Its fiber is not enough: the event loop runs several functions in one fiber. */
final class CurrentFunction
{
    /** @var FiberLocal<\stdClass>|null */
    private static ?FiberLocal $identity = null;

    /** Returns an object that differs for each function. The object is freed when the function has ended. */
    public static function identity(): \stdClass
    {
        return (self::$identity ??= new FiberLocal(static fn(): \stdClass => new \stdClass()))->get();
    }
}
