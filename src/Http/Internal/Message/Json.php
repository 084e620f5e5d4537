<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** Encodes values as JSON. The trace of json_encode()'s own exception would show the value, which may be secret. */
final class Json
{
    private function __construct() {}

    /** @throws \JsonException when the value can't be encoded */
    public static function encode(#[\SensitiveParameter] mixed $value): string
    {
        $json = json_encode($value, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE);

        return $json === false ? throw new \JsonException(json_last_error_msg(), json_last_error()) : $json;
    }
}
