<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\MultipleStatementsException;

/**
 * Recognizes kinds of SQL statements, and finds the end of a statement.
 *
 * @see https://www.postgresql.org/docs/current/sql-syntax-lexical.html
 */
final class SqlText
{
    /** Maximum bytes of a cached statement. A longer text probably contains values, so it is rarely sent twice. */
    public const MAX_CACHED_BYTES = 0x4000;

    private const MAX_EXCERPT_BYTES = 60;

    /** Matches one statement: from an offset up to its semicolon, or up to the end of the text. */
    private const TOKEN_PATTERN = <<<'REGEX'
        ~(?:
            --[^\n\r]*+
          | (?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/)
          | (?<![\w$])[eE]'(?:[^'\\]++|\\.|'')*+'
          | '(?:[^']++|'')*+'
          | "(?:[^"]++|"")*+"
          | (?<![\w$])\$(?<tag>(?:[a-zA-Z_\x80-\xFF][\w\x80-\xFF]*+)?)\$.*?\$\k<tag>\$
          | [^-/'"$;eE]++
          | [^;]
        )*+~xsA
        REGEX;

    /** Matches a string in three parts: the opening quote, the text, and the closing quote, which may be missing. */
    private const STRING_PATTERN = <<<'REGEX'
        ~(?:
            --[^\n\r]*+
          | (?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/)
          | "(?:[^"]++|"")*+"
        )(*SKIP)(*FAIL)
          | (?<![\w$])([eE]')((?:[^'\\]++|\\.|'')*+)('|\z)
          | (')((?:[^']++|'')*+)('|\z)
          | (?<![\w$])(\$(?:[a-zA-Z_\x80-\xFF][\w\x80-\xFF]*+)?\$)(.*?)(\g{-3}|\z)
        ~xs
        REGEX;

    /**
     * Matches one or more spaces or comments. A pattern that uses BLANK must begin with {@see COMMENT}, which defines
     * nested comments. The first alternative is faster, but does not match comments that contain comments.
     */
    public const BLANK = '(?:(?:\s|--[^\n\r]*+|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/)++|(?&comment))';
    public const COMMENT = '(?(DEFINE)(?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/))';

    /** First keywords of statements that can't commit, unlike CALL or DO. A failed one leaves no changes. */
    private const REPEATABLE_KEYWORDS = 'SELECT|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|WITH';

    /** @throws \LogicException when the text contains a NUL byte */
    public static function check(string $sql): void
    {
        if (str_contains($sql, "\0")) {
            throw new \LogicException('An SQL statement must not contain NUL bytes');
        }
    }

    /** Replaces each character in quoted strings by an asterisk. The other characters keep their positions. */
    public static function masked(#[\SensitiveParameter] string $sql): string
    {
        return (string) preg_replace_callback(
            self::STRING_PATTERN,
            static function (array $match): string {
                [$quote, $text, $end] = \array_slice($match, -3);

                return $quote . preg_replace('/[^\n]/u', '*', $text) . $end;
            },
            $sql,
        );
    }

    public static function isCopy(string $sql): bool
    {
        return self::isCopyWith($sql, 'FROM STDIN') || self::isCopyWith($sql, 'TO STDOUT');
    }

    /** Returns whether the statement certainly leaves no changes when it fails, and may therefore be sent again. */
    public static function isRepeatable(string $sql): bool
    {
        return preg_match(
            '~' . self::COMMENT . '^(?:' . self::BLANK . '|\()*+(?:' . self::REPEATABLE_KEYWORDS . ')\b~i',
            $sql,
        ) === 1;
    }

    /**
     * @param string $direction FROM STDIN or TO STDOUT
     *
     * @throws \LogicException when the statement is not a COPY in this direction
     * @throws MultipleStatementsException when another statement follows
     */
    public static function checkCopy(string $sql, string $direction): void
    {
        self::check($sql);
        if (!self::isCopyWith($sql, $direction)) {
            $method = $direction === 'FROM STDIN' ? 'copyFrom()' : 'copyTo()';
            throw new \LogicException("{$method} needs a COPY … {$direction}");
        }
        $failure = MultipleStatementsException::of($sql);
        if ($failure !== null) {
            throw $failure;
        }
    }

    /**
     * Returns the beginning of the second statement, and its position as a character number, starting at 1. Returns
     * null if there is only one statement. This method also splits at semicolons in the body of a routine (BEGIN ATOMIC
     * … END). So if the text may create a routine, call this only after the server refused it as several statements.
     *
     * @return array{string, int}|null
     */
    public static function secondStatement(string $sql): ?array
    {
        if (preg_match(self::TOKEN_PATTERN, $sql, $first) !== 1) {
            return null;
        }
        $start = \strlen($first[0]) + 1;
        if (preg_match(
            '~(?:[\s;]++|--[^\n\r]*+|(?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/))*+~A',
            $sql,
            $space,
            0,
            min($start, \strlen($sql)),
        ) === 1) {
            $start += \strlen($space[0]);
        }
        if ($start >= \strlen($sql)) {
            return null;
        }
        $rest = substr($sql, $start);
        $text = preg_match(self::TOKEN_PATTERN, $rest, $second) === 1 ? rtrim($second[0]) : $rest;

        return [
            \strlen($text) > self::MAX_EXCERPT_BYTES
                ? preg_replace('/[\xC0-\xFF]?[\x80-\xBF]*$/D', '', substr($text, 0, self::MAX_EXCERPT_BYTES)) . '…'
                : $text,
            self::characters(substr($sql, 0, $start)) + 1,
        ];
    }

    /** @param string $direction FROM STDIN or TO STDOUT */
    private static function isCopyWith(string $sql, string $direction): bool
    {
        $end = str_replace(' ', '\b' . self::BLANK . '++', $direction);

        return preg_match('~' . self::COMMENT . '^' . self::BLANK . "*+COPY\b.*\b{$end}\b~is", $sql) === 1;
    }

    private static function characters(string $text): int
    {
        return \strlen((string) preg_replace('/[\x80-\xBF]+/', '', $text));
    }
}
