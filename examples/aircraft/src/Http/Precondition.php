<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;

/**
 * What a client has read before it changes something, so that it undoes no change of another.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9110#name-if-match
 */
final class Precondition
{
    private function __construct() {}

    /** @return list<string>|null versions of which it has to be one; null where any will do */
    public static function of(ServerRequestInterface $request): ?array
    {
        $header = trim($request->getHeaderLine('If-Match'));
        if ($header === '' || $header === '*') {
            return null;
        }
        // Weak tags never match here.
        preg_match_all('~(?:W/)?"[^"]*+"~', $header, $tags);

        return $tags[0];
    }
}
