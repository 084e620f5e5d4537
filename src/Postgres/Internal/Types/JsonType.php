<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/**
 * Arrays and objects are encoded as JSON; a string is JSON already, and so is what a Stringable gives that isn't JsonSerializable.
 * Objects become arrays, and whole numbers of more than 64 bits strings.
 */
final readonly class JsonType implements TakesLists
{
    /** PHP's parser ends below 5000. */
    private const DEPTH = 4096;

    private const FLAGS = \JSON_PRESERVE_ZERO_FRACTION | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE;

    public function decode(#[\SensitiveParameter] string $text): mixed
    {
        $value = json_decode($text, true, self::DEPTH, \JSON_BIGINT_AS_STRING);
        if ($value === null && json_last_error() !== \JSON_ERROR_NONE) {
            throw ProtocolException::value('json', json_last_error_msg());
        }

        return $value;
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return match (true) {
            \is_bool($value) => $value ? 'true' : 'false',
            \is_array($value), $value instanceof \JsonSerializable, $value instanceof \BackedEnum => self::json($value),
            \is_object($value) && !$value instanceof \Stringable && !$value instanceof \Closure => self::json($value),
            default => Scalar::text($value),
        };
    }

    /**
     * @param array<mixed>|object $value
     *
     * @throws UnencodableException
     */
    private static function json(#[\SensitiveParameter] array|object $value): string
    {
        $precision = \ini_get('serialize_precision');
        if ($precision !== '-1') {
            ini_set('serialize_precision', '-1'); // or floats lose digits
        }
        try {
            $json = json_encode($value, self::FLAGS, self::DEPTH);
        } finally {
            if ($precision !== '-1') {
                ini_set('serialize_precision', (string) $precision);
            }
        }

        return $json === false ? throw UnencodableException::of($value, json_last_error_msg()) : $json;
    }
}
