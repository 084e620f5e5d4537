<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** PHP types for values of json and jsonb. */
enum JsonMode
{
    /**
     * Decodes like json_decode() with objects as arrays. Convenient, but lossy: {} becomes [], and {"0": 1} becomes
     * [1].
     *
     * Whole numbers beyond 64 bits become strings, and digits beyond a float's are lost. A string parameter is JSON
     * already.
     */
    case Arrays;

    /**
     * Writes back what was read. Objects are stdClass. A number that no int or float holds exactly is a
     * {@see JsonNumber}.
     *
     * A string parameter is a JSON string, whatever it contains. Spaces and repeated keys of a json (not jsonb) are
     * lost. A JSON null as the whole value is PHP's null, which is SQL's NULL as a parameter.
     */
    case Lossless;
}
