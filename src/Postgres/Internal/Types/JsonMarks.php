<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\JsonNumber;

/**
 * Preserves JSON numbers whose text PHP's JSON functions would change, such as 1.50 or a number with 30 digits. In
 * place of such a number, these functions get a string: a random prefix (the mark), and the number.
 */
final class JsonMarks
{
    /** Number of stack frames to search first: two of this class, jsonSerialize(), json_encode() and its caller. */
    private const DIRECT_FRAMES = 5;

    private static string $prefix = '';

    /** Number of calls of {@see encode()} that have not ended, in any fiber. */
    private static int $encodings = 0;

    /**
     * Turns a number into a marked string if PHP's JSON functions would change it. Returns other tokens unchanged.
     *
     * @param string $token a number, or a string with its quotes
     */
    public static function markIfInexact(#[\SensitiveParameter] string $token): string
    {
        return $token[0] === '"' || self::isExact($token) ? $token : '"' . self::prefix() . "{$token}\"";
    }

    /** Returns the value for jsonSerialize(): the number, with the mark if {@see encode()} has called json_encode(). */
    public static function forJsonEncode(string $number): string
    {
        return self::$encodings > 0 && self::isCalledByEncode() ? self::prefix() . $number : $number;
    }

    /**
     * Calls json_encode(), and replaces the marked strings in its result by numbers.
     *
     * @param int<1, max> $depth
     */
    public static function encode(#[\SensitiveParameter] mixed $value, int $flags, int $depth): string|false
    {
        ++self::$encodings;
        try {
            $json = json_encode($value, $flags, $depth);
        } finally {
            --self::$encodings;
        }
        if ($json === false || self::$prefix === '' || !str_contains($json, self::$prefix)) {
            return $json;
        }

        // Other code may put the result of jsonSerialize() into a key or a longer string. There, the mark is removed.
        $pattern = '~(?<!\\\\)"' . self::$prefix . '([\d.eE+-]++)"(?!:)|' . self::$prefix . '~';

        return preg_replace($pattern, '$1', $json) ?? $json;
    }

    /** Replaces the marked strings in a decoded value by {@see JsonNumber} objects. */
    public static function unmark(#[\SensitiveParameter] mixed $value): mixed
    {
        if (\is_string($value)) {
            $prefix = self::prefix();

            return str_starts_with($value, $prefix) ? new JsonNumber(substr($value, \strlen($prefix))) : $value;
        }
        if (\is_array($value)) {
            return array_map(self::unmark(...), $value);
        }
        if ($value instanceof \stdClass) {
            foreach (get_object_vars($value) as $name => $one) {
                $value->{$name} = self::unmark($one);
            }
        }

        return $value;
    }

    /** Returns whether PHP's JSON functions read and write the number without a change. */
    private static function isExact(string $number): bool
    {
        return (string) (int) $number === $number
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

    /** Returns whether the innermost json_encode() of this fiber was called by {@see encode()}. */
    private static function isCalledByEncode(): bool
    {
        // The nearest frames are searched first, because reading the whole stack takes longer.
        foreach ([self::DIRECT_FRAMES, 0] as $limit) {
            $isJsonEncode = false;
            foreach (debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, $limit) as $frame) {
                $class = $frame['class'] ?? '';
                if ($isJsonEncode || $class === \Fiber::class) {
                    return $class === self::class && $frame['function'] === 'encode';
                }
                $isJsonEncode = $class === '' && $frame['function'] === 'json_encode';
            }
        }

        return false;
    }

    private static function prefix(): string
    {
        return self::$prefix === '' ? self::$prefix = 'number ' . bin2hex(random_bytes(12)) . ': ' : self::$prefix;
    }
}
