<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\MultipleStatementsException;

/**
 * Knows enough of SQL's syntax to tell where a statement ends.
 *
 * @see https://www.postgresql.org/docs/current/sql-syntax-lexical.html
 */
final class SqlText
{
    /**
     * Bytes of the longest statement that is remembered. A longer one probably contains its values, and comes only
     * once.
     */
    public const MAX_CACHED_BYTES = 0x4000;

    /** Characters of a statement that identify it in a message. */
    private const MAX_EXCERPT_BYTES = 60;

    /** Tokens in which a semicolon does not end a statement. */
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

    /** One or more spaces or comments; needs COMMENT before it. Most comments match the fast first alternative. */
    public const BLANK = '(?:(?:\s|--[^\n\r]*+|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/)++|(?&comment))';
    public const COMMENT = '(?(DEFINE)(?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/))';

    /** First keywords of statements that never end a transaction themselves, so an error undoes all they did. */
    private const REPEATABLE_KEYWORDS = 'SELECT|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|WITH';

    /** @throws \LogicException when the text can't be a statement */
    public static function check(string $sql): void
    {
        if (str_contains($sql, "\0")) {
            throw new \LogicException('An SQL statement must not contain NUL bytes');
        }
    }

    /** Whether the statement is a COPY to or from the client. */
    public static function isCopy(string $sql): bool
    {
        return self::copies($sql, 'FROM STDIN') || self::copies($sql, 'TO STDOUT');
    }

    /** Whether an error leaves nothing of the statement done, so that it may be sent again. In doubt returns false. */
    public static function isRepeatable(string $sql): bool
    {
        return preg_match(
            '~' . self::COMMENT . '^(?:' . self::BLANK . '|\()*+(?:' . self::REPEATABLE_KEYWORDS . ')\b~i',
            $sql,
        ) === 1;
    }

    /**
     * @param string $ends FROM STDIN or TO STDOUT
     *
     * @throws \LogicException|MultipleStatementsException unless it is one such COPY, options aside
     */
    public static function checkCopy(string $sql, string $ends): void
    {
        self::check($sql);
        if (!self::copies($sql, $ends)) {
            throw new \LogicException(($ends === 'FROM STDIN' ? 'copyFrom()' : 'copyTo()') . " needs a COPY … {$ends}");
        }
        $second = self::second($sql);
        if ($second !== null) {
            throw MultipleStatementsException::in(...$second);
        }
    }

    /**
     * Returns the second statement, and its position in characters from 1; null when there is none. A routine's body in
     * SQL (BEGIN ATOMIC … END) has semicolons too. So this is for text that the server reported as several statements.
     *
     * @return array{string, int}|null
     */
    public static function second(string $sql): ?array
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

    /** @param string $ends FROM STDIN or TO STDOUT */
    private static function copies(string $sql, string $ends): bool
    {
        $end = str_replace(' ', '\b' . self::BLANK . '++', $ends);

        return preg_match('~' . self::COMMENT . '^' . self::BLANK . "*+COPY\b.*\b{$end}\b~is", $sql) === 1;
    }

    /** Counts the characters of a UTF-8 text. */
    private static function characters(string $text): int
    {
        return \strlen((string) preg_replace('/[\x80-\xBF]+/', '', $text));
    }
}
