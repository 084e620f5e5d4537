<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

final class QueueName
{
    /** @throws \ValueError when the name is not valid */
    public static function check(string $name): void
    {
        if (preg_match('/^[A-Za-z0-9_.-]{1,64}$/D', $name) !== 1) {
            throw new \ValueError(
                "The name of a queue must have 1 to 64 letters, digits, dots, hyphens and underscores, not '{$name}'",
            );
        }
    }
}
