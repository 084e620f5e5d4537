<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** GET /openapi.json: the description of this interface. */
final readonly class DescribeApi implements RequestHandlerInterface
{
    private const FILE = __DIR__ . '/../../openapi.json';

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return Response::file(self::FILE, $request, 'application/json');
    }
}
