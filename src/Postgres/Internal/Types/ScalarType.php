<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/**
 * Converts numbers, booleans, text and all unknown types. A value of the type numeric is decoded to a string, because a
 * string keeps all digits.
 */
final readonly class ScalarType implements Type
{
    /**
     * @param int  $kind     a constant of {@see Types}
     * @param bool $isNumber whether true and false are encoded as 1 and 0
     */
    public function __construct(private int $kind, private bool $isNumber = false) {}

    public function decode(#[\SensitiveParameter] string $text): int|float|bool|string
    {
        return match ($this->kind) {
            Types::INT => (string) (int) $text === $text
                ? (int) $text
                : throw ProtocolException::unreadableValue('integer'),
            Types::FLOAT => self::float($text),
            Types::BOOL => match ($text) {
                't' => true,
                'f' => false,
                default => throw ProtocolException::unreadableValue('boolean'),
            },
            default => $text,
        };
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return match (true) {
            !\is_bool($value) => Scalar::text($value),
            $this->isNumber => $value ? '1' : '0',
            $this->kind === Types::BOOL => $value ? 't' : 'f',
            default => $value ? 'true' : 'false',
        };
    }

    private static function float(#[\SensitiveParameter] string $text): float
    {
        return match (true) {
            is_numeric($text) => (float) $text,
            $text === 'NaN' => \NAN,
            default => Scalar::infinity($text) ?? throw ProtocolException::unreadableValue('float'),
        };
    }
}
