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
    public static function of(ResponseInterface $response): string|StreamInterface
    {
        return $response instanceof Response ? $response->body() : $response->getBody();
    }

    /**
     * Returns the size in bytes. If the body reports the size 0 or no size, returns the value of Content-Length. If
     * that field is missing or invalid, returns 0 for an empty body, and null otherwise. A pipe reports the size 0, so
     * a body of size 0 counts as empty only if it is a string or seekable.
     */
    public static function size(ResponseInterface $response): ?int
    {
        $body = self::of($response);
        $size = \is_string($body) ? \strlen($body) : StreamSize::of($body);
        if ($size > 0) {
            return $size;
        }
        $length = $response->getHeaderLine('Content-Length');

        return match (true) {
            preg_match('/^\d{1,18}$/D', $length) === 1 => (int) $length,
            \is_string($body) || $body->isSeekable() => $size,
            default => null,
        };
    }
}
