<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The driver does not support an option or a method. The message names a driver that does. Nothing was sent. */
final class UnsupportedException extends \LogicException implements PostgresException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function with(string $what, string $reason): self
    {
        return new self("{$what} is not supported with ext-pgsql: {$reason}. Use the native driver");
    }
}
