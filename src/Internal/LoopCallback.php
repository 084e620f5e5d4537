<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

final class LoopCallback
{
    /**
     * Cancels a callback of the event loop, such as a timer, and forgets its id. Does nothing without an id.
     *
     * @param-out null $id
     */
    public static function cancel(?string &$id): void
    {
        if ($id !== null) {
            EventLoop::cancel($id);
            $id = null;
        }
    }
}
