<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** query() and its kin take one statement. Nothing was executed. */
final class MultipleStatementsException extends \InvalidArgumentException implements PostgresException
{
    private function __construct(string $message, public readonly string $second)
    {
        parent::__construct($message);
    }

    /**
     * @internal
     *
     * @param string $second how the second statement begins
     */
    public static function in(string $second, int $position): self
    {
        return new self("One statement is taken at a time; the second begins at character {$position}: {$second}. Use executeScript() for several", $second);
    }
}
