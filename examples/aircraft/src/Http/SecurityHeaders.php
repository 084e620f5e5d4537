<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/** Makes browsers trust the declared type of each response, and run no code but the page's own. */
final readonly class SecurityHeaders implements MiddlewareInterface
{
    private const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        . " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        return $handler->handle($request)
            ->withHeader('X-Content-Type-Options', 'nosniff')
            ->withHeader('Content-Security-Policy', self::POLICY);
    }
}
