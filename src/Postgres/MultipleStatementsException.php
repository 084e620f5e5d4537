<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Postgres\Internal\SqlText;

/** A method for a single statement, such as query(), got several statements. Nothing was executed. */
final class MultipleStatementsException extends \InvalidArgumentException implements PostgresException
{
    /** @param string $second beginning of the second statement, in which quoted text is masked */
    private function __construct(string $message, public readonly string $second)
    {
        parent::__construct($message);
    }

    /**
     * Returns an exception if the text has several statements; otherwise null. Treats semicolons in the body of a
     * routine as ends of statements, like {@see SqlText::secondStatement()}.
     *
     * @internal
     *
     * @param bool $escapesWithBackslash whether standard_conforming_strings is off
     */
    public static function of(string $sql, bool $escapesWithBackslash = false): ?self
    {
        $found = SqlText::secondStatement($sql, $escapesWithBackslash);
        if ($found === null) {
            return null;
        }
        [$second, $position] = $found;
        // Whether \' ends a string depends on standard_conforming_strings. So `$second` may begin within a string.
        $second = str_contains($sql, "\\'") ? '***' : SqlText::masked($second);

        return new self(
            "Only one statement can be executed at a time. A second one begins at character {$position}: {$second}. "
                . 'Use executeScript() for several statements',
            $second,
        );
    }
}
