<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\UsageException;

/** Checks the regular expressions in options, and adds delimiters. Users give these expressions without delimiters. */
final class RegularExpression
{
    /** A delimiter must not be a letter, digit, white space, backslash or NUL. Patterns rarely contain byte 1. */
    private const DELIMITER = "\1";

    public static function isValid(string $pattern): bool
    {
        return !str_contains($pattern, self::DELIMITER) && @preg_match(self::delimited($pattern), '') !== false;
    }

    /** Returns why a pattern is invalid, in parentheses after a space; '' if the reason is unknown. */
    public static function problem(string $pattern): string
    {
        error_clear_last();
        @preg_match(self::delimited($pattern), '');
        $warning = error_get_last()['message'] ?? '';

        return preg_match('/ failed: (.+)$/D', $warning, $match) === 1 ? " ({$match[1]})" : '';
    }

    /** @throws UsageException when a valid pattern has \K: callers need a whole match, and \K drops its beginning */
    public static function refuseReset(string $option, string $pattern): void
    {
        if (preg_match('/(?<!\\\\)(?:\\\\\\\\)*\\\\K/', $pattern) === 1) {
            throw UsageException::option($option, $pattern, 'a regular expression without \K');
        }
    }

    public static function delimited(string $pattern): string
    {
        return self::DELIMITER . $pattern . self::DELIMITER;
    }
}
