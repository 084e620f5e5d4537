<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A connection or a pool was closed, before or during a call. */
final class ConnectionClosedException extends \RuntimeException implements PostgresException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function connection(): self
    {
        return new self('The connection to PostgreSQL is closed. Open another one');
    }

    /** @internal */
    public static function pool(): self
    {
        return new self('The pool of PostgreSQL connections is closed. Create another one');
    }

    /** @internal Returns a copy that has the stack trace of the caller. */
    public function copy(): self
    {
        return new self($this->getMessage());
    }
}
