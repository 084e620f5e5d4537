<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A method for a single statement, such as query(), got several statements. Nothing was executed. */
final class MultipleStatementsException extends \InvalidArgumentException implements PostgresException
{
    private function __construct(string $message, public readonly string $second)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function in(string $second, int $position): self
    {
        return new self(
            "Only one statement can be executed at a time. A second one begins at character {$position}: {$second}. "
                . 'Use executeScript() for several statements',
            $second,
        );
    }
}
