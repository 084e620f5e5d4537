<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/**
 * Values as bytes, or an exception that says which part of a value can't be bytes.
 *
 * PHP's serialize() tells the class that it refuses and not where it is, and makes 0 of a resource without a word; so
 * whatever may hold something is looked through as well.
 */
final class Portable
{
    /** @throws UnserializableException */
    public static function serialize(mixed $value, string $path): string
    {
        if (\is_scalar($value) || $value === null) {
            return serialize($value);
        }
        self::check($value, $path);
        try {
            return serialize($value);
        } catch (\Throwable $refused) {
            throw self::explain($value, $path, $refused);
        }
    }

    /**
     * Finds what serialize() would lose or what no other process could make anew: resources and anonymous classes.
     *
     * @param (\Closure(\Closure, string): void)|null $closures called for each closure with its path; null refuses them
     * @param array<int|string, true>                  $seen     objects and references by id
     *
     * @throws UnserializableException
     */
    public static function check(mixed $value, string $path, ?\Closure $closures = null, array &$seen = []): void
    {
        if (\is_array($value)) {
            foreach ($value as $key => $item) {
                if (\is_scalar($item) || $item === null) {
                    continue;
                }
                $reference = \is_array($item) ? \ReflectionReference::fromArrayElement($value, $key)?->getId() : null;
                if ($reference !== null && isset($seen[$reference])) {
                    continue; // an array may hold itself
                }
                $seen[$reference ?? ''] = true;
                self::check($item, self::inArray($path, $key), $closures, $seen);
            }
        } elseif (\is_object($value)) {
            self::checkObject($value, $path, $closures, $seen);
        } elseif (\is_resource($value)) {
            throw UnserializableException::at($path, 'an open ' . get_resource_type($value));
        } elseif (!\is_scalar($value) && $value !== null) {
            throw UnserializableException::at($path, 'a closed resource');
        }
    }

    /**
     * @param (\Closure(\Closure, string): void)|null $closures
     * @param array<int|string, true>                  $seen
     */
    private static function checkObject(object $value, string $path, ?\Closure $closures, array &$seen): void
    {
        $id = spl_object_id($value);
        if (isset($seen[$id]) || $value instanceof \UnitEnum) {
            return;
        }
        $seen[$id] = true;
        if ($value instanceof \Closure) {
            $closures === null ? throw UnserializableException::at($path, 'a closure') : $closures($value, $path);

            return;
        }
        if (str_contains($value::class, "@anonymous\0")) {
            throw UnserializableException::at($path, 'an object of an anonymous class');
        }
        // What a class gives to be serialized is its own affair.
        if (!method_exists($value, '__serialize') && !method_exists($value, '__sleep') && !$value instanceof \Serializable) {
            foreach ((array) $value as $name => $item) {
                if (!\is_scalar($item) && $item !== null) {
                    self::check($item, self::inObject($path, $name), $closures, $seen);
                }
            }
        }
    }

    /** What follows the name of an argument or result, to say which input it is of; nothing where that can't be said. */
    public static function forKey(mixed $key): string
    {
        return \is_scalar($key) ? ' for ' . json_encode($key, \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_UNESCAPED_SLASHES) : '';
    }

    /** Which part of it serialize() has refused. */
    private static function explain(mixed $value, string $path, \Throwable $refused): UnserializableException
    {
        $parts = match (true) {
            \is_array($value) => $value,
            \is_object($value) => (array) $value,
            default => [],
        };
        foreach ($parts as $name => $part) {
            if (\is_scalar($part) || $part === null) {
                continue;
            }
            try {
                serialize($part);
            } catch (\Throwable $refusedPart) {
                return self::explain($part, \is_array($value) ? self::inArray($path, $name) : self::inObject($path, $name), $refusedPart);
            }
        }

        return UnserializableException::at($path, self::describe($value, $refused), $refused);
    }

    private static function describe(mixed $value, \Throwable $refused): string
    {
        $what = 'of type ' . get_debug_type($value);

        return preg_match("/^Serialization of '.+' is not allowed$/", $refused->getMessage()) === 1
            ? $what
            : "{$what} and can't be serialized ({$refused->getMessage()})";
    }

    private static function inArray(string $path, int|string $key): string
    {
        return $path . (\is_int($key) ? "[{$key}]" : "['" . addcslashes($key, "'\\") . "']");
    }

    /** @param int|string $name as a cast to array has it: "\0class\0name" where it is not public */
    private static function inObject(string $path, int|string $name): string
    {
        $name = (string) $name;
        $at = strrpos($name, "\0");

        return "{$path}->" . ($at === false ? $name : substr($name, $at + 1));
    }
}
