<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Http\Response;

/** Reads a response's body and size. Avoids getBody(), which replaces a string in the response by a stream. */
final class Body
{
    private function __construct() {}

    public static function of(ResponseInterface $response): string|StreamInterface
    {
        return $response instanceof Response ? $response->body() : $response->getBody();
    }

    /** Returns the size in bytes. If it is 0 or unknown, returns Content-Length, or 0 or null without that field. */
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
