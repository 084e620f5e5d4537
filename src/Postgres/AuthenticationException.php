<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server would not have this user, or did not prove itself, or asks for a weaker proof than
 * {@see PostgresOptions::$authentication} allows. Further hosts are not tried.
 */
final class AuthenticationException extends \RuntimeException implements PostgresException
{
    /** @param string|null $sqlState as the server gave it, such as "28P01", wrong password; null when this side refused */
    private function __construct(string $message, public readonly ?string $sqlState = null, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    /**
     * @internal
     *
     * @param string $host that was reached
     */
    public static function at(string $host, string $why, ?string $sqlState = null, ?\Throwable $previous = null): self
    {
        return new self("PostgreSQL at {$host} was reached, but the login failed: {$why}", $sqlState, $previous);
    }
}
