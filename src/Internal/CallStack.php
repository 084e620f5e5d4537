<?php

declare(strict_types=1);

namespace Spindle\Internal;

final class CallStack
{
    /** Returns whether a method of the object has called the current function, directly or through other code. */
    public static function hasCallOf(object $object): bool
    {
        $frames = debug_backtrace(\DEBUG_BACKTRACE_PROVIDE_OBJECT | \DEBUG_BACKTRACE_IGNORE_ARGS);

        return \in_array($object, array_column(\array_slice($frames, 2), 'object'), true);
    }
}
