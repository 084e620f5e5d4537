<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A value can't be sent as what the statement wants. Nothing was sent, and the value stands in no message. */
final class InvalidParameterException extends \InvalidArgumentException implements PostgresException
{
    private function __construct(
        string $message,
        /** Which parameter, or column of a row: the first is 1. Null where it is not one alone. */
        public readonly ?int $position = null,
        /** What get_debug_type() says of the value, or of what in it can't be sent. */
        public readonly ?string $phpType = null,
        public readonly ?string $postgresType = null,
    ) {
        parent::__construct($message);
    }

    /**
     * @internal
     *
     * @param string $reason as a clause, without the value; '' where the types say enough
     */
    public static function parameter(int $position, string $phpType, string $postgresType, string $reason): self
    {
        return self::of("The parameter \${$position}", $position, $phpType, $postgresType, $reason);
    }

    /**
     * @internal
     *
     * @param string $reason as a clause, without the value; '' where the types say enough
     */
    public static function column(int $position, string $phpType, string $postgresType, string $reason): self
    {
        return self::of("Column {$position} of a row", $position, $phpType, $postgresType, $reason);
    }

    /** @internal */
    public static function count(int $given, int $wanted): self
    {
        return new self("The statement has {$wanted} parameters, and {$given} were given");
    }

    /** @internal */
    public static function columnCount(int $given, int $wanted): self
    {
        return new self("A row has {$wanted} columns, and {$given} values were given");
    }

    /** @internal */
    public static function tooLarge(int $bytes): self
    {
        return new self("The parameters take {$bytes} bytes, which is more than a message to PostgreSQL can have. Use COPY, or large objects");
    }

    private static function of(string $what, int $position, string $phpType, string $postgresType, string $reason): self
    {
        $message = "{$what} is of the type {$phpType}, which can't be sent as {$postgresType}" . ($reason === '' ? '' : ": {$reason}");

        return new self($message, $position, $phpType, $postgresType);
    }
}
