<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\JsonNumber;

/**
 * Preserves JSON numbers that neither int nor float can represent exactly. PHP's JSON functions would change such a
 * number. So they get a string instead: a random prefix (the mark), and the number.
 */
final class JsonMarks
{
    /** The mark; '' until the first use. */
    private static string $prefix = '';

    /** @var array<int, true> fibers within {@see encode()}, by object id; 0 for {main}. Other fibers get no marks */
    private static array $encodingFibers = [];

    /**
     * Turns a number into a marked string if PHP's JSON functions would change it. Returns other tokens unchanged.
     *
     * @param string $token a number, or a string with its quotes
     */
    public static function markIfInexact(#[\SensitiveParameter] string $token): string
    {
        return $token[0] === '"' || self::isExact($token) ? $token : '"' . self::prefix() . "{$token}\"";
    }

    /** Returns the string for json_encode(): within {@see encode()} the mark and the number, otherwise the number. */
    public static function forJsonEncode(string $number): string
    {
        return isset(self::$encodingFibers[self::fiberId()]) ? self::prefix() . $number : $number;
    }

    /** @param \Closure(): (string|false) $encode calls json_encode(). Then numbers replace the marked strings */
    public static function encode(#[\SensitiveParameter] \Closure $encode): string|false
    {
        $fiber = self::fiberId();
        $isOuterCall = !isset(self::$encodingFibers[$fiber]);
        self::$encodingFibers[$fiber] = true;
        try {
            $json = $encode();
        } finally {
            if ($isOuterCall) {
                unset(self::$encodingFibers[$fiber]);
            }
        }

        return $json === false || self::$prefix === ''
            ? $json
            : preg_replace('~"' . self::$prefix . '([^"]*+)"~', '$1', $json) ?? $json;
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

    private static function fiberId(): int
    {
        $fiber = \Fiber::getCurrent();

        return $fiber === null ? 0 : spl_object_id($fiber);
    }

    private static function prefix(): string
    {
        return self::$prefix === '' ? self::$prefix = 'number ' . bin2hex(random_bytes(12)) . ': ' : self::$prefix;
    }
}
