<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\AircraftService;
use Aircraft\Number;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** DELETE /aircraft/{number} */
final readonly class DeleteAircraft implements RequestHandlerInterface
{
    public function __construct(private AircraftService $aircraft) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $this->aircraft->delete(Number::of($request->getAttribute('number')), Precondition::of($request));

        return new Response(204);
    }
}
