<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/** Converts values of a PostgreSQL type between its text format and PHP. */
interface Type
{
    /** @throws ProtocolException when the text is not a value of the type */
    public function decode(#[\SensitiveParameter] string $text): mixed;

    /**
     * Returns a text for the type's input function. The server decides whether the text is valid. Accepts what
     * {@see self::decode()} returns, except for strings from JSON: {@see JsonType}.
     *
     * @param mixed $value any value but null
     *
     * @throws UnencodableException
     */
    public function encode(#[\SensitiveParameter] mixed $value): string;
}
