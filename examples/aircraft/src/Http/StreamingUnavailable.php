<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\HttpException;

/** Replaces handlers of endless responses where a process serves one request at a time: one would block it. */
final readonly class StreamingUnavailable implements RequestHandlerInterface
{
    public function handle(ServerRequestInterface $request): never
    {
        throw new HttpException(501, 'This needs a server that serves many requests at once: spindle serve');
    }
}
