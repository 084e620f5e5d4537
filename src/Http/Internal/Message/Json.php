<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** Encodes values as JSON. The trace of json_encode()'s own exception would show the value, which may be secret. */
final class Json
{
    private function __construct() {}

    /** @throws \JsonException with the path of the part that can't be encoded, if the path is known */
    public static function encode(#[\SensitiveParameter] mixed $value): string
    {
        $json = json_encode($value, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE);
        if ($json !== false) {
            return $json;
        }
        [$error, $message] = [json_last_error(), json_last_error_msg()];
        $path = JsonFault::find($value, $error);

        throw new \JsonException($message . ($path === null ? '' : " (in {$path})"), $error);
    }
}
