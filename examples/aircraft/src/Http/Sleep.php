<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;
use Spindle\Postgres\PostgresLink;

use function Amp\async;
use function Amp\Future\await;

/**
 * GET /sleep, or GET /sleep?n=10 for N statements at once: waits for the database.
 *
 * Each statement occupies a connection while it sleeps.
 */
final readonly class Sleep implements RequestHandlerInterface
{
    private const MAX_SLEEPS = 100;

    public function __construct(private PostgresLink $database) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $count = WholeNumber::of('n', $request->getQueryParams()['n'] ?? 1, 1, self::MAX_SLEEPS);
        $leaving = ClientDisconnect::of($request);
        $sleep = function () use ($leaving): array {
            $affected = $this->database->execute('SELECT pg_sleep(1)', [], $leaving);

            return [
                'affected' => $affected,
                'uuid' => $this->database->query('SELECT gen_random_uuid()', [], $leaving)->value(),
            ];
        };

        // Results arrive in the order of completion. Their keys would turn the list into a JSON object.
        return Response::json(
            $count === 1 ? $sleep() : array_values(await(array_map(static fn() => async($sleep), range(1, $count)))),
        );
    }
}
