<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;

final class LoopLimit
{
    /**
     * Returns whether the event loop can watch the stream. Without an extension such as ext-ev, the loop uses
     * stream_select(), which can't watch descriptors above 1023.
     *
     * @param resource $stream
     */
    public static function allows(mixed $stream): bool
    {
        if (EventLoop::getDriver()->getHandle() !== null) {
            return true;
        }
        $can = true;
        set_error_handler(static function (int $level, string $message) use (&$can): bool {
            $can = !str_contains($message, 'FD_SETSIZE');

            return true;
        });
        try {
            [$reads, $none] = [[$stream], null];
            stream_select($reads, $none, $none, 0);
        } finally {
            restore_error_handler();
        }

        return $can;
    }
}
