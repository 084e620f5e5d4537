<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;

/**
 * Reads If-Match: the versions that the client has read, so that its change does not overwrite a later change.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9110#name-if-match
 */
final class Precondition
{
    private function __construct() {}

    /** @return list<string>|null accepted versions; null accepts any */
    public static function of(ServerRequestInterface $request): ?array
    {
        $header = trim($request->getHeaderLine('If-Match'));
        if ($header === '' || $header === '*') {
            return null;
        }
        // Weak tags never match, because versions are strong tags.
        preg_match_all('~(?:W/)?"[^"]*+"~', $header, $tags);

        return $tags[0];
    }
}
