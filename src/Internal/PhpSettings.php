<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Changes settings of PHP. Some hosting providers disable ini_set(), so callers must work without the change. */
final class PhpSettings
{
    /** Has no effect without ini_set(). */
    public static function set(string $name, string $value): void
    {
        if (\function_exists('ini_set')) {
            ini_set($name, $value);
        }
    }
}
