<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** PHP types for values of json and jsonb. */
enum JsonMode
{
    /**
     * Decodes like json_decode() with objects as arrays. Lossy: {} becomes [], and {"0": 1} becomes [1].
     *
     * Whole numbers beyond 64 bits become strings, and floats may lose digits. A string parameter is JSON already.
     */
    case Arrays;

    /**
     * Writes back what was read. Objects are stdClass. Numbers that no int or float holds are {@see JsonNumber}.
     *
     * A string parameter is a JSON string, whatever it contains. Spaces and repeated keys of a json (not jsonb) are
     * lost. A JSON null as the whole value is PHP's null, which is SQL's NULL as a parameter.
     */
    case Lossless;
}
