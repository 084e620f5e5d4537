<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Spindle\Internal\Excerpt;

/** Finds the part of a value that json_encode() has refused, without calling code of the value's objects again. */
final class JsonFault
{
    private const MAX_DEPTH = 512;

    /** Bytes of a key that the path shows. */
    private const MAX_KEY_BYTES = 80;

    private function __construct() {}

    /**
     * Returns a path such as `$value['items'][3]`. Returns null if json_encode() can refuse the value for other reasons
     * than one part of it, or if the part comes from an object's jsonSerialize().
     *
     * @param int $error from json_last_error()
     */
    public static function find(#[\SensitiveParameter] mixed $value, int $error): ?string
    {
        $isFault = match ($error) {
            \JSON_ERROR_UTF8 => static fn(mixed $part): bool => \is_string($part) && preg_match('//u', $part) !== 1,
            \JSON_ERROR_INF_OR_NAN => static fn(mixed $part): bool => \is_float($part) && !is_finite($part),
            \JSON_ERROR_UNSUPPORTED_TYPE
                => static fn(mixed $part): bool => str_starts_with(\gettype($part), 'resource'),
            \JSON_ERROR_NON_BACKED_ENUM
                => static fn(mixed $part): bool => $part instanceof \UnitEnum && !$part instanceof \BackedEnum,
            default => null,
        };

        return $isFault === null ? null : self::search($value, '$value', self::MAX_DEPTH, $isFault);
    }

    /** @param \Closure(mixed): bool $isFault */
    private static function search(
        #[\SensitiveParameter]
        mixed $value,
        string $path,
        int $depth,
        \Closure $isFault,
    ): ?string {
        if ($isFault($value)) {
            return $path;
        }
        if ((!\is_array($value) && !\is_object($value)) || $value instanceof \JsonSerializable || $depth === 0) {
            return null;
        }
        $isList = \is_array($value);
        foreach ((array) $value as $key => $part) {
            if (\is_string($key) && $isFault($key)) {
                return "a key of {$path}";
            }
            if (!$isList && str_starts_with((string) $key, "\0")) {
                continue; // not public, so not encoded
            }
            $found = self::search($part, $path . self::step($key, $isList), $depth - 1, $isFault);
            if ($found !== null) {
                return $found;
            }
        }

        return null;
    }

    private static function step(int|string $key, bool $isElement): string
    {
        if (\is_int($key)) {
            return $isElement ? "[{$key}]" : "->{{$key}}";
        }
        $name = addcslashes(Excerpt::of($key, self::MAX_KEY_BYTES), "\0..\37\177'\\");

        return $isElement ? "['{$name}']" : "->{$name}";
    }
}
