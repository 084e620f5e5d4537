<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\Internal\ServerError;

/** Connecting to one host or address failed. The message is a clause that is shown after the host's name. */
final class AttemptFailedException extends \RuntimeException
{
    /** @param bool $isUnsuitable whether the server works, but its session is not of the requested kind */
    private function __construct(
        string $message,
        public readonly ?string $sqlState = null,
        public readonly bool $isAuthentication = false,
        public readonly bool $isUnsuitable = false,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    /** @param string $why reason, as a clause */
    public static function because(string $why, ?\Throwable $previous = null): self
    {
        return new self($why, previous: $previous);
    }

    /** @param string $for what the client waited for, such as "the TLS handshake" */
    public static function timedOut(string $for, float $seconds): self
    {
        return new self("no answer within {$seconds} s, while waiting for {$for}");
    }

    public static function authentication(string $why): self
    {
        return new self($why, isAuthentication: true);
    }

    public static function unsuitable(string $why): self
    {
        return new self($why, isUnsuitable: true);
    }

    public static function refused(ServerError $error): self
    {
        // The server may be unauthenticated, so its text is shortened and escaped for logs and terminals.
        $message = addcslashes(substr($error->field('M') ?? 'no message', 0, 500), "\0..\37\177");

        return new self(
            "{$message} ({$error->sqlState()})",
            $error->sqlState(),
            str_starts_with($error->sqlState(), '28'),
        );
    }
}
