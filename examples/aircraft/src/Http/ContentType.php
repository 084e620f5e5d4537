<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpException;

/** Checks the media type of a body. Only uncompressed UTF-8 is accepted. */
final class ContentType
{
    private const CHARSET = '/;\s*charset\s*=\s*"?([^";\s]*)/i';
    private const SUPPORTED = ['utf-8', 'us-ascii'];

    private function __construct() {}

    /**
     * @param string $pattern regular expression for the type, without delimiters
     * @param string $name    name of the format
     * @param string $wanted  media type that the error message recommends
     *
     * @throws HttpException 415
     */
    public static function ensure(ServerRequestInterface $request, string $pattern, string $name, string $wanted): void
    {
        $type = $request->getHeaderLine('Content-Type');
        if (preg_match("~^{$pattern}\\s*(?:;|$)~Di", $type) !== 1) {
            throw new HttpException(415, "The body must be {$name}: send it with \"Content-Type: {$wanted}\"");
        }
        if (
            preg_match(self::CHARSET, $type, $charset) === 1
            && !\in_array(strtolower($charset[1]), self::SUPPORTED, true)
        ) {
            throw new HttpException(415, "The body must be in UTF-8, not in {$charset[1]}");
        }
        if (!\in_array(strtolower($request->getHeaderLine('Content-Encoding')), ['', 'identity'], true)) {
            throw new HttpException(415, 'The body must not be compressed');
        }
    }
}
