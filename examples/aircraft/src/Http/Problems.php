<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\DuplicateEntityException;
use Aircraft\InvalidImportException;
use Aircraft\InvalidInputException;
use Aircraft\UnknownAircraftException;
use Aircraft\VersionConflictException;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Command\CommandFailedException;
use Spindle\Http\HttpException;
use Spindle\LauncherException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\QueryException;
use Spindle\Remote\BrokerException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\QueueFullException;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerStartException;

/** Turns known errors into problem documents. The surrounding middleware handles all others. */
final readonly class Problems implements MiddlewareInterface
{
    private const RETRY_AFTER = ['Retry-After' => '1'];

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        try {
            return $handler->handle($request);
        } catch (InvalidInputException $invalid) {
            return Problem::of(422, $invalid->getMessage(), ['errors' => self::byField($invalid->faults)]);
        } catch (InvalidImportException $refusal) {
            return Problem::of(
                $refusal->isDuplicate ? 409 : 422,
                $refusal->getMessage(),
                ['line' => $refusal->lineOfFile, 'errors' => self::byField($refusal->faults)],
            );
        } catch (DuplicateEntityException $duplicate) {
            return Problem::of(
                409,
                $duplicate->getMessage(),
                ['errors' => self::byField(['number' => 'already exists'])],
            );
        } catch (VersionConflictException $changed) {
            return Problem::of(412, $changed->getMessage());
        } catch (UnknownAircraftException $unknown) {
            return Problem::of(404, $unknown->getMessage());
        } catch (HttpException $refusal) {
            return Problem::of($refusal->status, $refusal->getMessage(), headers: $refusal->headers);
        } catch (PoolTimeoutException) {
            return Problem::of(
                503,
                'No connection to the database became free in time; nothing was changed',
                headers: self::RETRY_AFTER,
            );
        } catch (ConnectionFailedException|AuthenticationException|ConnectionClosedException) {
            return Problem::of(503, 'The database can not be reached; nothing was changed', headers: self::RETRY_AFTER);
        } catch (ConnectionLostException) {
            $consequence = \in_array($request->getMethod(), ['GET', 'HEAD'], true)
                ? 'nothing was changed'
                : 'the change may have been made: check before you try again';

            return Problem::of(
                503,
                "The connection to the database was lost; {$consequence}",
                headers: self::RETRY_AFTER,
            );
        } catch (QueryException $refusal) {
            return Problem::of(503, self::condition($refusal) . '; nothing was changed', headers: self::RETRY_AFTER);
        } catch (BrokerException|QueueFullException|JobLostException) {
            return Problem::of(
                503,
                'No worker is available at present; nothing was changed',
                headers: self::RETRY_AFTER,
            );
        } catch (
            TaskTimeoutException|WorkerCrashedException|WorkerStartException|CommandFailedException|LauncherException
        ) {
            return Problem::of(503, 'The work was interrupted; nothing was changed', headers: self::RETRY_AFTER);
        }
    }

    /**
     * Returns the condition of the database that caused the error.
     *
     * @throws QueryException when the statement caused it
     *
     * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
     */
    private static function condition(QueryException $refusal): string
    {
        return match (true) {
            $refusal->sqlState === '25006' => 'The database accepts no changes at present',
            $refusal->sqlState === '57014' => 'The database took too long',
            str_starts_with($refusal->sqlState, '53') => 'The database has no space or memory left',
            default => throw $refusal,
        };
    }

    /**
     * @param array<string, string> $faults
     *
     * @return list<array{field: string, detail: string}>
     */
    private static function byField(array $faults): array
    {
        return array_map(
            static fn(string $field, string $fault): array => ['field' => $field, 'detail' => $fault],
            array_keys($faults),
            $faults,
        );
    }
}
