<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\Transfer;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** GET /aircraft/export: all aircraft as CSV, sent while the database delivers them. */
final readonly class ExportAircraft implements RequestHandlerInterface
{
    public function __construct(private Transfer $transfer) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $csv = $this->transfer->export(ClientDisconnect::of($request));
        $csv->current(); // a failure shows before the response begins

        return Response::stream(
            $csv,
            'text/csv; charset=utf-8',
            headers: ['Content-Disposition' => 'attachment; filename="aircraft.csv"'],
        );
    }
}
