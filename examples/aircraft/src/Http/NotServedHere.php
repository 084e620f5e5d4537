<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\HttpException;

/** Stands for a handler where a process serves one request at a time: one that never ends would keep it from all others. */
final readonly class NotServedHere implements RequestHandlerInterface
{
    public function handle(ServerRequestInterface $request): never
    {
        throw new HttpException(501, 'This needs a server that serves many requests at once: spindle serve');
    }
}
