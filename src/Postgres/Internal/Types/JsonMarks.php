<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\JsonNumber;

/** Passes numbers that no PHP type can hold through PHP's JSON functions, as strings with a random prefix. */
final class JsonMarks
{
    private static string $mark = '';

    /** Whether JSON is encoded by {@see encode()} now. */
    private static bool $encoding = false;

    /** @param string $token a quoted string, which stays unchanged, or a number */
    public static function mark(#[\SensitiveParameter] string $token): string
    {
        return $token[0] === '"' || self::isExact($token) ? $token : '"' . self::get() . "{$token}\"";
    }

    /** Returns what json_encode() gets for a number's text. */
    public static function marked(string $number): string
    {
        return self::$encoding ? self::get() . $number : $number;
    }

    /**
     * Encodes JSON, with numbers in place of the marked strings.
     *
     * @param \Closure(): (string|false) $encode
     */
    public static function encode(#[\SensitiveParameter] \Closure $encode): string|false
    {
        $before = self::$encoding;
        self::$encoding = true;
        try {
            $json = $encode();
        } finally {
            self::$encoding = $before;
        }

        return $json === false || self::$mark === ''
            ? $json
            : preg_replace('~"' . self::$mark . '([^"]*+)"~', '$1', $json) ?? $json;
    }

    /** Replaces marked strings in a decoded value by numbers. */
    public static function numbers(#[\SensitiveParameter] mixed $value): mixed
    {
        if (\is_string($value)) {
            return str_starts_with($value, self::get()) ? new JsonNumber(substr($value, \strlen(self::get()))) : $value;
        }
        if (\is_array($value)) {
            return array_map(self::numbers(...), $value);
        }
        if ($value instanceof \stdClass) {
            foreach (get_object_vars($value) as $name => $one) {
                $value->{$name} = self::numbers($one);
            }
        }

        return $value;
    }

    /** Whether PHP writes a number in the same way as it reads it. */
    private static function isExact(string $number): bool
    {
        return preg_match('/^(?:0|-?[1-9]\d{0,17})$/D', $number) === 1
            || is_numeric($number)
            && is_finite((float) $number)
            && strpbrk($number, '.eE') !== false
            && self::float((float) $number) === $number;
    }

    private static function float(float $number): string
    {
        $text = \sprintf('%.*H', -1, $number);

        return strpbrk($text, '.eE') === false ? "{$text}.0" : $text;
    }

    private static function get(): string
    {
        return self::$mark === '' ? self::$mark = 'number ' . bin2hex(random_bytes(12)) . ': ' : self::$mark;
    }
}
