<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\AircraftService;
use Aircraft\Number;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** GET /aircraft/{number} */
final readonly class GetAircraft implements RequestHandlerInterface
{
    public function __construct(private AircraftService $aircraft) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $aircraft = $this->aircraft->get(Number::of($request->getAttribute('number')));

        return Response::json($aircraft, headers: ['ETag' => $aircraft->version()]);
    }
}
