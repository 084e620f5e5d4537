<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Shows where in a statement an error is. Quoted text is masked, because it may be confidential. */
final class ErrorPlace
{
    private const SYNTAX_ERROR = '42601';

    /** Maximum bytes of a statement whose error place is shown. PCRE allows no larger repetition count in a pattern. */
    private const MAX_BYTES = 65_535;

    private const MAX_CONTEXT = 40;

    /** Finds placeholders of PDO: a "?" where a value is expected. Elsewhere, a "?" may be an operator. */
    private const QUESTION_MARK = '/(?:[=<>(,]|\b(?:AND|BETWEEN|ELSE|I?LIKE|LIMIT|OFFSET|SELECT|THEN))\s*\?/';

    private const LIST_OF_PLACEHOLDERS = '/\bIN\s*\(\s*(?:\?|:[A-Z_])/';

    private const ADVICE_FOR_NAMES = '; no parameter is allowed there: '
        . 'quote a name with Postgres::quoteIdentifier(), or write a value with its type as $1::interval';

    /** @param int|null $position number of the character at which the error is, starting at 1; null when unknown */
    public static function describe(#[\SensitiveParameter] string $sql, ?int $position, string $sqlState): string
    {
        $isPlace = $position !== null && $position >= 1 && $position <= \strlen($sql) + 1;
        if (!$isPlace || \strlen($sql) > self::MAX_BYTES) {
            return '';
        }
        $masked = SqlText::masked($sql);
        if (preg_match('/^(.{' . ($position - 1) . '})(.*)$/Dsu', $masked, $parts) !== 1) {
            return '';
        }
        [, $before, $after] = $parts;
        $number = substr_count($before, "\n") + 1;
        $hasPlaceholder = preg_match('/^:[A-Za-z_]/', $after) === 1
            || preg_match(self::QUESTION_MARK, strtoupper($masked)) === 1;
        $advice = match (true) {
            $sqlState !== self::SYNTAX_ERROR => '',
            $hasPlaceholder => self::adviceAfterPdo($masked),
            preg_match('/^\$\d/', $after) === 1 => self::ADVICE_FOR_NAMES,
            default => '',
        };

        return " in line {$number}: " . trim(self::end($before) . ' >>> ' . self::beginning($after)) . $advice;
    }

    private static function adviceAfterPdo(string $masked): string
    {
        return '; write parameters as $1, $2, …, not as ? or :name'
            . (preg_match(self::LIST_OF_PLACEHOLDERS, strtoupper($masked)) === 1
                ? ', and compare with a list by = ANY($1), whose parameter is an array'
                : '');
    }

    /** Returns at most {@see MAX_CONTEXT} characters from the end of the last line. */
    private static function end(string $text): string
    {
        $line = substr($text, (int) strrpos("\n{$text}", "\n"));
        preg_match('/.{0,' . self::MAX_CONTEXT . '}$/Du', $line, $match);
        $end = $match[0] ?? '';

        return rtrim($end === $line ? $line : "…{$end}");
    }

    /** Returns at most {@see MAX_CONTEXT} characters from the beginning of the first line. */
    private static function beginning(string $text): string
    {
        $line = strstr("{$text}\n", "\n", true);
        preg_match('/^.{0,' . self::MAX_CONTEXT . '}/u', (string) $line, $match);
        $beginning = $match[0] ?? '';

        return trim($beginning === $line ? $line : "{$beginning}…");
    }
}
