<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/** Encodes bytes in hexadecimal. Decodes hexadecimal, and the older format "escape" of the setting bytea_output. */
final readonly class ByteaType implements Type
{
    public function decode(#[\SensitiveParameter] string $text): string
    {
        if (!str_starts_with($text, '\x')) {
            return stripcslashes($text);
        }
        // hex2bin() raises a warning for invalid input, so the input is checked first.
        $bytes = \strlen($text) % 2 === 0 && preg_match('/[^0-9a-f]/i', $text, offset: 2) === 0
            ? hex2bin(substr($text, 2))
            : false;

        return $bytes === false ? throw ProtocolException::unreadableValue('bytea') : $bytes;
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return self::hex(self::bytes($value));
    }

    public static function hex(#[\SensitiveParameter] string $bytes): string
    {
        return '\x' . bin2hex($bytes);
    }

    /** @throws UnencodableException */
    public static function bytes(#[\SensitiveParameter] mixed $value): string
    {
        return match (true) {
            \is_string($value) => $value,
            $value instanceof \BackedEnum => (string) $value->value,
            $value instanceof \Stringable => (string) $value,
            default => Scalar::text($value),
        };
    }
}
