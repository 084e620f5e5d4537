<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Spindle\Internal\Excerpt;
use Spindle\Internal\JsonFault;

final class Json
{
    private const MAX_KEY_BYTES = 80;

    /** @throws \JsonException with the path of the part that can't be encoded, if the path is known */
    public static function encode(#[\SensitiveParameter] mixed $value): string
    {
        // No JSON_THROW_ON_ERROR, because the trace of that exception would show the value, which may be secret.
        $json = json_encode($value, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE);
        if ($json !== false) {
            return $json;
        }
        [$error, $message] = [json_last_error(), json_last_error_msg()];
        $fault = JsonFault::find($value, $error);

        throw new \JsonException($message . match (true) {
            $fault !== null => ' (in ' . self::describe($fault) . ')',
            $error === \JSON_ERROR_DEPTH => ': arrays and objects have more than 512 levels',
            default => '',
        }, $error);
    }

    /** Returns a path such as `$value['items'][3]`. */
    private static function describe(#[\SensitiveParameter] JsonFault $fault): string
    {
        $keys = array_map(
            static fn(int|string $key): string => \is_int($key)
                ? "[{$key}]"
                : "['" . addcslashes(Excerpt::of($key, self::MAX_KEY_BYTES), "\0..\37\177'\\") . "']",
            $fault->path,
        );

        return ($fault->isKey ? 'a key of ' : '') . '$value' . implode('', $keys);
    }
}
