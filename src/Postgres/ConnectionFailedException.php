<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** No host gave a connection: each was unreachable, refused, or was not of the requested kind. */
final class ConnectionFailedException extends \RuntimeException implements PostgresException
{
    /**
     * @param string|null $sqlState SQLSTATE of the last server that refused, such as "53300" for too many connections
     */
    private function __construct(
        string $message,
        public readonly ?string $sqlState = null,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    /**
     * @internal
     *
     * @param non-empty-list<string> $reasons one for each attempt, with its host
     */
    public static function everywhere(array $reasons, ?string $sqlState = null, ?\Throwable $previous = null): self
    {
        return new self('Could not connect to PostgreSQL: ' . implode('; ', $reasons), $sqlState, $previous);
    }

    /**
     * @internal
     *
     * @param string $why reason, with the host
     */
    public static function cancelNotSent(string $why, ?\Throwable $previous = null): self
    {
        return new self("Could not send a cancel request to PostgreSQL: {$why}", null, $previous);
    }
}
