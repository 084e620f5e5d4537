<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Response;

/** Reads a response's body and size. Does not convert a string to a stream, because that changes the response. */
final class Body
{
    private function __construct() {}

    public static function of(ResponseInterface $response): string|StreamInterface
    {
        return $response instanceof Response ? $response->body() : $response->getBody();
    }

    /** Returns the size in bytes; null when unknown. */
    public static function size(ResponseInterface $response): ?int
    {
        $length = $response->getHeaderLine('Content-Length');
        if (preg_match('/^\d{1,18}$/D', $length) === 1) {
            return (int) $length;
        }
        $body = self::of($response);

        return \is_string($body) ? \strlen($body) : $body->getSize();
    }
}
