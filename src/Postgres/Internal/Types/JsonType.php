<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Internal\JsonFault;
use Spindle\Postgres\JsonMode;
use Spindle\Postgres\ProtocolException;

/**
 * Converts json and jsonb. In the mode {@see JsonMode::Arrays}, arrays and objects are encoded as JSON. But a string,
 * or a Stringable that is not JsonSerializable, must already contain JSON. JSON objects are decoded as arrays, and
 * whole numbers beyond 64 bits as strings. In the mode {@see JsonMode::Lossless}, every value is encoded as JSON.
 */
final readonly class JsonType implements ListValuedType
{
    /** Maximum depth of arrays and objects. json_decode() fails at about 5000 levels, even with a larger $depth. */
    private const MAX_DEPTH = 4096;

    private const ENCODE_FLAGS = \JSON_PRESERVE_ZERO_FRACTION | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE;

    /** Replaces escapes by bytes that JSON can't contain. Then each remaining quotation mark delimits a string. */
    private const ESCAPES = ['\\\\' => "\1\1", '\\"' => "\2\2"];

    /** Matches a string or a number. A repeated group could exceed pcre.backtrack_limit in a long string. */
    private const TOKEN_PATTERN = '~"[^"]*+"|-?\d[\d.eE+-]*+~';

    public function __construct(private JsonMode $mode = JsonMode::Arrays) {}

    public function decode(#[\SensitiveParameter] string $text): mixed
    {
        $isLossless = $this->mode === JsonMode::Lossless;
        $marked = $isLossless
            ? str_replace(self::ESCAPES, array_keys(self::ESCAPES), (string) preg_replace_callback(
                self::TOKEN_PATTERN,
                static fn(array $token): string => JsonMarks::markIfInexact($token[0]),
                str_replace(array_keys(self::ESCAPES), self::ESCAPES, $text),
            ))
            : $text;
        $value = json_decode($marked, !$isLossless, self::MAX_DEPTH, \JSON_BIGINT_AS_STRING);
        if ($value === null && json_last_error() !== \JSON_ERROR_NONE) {
            throw ProtocolException::unreadableValue(
                'json',
                'json_decode() failed (' . json_last_error_msg()
                    . '). Select the value as text instead, such as column::text',
            );
        }

        return $marked === $text ? $value : JsonMarks::unmark($value);
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return match (true) {
            $this->mode === JsonMode::Lossless && !$value instanceof \Closure => self::json($value),
            \is_bool($value) => $value ? 'true' : 'false',
            \is_array($value), $value instanceof \JsonSerializable, $value instanceof \BackedEnum => self::json($value),
            \is_object($value) && !$value instanceof \Stringable && !$value instanceof \Closure => self::json($value),
            default => Scalar::text($value),
        };
    }

    private static function json(#[\SensitiveParameter] mixed $value): string
    {
        $precision = \ini_get('serialize_precision');
        if ($precision !== '-1') {
            ini_set('serialize_precision', '-1'); // otherwise floats lose digits
        }
        try {
            $json = JsonMarks::encode($value, self::ENCODE_FLAGS, self::MAX_DEPTH);
        } finally {
            if ($precision !== '-1') {
                ini_set('serialize_precision', (string) $precision);
            }
        }

        return $json === false ? throw self::failure($value) : $json;
    }

    private static function failure(#[\SensitiveParameter] mixed $value): UnencodableException
    {
        $reason = json_last_error_msg();
        $fault = JsonFault::find($value, json_last_error());

        return $fault === null
            ? UnencodableException::of($value, $reason)
            : UnencodableException::of($fault->part, $reason, $fault->path);
    }
}
