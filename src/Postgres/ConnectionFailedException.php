<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Each host was unreachable, refused the connection, or did not match the {@see TargetSessionAttrs}. */
final class ConnectionFailedException extends \RuntimeException implements PostgresException
{
    /** @param string|null $sqlState last SQLSTATE that a server sent, such as "53300" (too many connections) */
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
     * @param non-empty-list<string> $reasons why each attempt failed, with the host's name
     */
    public static function everywhere(array $reasons, ?string $sqlState = null, ?\Throwable $previous = null): self
    {
        return new self('Could not connect to PostgreSQL: ' . implode('; ', $reasons), $sqlState, $previous);
    }

    /** @internal `$reason` contains the host. */
    public static function cancelNotSent(string $reason, ?\Throwable $previous = null): self
    {
        return new self("Could not send a cancel request to PostgreSQL: {$reason}", null, $previous);
    }

    /** @internal Returns a copy that has the stack trace of the caller. */
    public function copy(): self
    {
        return new self($this->getMessage(), $this->sqlState, $this->getPrevious());
    }
}
