<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A result has another shape than the called method expects. The statement itself has completed. */
final class UnexpectedResultException extends \RuntimeException implements PostgresException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function rows(int $count): self
    {
        return new self("At most one row was expected, and there are {$count}");
    }

    /** @internal */
    public static function noColumns(): self
    {
        return new self('A value was expected, and the statement gives no rows; use execute() for it');
    }

    /** @internal */
    public static function pairs(int $columns): self
    {
        return new self("Pairs need two columns, and there are {$columns}");
    }

    /** @internal */
    public static function noColumn(string $column): self
    {
        return new self("There is no column \"{$column}\"");
    }

    /** @internal */
    public static function key(string $column, string $type): self
    {
        return new self("A value of the column \"{$column}\" is {$type}, and keys are integers or strings");
    }

    /** @internal */
    public static function twice(string $column): self
    {
        return new self("Two rows have the same value in the column \"{$column}\": it is no key");
    }

    /** @internal */
    public static function sameName(string $column): self
    {
        return new self(
            "Two columns are named \"{$column}\"; give one another name with AS, or read them with lists()",
        );
    }

    /**
     * @internal
     *
     * @param class-string $class
     */
    public static function object(string $class, string $reason): self
    {
        return new self("A row does not become a {$class}: {$reason}");
    }
}
