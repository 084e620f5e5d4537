<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** Converts numeric values to strings, which keep all digits. */
final readonly class NumericType implements Type
{
    public function decode(#[\SensitiveParameter] string $text): string
    {
        return $text;
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return Scalar::number($value);
    }
}
