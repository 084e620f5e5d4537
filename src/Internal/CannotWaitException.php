<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Thrown when a method that waits is called where PHP can't switch fibers. The message says where that is. */
final class CannotWaitException extends \LogicException
{
    public static function because(\FiberError $blocked): self
    {
        return new self(
            'Waiting is not possible here, because PHP cannot switch fibers in a handler of pcntl_signal(), or before'
            . ' PHP 8.4 in a destructor. Use EventLoop::onSignal(), or wait before the object is destroyed. kill() of'
            . ' a pool does not wait',
            0,
            $blocked,
        );
    }
}
