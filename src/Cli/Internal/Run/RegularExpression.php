<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/** Regular expressions in the values of options. They have no delimiters there. */
final class RegularExpression
{
    /** PCRE accepts any character that is not a letter, a digit or a backslash. */
    private const DELIMITER = "\1";

    private function __construct() {}

    public static function isValid(string $pattern): bool
    {
        return !str_contains($pattern, self::DELIMITER) && @preg_match(self::delimited($pattern), '') !== false;
    }

    public static function delimited(string $pattern): string
    {
        return self::DELIMITER . $pattern . self::DELIMITER;
    }
}
