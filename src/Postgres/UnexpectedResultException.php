<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A result has other columns or rows than the method expects. The statement has completed, except for stream(). */
final class UnexpectedResultException extends \RuntimeException implements PostgresException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function rows(int $count): self
    {
        return new self("At most one row was expected, but the result has {$count}");
    }

    /** @internal */
    public static function noColumns(): self
    {
        return new self('A value was expected, but the statement returns no rows. Use execute() instead');
    }

    /** @internal */
    public static function pairs(int $columns): self
    {
        return new self("pairs() needs a result with 2 columns, but this one has {$columns}");
    }

    /** @internal */
    public static function noColumn(string $column): self
    {
        return new self("The result has no column \"{$column}\"");
    }

    /** @internal */
    public static function key(string $column, string $type): self
    {
        return new self("A value of the column \"{$column}\" is {$type}, but keys must be integers or strings");
    }

    /** @internal */
    public static function duplicateKey(string $column): self
    {
        return new self("Two rows have the same value in the column \"{$column}\", so it can not be the key");
    }

    /** @internal */
    public static function duplicateColumn(string $column): self
    {
        return new self("Two columns are named \"{$column}\". Rename one with AS, or read the rows with allNumeric()");
    }

    /**
     * @internal
     *
     * @param class-string $class
     */
    public static function object(string $class, string $reason): self
    {
        return new self("Could not create a {$class} from a row: {$reason}");
    }
}
