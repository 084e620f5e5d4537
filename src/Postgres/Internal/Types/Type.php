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
     * Encodes a value as text. The server checks whether the text is valid. Accepts each result of
     * {@see self::decode()}, except for a string that was decoded from JSON (see {@see JsonType}).
     *
     * @param mixed $value any value except null
     *
     * @throws UnencodableException
     */
    public function encode(#[\SensitiveParameter] mixed $value): string;
}
