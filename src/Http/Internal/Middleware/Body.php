<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Http\Response;

/** Reads a response's body and size. Does not call Response::getBody(), which replaces a string by a stream. */
final class Body
{
    private function __construct() {}

    public static function of(ResponseInterface $response): string|StreamInterface
    {
        return $response instanceof Response ? $response->body() : $response->getBody();
    }

    /**
     * Returns the size in bytes. If the body reports the size 0, as a pipe does, or no size, returns the value of
     * Content-Length. If that field is missing or invalid, returns 0 for a reported size of 0, and null for no size.
     */
    public static function size(ResponseInterface $response): ?int
    {
        $body = self::of($response);
        $size = \is_string($body) ? \strlen($body) : StreamSize::of($body);
        if ($size > 0) {
            return $size;
        }
        $length = $response->getHeaderLine('Content-Length');

        return preg_match('/^\d{1,18}$/D', $length) === 1 ? (int) $length : $size;
    }
}
