<?php

declare(strict_types=1);

namespace Spindle\Internal;

final class CallStack
{
    /** Returns whether a method of the object has called the current function in this fiber, perhaps indirectly. */
    public static function hasCallOf(object $object): bool
    {
        $frames = debug_backtrace(\DEBUG_BACKTRACE_PROVIDE_OBJECT | \DEBUG_BACKTRACE_IGNORE_ARGS);
        foreach (\array_slice($frames, 2) as $frame) {
            $caller = $frame['object'] ?? null;
            if ($caller === $object || $caller instanceof \Fiber) { // further frames are not of this fiber
                return $caller === $object;
            }
        }

        return false;
    }
}
