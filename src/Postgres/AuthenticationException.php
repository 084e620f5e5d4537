<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server refused the login, did not prove its identity, or asked for a forbidden proof. Other hosts are not tried.
 *
 * A proof is forbidden when it is weaker than {@see PostgresOptions::$authentication} allows.
 */
final class AuthenticationException extends \RuntimeException implements PostgresException
{
    /**
     * @param string|null $sqlState the server's SQLSTATE, such as "28P01" for a wrong password; null from the client
     */
    private function __construct(string $message, public readonly ?string $sqlState = null, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    /**
     * @internal
     *
     * @param string $host the host that was reached
     */
    public static function at(string $host, string $why, ?string $sqlState = null, ?\Throwable $previous = null): self
    {
        return new self("PostgreSQL at {$host} was reached, but the login failed: {$why}", $sqlState, $previous);
    }
}
