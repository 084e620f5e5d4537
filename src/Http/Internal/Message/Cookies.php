<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** @see https://www.rfc-editor.org/rfc/rfc6265#section-5.4 */
final class Cookies
{
    private function __construct() {}

    /**
     * Names and values as PHP's $_COOKIE has them: the first of a name counts, values are percent-decoded, names are taken literally.
     *
     * @param list<string> $headers
     *
     * @return array<array-key, string>
     */
    public static function parse(array $headers): array
    {
        $cookies = [];
        foreach (explode(';', implode(';', $headers)) as $pair) {
            $parts = explode('=', $pair, 2);
            $name = trim($parts[0], " \t");
            if ($name !== '' && isset($parts[1])) {
                $cookies[$name] ??= urldecode(trim($parts[1], " \t"));
            }
        }

        return $cookies;
    }
}
