<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\AircraftService;
use Aircraft\Number;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** GET /aircraft?after=D-AIMA&limit=50 */
final readonly class ListAircraft implements RequestHandlerInterface
{
    private const DEFAULT_LIMIT = 50;
    private const MAX_LIMIT = 500;

    public function __construct(private AircraftService $aircraft) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $query = $request->getQueryParams();
        $limit = WholeNumber::of('limit', $query['limit'] ?? self::DEFAULT_LIMIT, 1, self::MAX_LIMIT);
        $page = $this->aircraft->list(
            isset($query['after']) ? Number::of($query['after'], 'after') : null,
            $limit,
            ClientDisconnect::of($request),
        );
        $last = $page->hasMore ? $page->aircraft[\count($page->aircraft) - 1]->number : null;

        return Response::json(
            ['aircraft' => $page->aircraft, 'next' => $last === null ? null : "/aircraft?after={$last}&limit={$limit}"],
        );
    }
}
