<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Names parts of a value in PHP syntax, such as `$argument['user']->connection`. A long path ends with an ellipsis. */
final class ValuePath
{
    private const MAX_BYTES = 1000;

    public static function ofElement(string $path, int|string $key): string
    {
        return self::truncated($path) ?? $path . (\is_int($key) ? "[{$key}]" : "['" . addcslashes($key, "'\\") . "']");
    }

    /** @param int|string $name key in `(array) $object`: "\0class\0name" for a private property */
    public static function ofProperty(string $path, int|string $name): string
    {
        $name = (string) $name;
        $at = strrpos($name, "\0");

        return self::truncated($path) ?? "{$path}->" . ($at === false ? $name : substr($name, $at + 1));
    }

    /** Shortens a path whose end does not matter: an ellipsis replaces the parts that begin after 80 bytes. */
    public static function beginning(string $path): string
    {
        return (string) preg_replace('/^(.{80}.*?)(?=\[|->).*$/sD', '$1…', $path);
    }

    /** @return string|null the path with an ellipsis if it is too long to extend; otherwise null */
    private static function truncated(string $path): ?string
    {
        return \strlen($path) < self::MAX_BYTES ? null : (str_ends_with($path, '…') ? $path : "{$path}…");
    }
}
