<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** Converts types whose values are strings in PHP: text, similar types, and all unknown types. */
final readonly class TextType implements Type
{
    public function decode(#[\SensitiveParameter] string $text): string
    {
        return $text;
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return \is_bool($value) ? ($value ? 'true' : 'false') : Scalar::text($value);
    }
}
