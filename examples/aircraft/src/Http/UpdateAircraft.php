<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\AircraftData;
use Aircraft\AircraftService;
use Aircraft\InvalidInputException;
use Aircraft\Number;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** PUT /aircraft/{number} */
final readonly class UpdateAircraft implements RequestHandlerInterface
{
    public function __construct(private AircraftService $aircraft) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $number = Number::of($request->getAttribute('number'));
        $fields = JsonBody::of($request);
        if (($fields['number'] ?? (string) $number) !== (string) $number) {
            throw new InvalidInputException(
                [
                    'number' => 'must be the one in the path, or left out: an aircraft keeps its number',
                ] + AircraftData::faults($fields),
            );
        }

        $updated = $this->aircraft->update($number, AircraftData::of($fields), Precondition::of($request));

        return Response::json($updated, headers: ['ETag' => $updated->version()]);
    }
}
