<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

final readonly class FloatType implements Type
{
    public function decode(#[\SensitiveParameter] string $text): float
    {
        if (is_numeric($text)) {
            return (float) $text;
        }

        return $text === 'NaN' ? \NAN : Scalar::infinity($text) ?? throw ProtocolException::unreadableValue('float');
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return Scalar::number($value);
    }
}
