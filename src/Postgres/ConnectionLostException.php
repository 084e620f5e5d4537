<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Postgres\Internal\ServerError;

/** A connection was lost. A call in progress is not retried, because its statement may have been executed. */
class ConnectionLostException extends \RuntimeException implements PostgresException
{
    /** @param string|null $sqlState SQLSTATE that the server sent when it ended the connection; null if it sent none */
    final private function __construct(string $message, public readonly ?string $sqlState, ?\Throwable $previous)
    {
        parent::__construct($message, 0, $previous);
    }

    /** @internal `$reason` follows a colon in the message. */
    final public static function while(
        string $reason,
        ?\Throwable $previous = null,
        #[\SensitiveParameter]
        ?ServerError $error = null,
    ): self {
        return new self("The connection to PostgreSQL was lost: {$reason}", $error?->sqlState(), $previous);
    }

    /** @internal Returns the exception for a call that sent nothing, because the connection was lost before. */
    final public static function earlier(self $loss): self
    {
        return new self("Nothing was sent: {$loss->getMessage()}", $loss->sqlState, $loss);
    }

    /** @internal Returns the loss without the text of {@see earlier()}, for a call that has already sent something. */
    final public function afterSending(): self
    {
        $previous = $this->getPrevious();

        return $previous instanceof self ? $previous : $this;
    }

    /** @internal Returns the exception for a COMMIT whose answer was not received. */
    final public static function committing(self|ConnectionClosedException $loss): CommitUnknownException
    {
        return new CommitUnknownException(
            "It is unknown whether the transaction was committed. {$loss->getMessage()}",
            $loss instanceof self ? $loss->sqlState : null,
            $loss,
        );
    }

    /** @internal Returns a copy that has the stack trace of the caller. */
    final public function copy(): static
    {
        return new static($this->getMessage(), $this->sqlState, $this->getPrevious());
    }
}
