<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Conversion of json and jsonb values to and from PHP. */
enum JsonMode
{
    /**
     * Decodes like json_decode() with objects as arrays. This loses information: {} becomes [], {"0": 1} becomes [1].
     * Whole numbers beyond 64 bits become strings, and floats may lose digits. A string parameter must be JSON text.
     */
    case Arrays;

    /**
     * A value that is read and written back is the same JSON value. Objects are stdClass. A number whose text would
     * change as an int or float, such as 1.50, is a {@see JsonNumber}. A string parameter is encoded as a JSON string.
     *
     * Two things change. Values of json (not jsonb) lose their spaces, and keep only the last of repeated keys. A value
     * that is JSON's null is read as PHP's null, and PHP's null is written as SQL's NULL.
     *
     * PHP can't represent two kinds of json values (not jsonb): a key that begins with `\u0000`, and half of a
     * surrogate pair such as `"\ud800"`. Reading such a value causes a {@see ProtocolException}. Select it as text.
     */
    case Lossless;
}
