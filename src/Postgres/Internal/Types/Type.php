<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/** How values of a type of PostgreSQL are told in its text format, and what they are in PHP. */
interface Type
{
    /** @throws ProtocolException when it is no text of such a value */
    public function decode(#[\SensitiveParameter] string $text): mixed;

    /**
     * A text that the type's input function may take: whether it does is the server's matter. What {@see self::decode()} gives
     * is taken, and a string goes as it is.
     *
     * @param mixed $value anything but null
     *
     * @throws UnencodableException
     */
    public function encode(#[\SensitiveParameter] mixed $value): string;
}
