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

/** POST /aircraft */
final readonly class AddAircraft implements RequestHandlerInterface
{
    public function __construct(private AircraftService $aircraft) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $fields = JsonBody::of($request);
        [$number, $data] = self::checked($fields);
        $added = $this->aircraft->add($number, $data);

        return Response::json($added, 201, ['Location' => "/aircraft/{$number}", 'ETag' => $added->version()]);
    }

    /**
     * @param array<array-key, mixed> $fields
     *
     * @return array{Number, AircraftData}
     *
     * @throws InvalidInputException with all faults at once
     */
    private static function checked(array $fields): array
    {
        $faults = [];
        try {
            $number = Number::of($fields['number'] ?? null);
        } catch (InvalidInputException $invalid) {
            $faults = $invalid->faults;
        }
        try {
            $data = AircraftData::of($fields);
        } catch (InvalidInputException $invalid) {
            $faults += $invalid->faults;
        }

        return isset($number, $data) ? [$number, $data] : throw new InvalidInputException($faults);
    }
}
