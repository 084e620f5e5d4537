<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** Encodes values whose text is the same for most types. */
final class Scalar
{
    /** @throws UnencodableException */
    public static function text(#[\SensitiveParameter] mixed $value): string
    {
        if (\is_string($value)) {
            return str_contains($value, "\0")
                ? throw UnencodableException::of($value, 'it has a NUL byte, which PostgreSQL does not support')
                : $value;
        }

        return match (true) {
            \is_int($value) => (string) $value,
            \is_float($value) => self::float($value),
            $value instanceof \BackedEnum => self::text($value->value),
            $value instanceof \Stringable => self::text((string) $value),
            default => throw UnencodableException::of($value),
        };
    }

    /** Returns the shortest text of a float. Integer types refuse exponents, so whole numbers of 64 bits have none. */
    public static function float(#[\SensitiveParameter] float $value): string
    {
        if ($value >= -(2 ** 63) && $value < 2 ** 63 && $value === (float) (int) $value && $value !== 0.0) {
            return (string) (int) $value;
        }

        return match (true) {
            is_finite($value) => \sprintf('%.*H', -1, $value), // independent of locale and ini settings
            is_nan($value) => 'NaN',
            default => $value > 0 ? 'Infinity' : '-Infinity',
        };
    }

    /** Decodes "Infinity" and "-Infinity". Date types and interval use lower case. Returns null for other texts. */
    public static function infinity(#[\SensitiveParameter] string $text): ?float
    {
        return match ($text) {
            'Infinity', 'infinity' => \INF,
            '-Infinity', '-infinity' => -\INF,
            default => null,
        };
    }
}
