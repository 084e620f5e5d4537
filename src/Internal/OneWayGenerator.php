<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Rejects values that are sent to a generator whose items come from another process. */
final class OneWayGenerator
{
    /**
     * @param mixed $sent what a `yield` returned: null unless the reader called {@see \Generator::send()}
     *
     * @throws \LogicException when the reader sent something
     */
    public static function refuse(mixed $sent): void
    {
        if ($sent !== null) {
            throw new \LogicException(
                'A value was sent to the result of a generator task: the task runs in another process and cannot receive it.'
                . ' Read the result with foreach',
            );
        }
    }
}
