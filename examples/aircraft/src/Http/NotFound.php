<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\HttpException;

final readonly class NotFound implements RequestHandlerInterface
{
    public function handle(ServerRequestInterface $request): never
    {
        throw new HttpException(404, "There is nothing at {$request->getRequestTarget()}");
    }
}
