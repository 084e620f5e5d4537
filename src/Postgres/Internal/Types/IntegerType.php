<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

final readonly class IntegerType implements Type
{
    public function decode(#[\SensitiveParameter] string $text): int
    {
        $value = (int) $text;

        return (string) $value === $text ? $value : throw ProtocolException::unreadableValue('integer');
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return Scalar::number($value);
    }
}
