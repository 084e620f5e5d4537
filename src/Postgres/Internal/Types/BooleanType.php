<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

final readonly class BooleanType implements Type
{
    public function decode(#[\SensitiveParameter] string $text): bool
    {
        return $text === 't' || ($text === 'f' ? false : throw ProtocolException::unreadableValue('boolean'));
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return \is_bool($value) ? ($value ? 't' : 'f') : Scalar::text($value);
    }
}
