<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Changes settings of PHP if ini_set() exists. Some hosts disable it, so callers must work without the change. */
final class PhpSettings
{
    private function __construct() {}

    /** Has no effect without ini_set(). */
    public static function set(string $name, string $value): void
    {
        if (\function_exists('ini_set')) {
            ini_set($name, $value);
        }
    }
}
