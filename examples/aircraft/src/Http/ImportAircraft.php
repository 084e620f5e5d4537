<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\Transfer;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** POST /aircraft/import: a CSV file, streamed into COPY. */
final readonly class ImportAircraft implements RequestHandlerInterface
{
    private const PIECE_BYTES = 65_536;

    public function __construct(private Transfer $transfer) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        ContentType::ensure($request, 'text/csv', 'CSV', 'text/csv');

        return Response::json(
            ['added' => $this->transfer->import(self::pieces($request->getBody()), ClientDisconnect::of($request))],
        );
    }

    /** @return \Generator<string> */
    private static function pieces(StreamInterface $body): \Generator
    {
        while (!$body->eof()) {
            yield $body->read(self::PIECE_BYTES);
        }
    }
}
