<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Spindle\Http\HttpException;

/** @see https://www.rfc-editor.org/rfc/rfc6265#section-5.4 */
final class Cookies
{
    /**
     * Returns cookies by name, as in PHP's $_COOKIE. If several cookies have the same name, the first one is returned.
     * Values are percent-decoded; a `+` is not a space. Names are not changed, unlike in PHP.
     *
     * @param list<string> $headers
     *
     * @return array<array-key, string>
     *
     * @throws HttpException 400 for more names of cookies than max_input_vars, because PHP would leave some out
     */
    public static function parse(#[\SensitiveParameter] array $headers): array
    {
        $limit = ini_parse_quantity((string) \ini_get('max_input_vars'));
        $cookies = [];
        foreach (explode(';', implode(';', $headers)) as $pair) {
            $parts = explode('=', $pair, 2);
            $name = trim($parts[0], " \t");
            if ($name !== '' && isset($parts[1])) {
                $cookies[$name] ??= rawurldecode(trim($parts[1], " \t"));
                if (\count($cookies) > $limit) {
                    throw new HttpException(400, "The request has more than {$limit} cookies");
                }
            }
        }

        return $cookies;
    }
}
