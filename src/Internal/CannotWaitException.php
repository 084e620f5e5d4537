<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Thrown when a method that waits is called where PHP can't switch fibers. The message lists these places. */
final class CannotWaitException extends \LogicException
{
    private const REASON = 'Waiting is not possible here, because PHP cannot switch fibers in a handler of'
        . ' pcntl_signal(), in a fiber that is being destroyed, or before PHP 8.4 in a destructor. Use'
        . ' EventLoop::onSignal(), or wait before the object is destroyed. To end a pool here, call kill(), which does'
        . ' not wait. ';

    public static function because(\FiberError $blocked): self
    {
        return new self(self::REASON . 'The call may have been carried out nevertheless', 0, $blocked);
    }

    public static function before(\FiberError $blocked): self
    {
        return new self(self::REASON . 'The call was refused before it had an effect', 0, $blocked);
    }
}
