<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server refused the login, did not prove its identity, or requested an authentication method that
 * {@see PostgresOptions::$authentication} does not allow. As in libpq, the client then does not try the hosts that come
 * later in {@see PostgresOptions::$hosts}.
 */
final class AuthenticationException extends \RuntimeException implements PostgresException
{
    /** @param string|null $sqlState the server's SQLSTATE, such as "28P01"; null when the client ended the login */
    private function __construct(
        string $message,
        public readonly ?string $sqlState = null,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    /** @internal */
    public static function at(
        string $host,
        string $reason,
        ?string $sqlState = null,
        ?\Throwable $previous = null,
    ): self {
        return new self("Could not log in to PostgreSQL at {$host}: {$reason}", $sqlState, $previous);
    }

    /** @internal Returns a copy that has the stack trace of the caller. */
    public function copy(): self
    {
        return new self($this->getMessage(), $this->sqlState, $this->getPrevious());
    }
}
