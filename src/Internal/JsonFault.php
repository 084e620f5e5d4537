<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** The part of a value that made json_encode() refuse the whole value. */
final readonly class JsonFault
{
    private const MAX_DEPTH = 512;

    /** Maximum number of searched parts. Without a limit, an array that contains itself twice would take too long. */
    private const MAX_PARTS = 100_000;

    /**
     * @param list<int|string> $path keys of arrays, and names of properties, that lead to the part
     * @param bool $isKey whether a key of the part is refused, and not the part itself
     */
    private function __construct(
        #[\SensitiveParameter]
        public array $path,
        #[\SensitiveParameter]
        public mixed $part,
        public bool $isKey,
    ) {}

    /**
     * Finds the first refused part. Calls no jsonSerialize(), because json_encode() has already called these methods.
     *
     * @param int $error from json_last_error()
     *
     * @return self|null null if no part is found. For example, the value may be too deep, or an object's
     *     jsonSerialize() may have returned the refused part
     */
    public static function find(#[\SensitiveParameter] mixed $value, int $error): ?self
    {
        $isRefused = match ($error) {
            \JSON_ERROR_UTF8 => static fn(mixed $part): bool => \is_string($part) && preg_match('//u', $part) !== 1,
            \JSON_ERROR_INF_OR_NAN => static fn(mixed $part): bool => \is_float($part) && !is_finite($part),
            \JSON_ERROR_UNSUPPORTED_TYPE
                => static fn(mixed $part): bool => str_starts_with(\gettype($part), 'resource'),
            \JSON_ERROR_NON_BACKED_ENUM
                => static fn(mixed $part): bool => $part instanceof \UnitEnum && !$part instanceof \BackedEnum,
            default => null,
        };
        $left = self::MAX_PARTS;

        return $isRefused === null ? null : self::search($value, 0, $isRefused, $left);
    }

    /** @param \Closure(mixed): bool $isRefused */
    private static function search(
        #[\SensitiveParameter]
        mixed $value,
        int $depth,
        \Closure $isRefused,
        int &$left,
    ): ?self {
        if ($isRefused($value instanceof \BackedEnum ? $value->value : $value)) {
            return new self([], $value, false);
        }
        if (
            (!\is_array($value) && !\is_object($value))
            || $value instanceof \JsonSerializable
            || $value instanceof \UnitEnum
            || $depth === self::MAX_DEPTH
        ) {
            return null;
        }
        foreach ((array) $value as $key => $part) {
            if (--$left < 0) {
                return null;
            }
            if (\is_object($value) && !self::isEncoded($value, (string) $key)) {
                continue;
            }
            if ($isRefused($key)) {
                return new self([], $value, true);
            }
            $fault = self::search($part, $depth + 1, $isRefused, $left);
            if ($fault !== null) {
                return new self([$key, ...$fault->path], $fault->part, $fault->isKey);
            }
        }

        return null;
    }

    /** Returns whether json_encode() encodes the stored value of a property: a public one without hooks of PHP 8.4. */
    private static function isEncoded(object $value, string $key): bool
    {
        return !str_starts_with($key, "\0")
            && (\PHP_VERSION_ID < 80400
                || !property_exists($value::class, $key) // for example, "date" of a DateTime
                // @phpstan-ignore method.notFound (PHP 8.4)
                || !(new \ReflectionProperty($value::class, $key))->hasHooks());
    }
}
