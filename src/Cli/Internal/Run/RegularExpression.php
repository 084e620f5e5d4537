<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/** Checks regular expressions that users give in options without delimiters, and adds the delimiters. */
final class RegularExpression
{
    /** A delimiter can be any character except a letter, a digit, white space, a backslash and NUL. */
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
