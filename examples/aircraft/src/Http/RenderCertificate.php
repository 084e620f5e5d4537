<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\AircraftService;
use Aircraft\Certificate;
use Aircraft\Number;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;
use Spindle\Worker\Executor;

/** GET /aircraft/{number}/certificate: a worker process does the CPU-bound work, so that other requests go on. */
final readonly class RenderCertificate implements RequestHandlerInterface
{
    public function __construct(private AircraftService $aircraft, private Executor $executor) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $leaving = ClientDisconnect::of($request);
        $aircraft = $this->aircraft->get(Number::of($request->getAttribute('number')), $leaving);
        $certificate = $this->executor->submit(new Certificate($aircraft), $leaving)->await();

        return Response::text($certificate, headers: ['Content-Type' => 'image/svg+xml']);
    }
}
