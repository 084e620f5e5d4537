<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A parameter, or a row for copyFrom(), can't be sent, for example because of its type. The message shows no value. */
final class InvalidParameterException extends \InvalidArgumentException implements PostgresException
{
    private function __construct(
        string $message,
        /** Number of the parameter or of the row's column, starting at 1; null when no single value is the cause. */
        public readonly ?int $position = null,
        /** Result of get_debug_type() for the value, or for the part of it that can't be sent. */
        public readonly ?string $phpType = null,
        public readonly ?string $postgresType = null,
    ) {
        parent::__construct($message);
    }

    /** @internal `$reason` is a clause that does not contain the value; '' if the two types explain the failure. */
    public static function parameter(int $position, string $phpType, string $postgresType, string $reason): self
    {
        if ($phpType === 'array' && $reason === '') {
            $reason = "only array and JSON types accept an array. For a list of values, write = ANY(\${$position})"
                . " in place of IN (\${$position})";
        }

        return self::of("The parameter \${$position}", $position, $phpType, $postgresType, $reason);
    }

    /** @internal `$row` starts at 1. `$reason` is as for {@see parameter()}. */
    public static function column(
        int $row,
        int $position,
        string $phpType,
        string $postgresType,
        string $reason,
    ): self {
        return self::of("Column {$position} of row {$row}", $position, $phpType, $postgresType, $reason);
    }

    /** @internal */
    public static function count(int $given, int $wanted): self
    {
        return new self("The number of parameters is {$given}, but the statement needs {$wanted}");
    }

    /** @internal */
    public static function tooMany(int $given, int $max): self
    {
        return new self("A statement can have at most {$max} parameters, but {$given} were given");
    }

    /** @internal */
    public static function columnCount(int $row, int $given, int $wanted): self
    {
        return new self("The number of values of row {$row} is {$given}, but must be {$wanted}");
    }

    /** @internal */
    public static function tooLarge(int $bytes): self
    {
        return new self(
            "The parameters have {$bytes} bytes, more than fit into a message to PostgreSQL. "
                . 'Use copyFrom() or large objects',
        );
    }

    private static function of(string $what, int $position, string $phpType, string $postgresType, string $reason): self
    {
        $message = "{$what} is of the type {$phpType}, which can't be sent as {$postgresType}"
            . ($reason === '' ? '' : ": {$reason}");

        return new self($message, $position, $phpType, $postgresType);
    }
}
