<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;

final class LoopTurn
{
    /** @throws CannotWaitException where PHP can't switch fibers */
    public static function await(): void
    {
        $turn = new Condition();
        $loop = EventLoop::getDriver();
        $callbackId = $loop->defer(static fn() => $turn->notify());
        try {
            $turn->wait();
        } finally {
            $loop->cancel($callbackId);
        }
    }
}
