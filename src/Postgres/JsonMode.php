<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** What values of json and jsonb are in PHP. */
enum JsonMode
{
    /**
     * What json_decode() makes with objects as arrays. Convenient, and not what was stored: {} becomes [], {"0": 1} becomes [1], whole
     * numbers beyond 64 bits become strings, and digits beyond a float's are lost. A string as a parameter is JSON already.
     */
    case Arrays;

    /**
     * What is written back is what was read. Objects are stdClass; a number that is neither an int nor a float to the last digit is a
     * {@see JsonNumber}; a string as a parameter is a JSON string, whatever it looks like. Of a json, not jsonb, spaces and repeated
     * keys are not kept. A value that is JSON's null itself is null, which is SQL's NULL as a parameter.
     */
    case Lossless;
}
