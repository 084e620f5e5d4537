<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\InvalidInputException;
use Aircraft\ReportBy;
use Aircraft\Reports;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** POST /reports {"by": "title", "top": 10} */
final readonly class MakeReport implements RequestHandlerInterface
{
    private const DEFAULT_TOP = 10;
    private const MAX_TOP = 1_000;

    public function __construct(private Reports $reports) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $fields = JsonBody::of($request);
        $by = \is_string($fields['by'] ?? null) ? ReportBy::tryFrom($fields['by']) : null;
        $faults = $by === null
            ? ['by' => 'must be one of ' . implode(', ', array_column(ReportBy::cases(), 'value'))]
            : [];
        try {
            $top = WholeNumber::of('top', $fields['top'] ?? self::DEFAULT_TOP, 1, self::MAX_TOP);
        } catch (InvalidInputException $invalid) {
            $faults += $invalid->faults;
        }
        if ($by === null || !isset($top)) {
            throw new InvalidInputException($faults);
        }

        $counts = $this->reports->count($by, $top, ClientDisconnect::of($request));

        return Response::json(['by' => $by, 'counts' => $counts]);
    }
}
