<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\MultipleStatementsException;

/**
 * Recognizes kinds of SQL statements, finds the end of a statement, and masks strings.
 *
 * @see https://www.postgresql.org/docs/current/sql-syntax-lexical.html
 */
final class SqlText
{
    /** Maximum bytes of a cached statement. A longer text probably contains values, so it is rarely sent twice. */
    public const MAX_CACHED_BYTES = 0x4000;

    private const MAX_EXCERPT_BYTES = 60;

    /** Characters that begin a string, a quoted name or a comment. */
    private const TOKEN_STARTS = "'\"$-/";

    /** Characters that end a statement, or begin a string, a quoted name or a comment. */
    private const DELIMITERS = ';' . self::TOKEN_STARTS;

    private const LINE_ENDS = "\n\r";

    private const SPACES = " \t\n\r\f\v";

    private const BETWEEN_STATEMENTS = ';' . self::SPACES;

    /** Matches up to 200 simple tokens. More repetitions of the group could exceed pcre.backtrack_limit. */
    private const SIMPLE_TOKENS = '~(?:[^-/\'"$;]++|(?<![eE])\'[^\']*+\'|"[^"]*+"|--[^\n\r]*+|-|/(?!\*)){0,200}+~A';

    /** Matches text that ends with the prefix E. In a string after this prefix, the backslash escapes characters. */
    private const ESCAPE_PREFIX = '~(?:^|[^\w$\x80-\xFF])[eE]$~D';

    private const DOLLAR_QUOTE = '~(?<![\w$\x80-\xFF])\$(?:[a-zA-Z_\x80-\xFF][\w\x80-\xFF]*+)?\$~A';

    /**
     * Matches a string in three parts: the opening quote, the text, and the closing quote, which may be missing. In a
     * string without the prefix E, standard_conforming_strings decides whether \' ends the string. To mask the whole
     * string in both cases, the whole rest of the text after \' counts as part of the string.
     */
    private const STRING_PATTERN = <<<'REGEX'
        ~(?:
            --[^\n\r]*+
          | (?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/)
          | "(?:[^"]++|"")*+"
        )(*SKIP)(*FAIL)
          | (?<![\w$])([eE]')((?:[^'\\]++|\\.|'')*+)('|\z)
          | (')((?:[^'\\]++|\\(?:[^']|\z)|'')*+(?:\\'.*+)?+)('|\z)
          | (?<![\w$])(\$(?:[a-zA-Z_\x80-\xFF][\w\x80-\xFF]*+)?\$)(.*?)(\g{-3}|\z)
        ~xs
        REGEX;

    /**
     * Matches one or more spaces or comments. A pattern that uses BLANK must begin with {@see COMMENT}, which defines
     * nested comments. The first alternative is faster, but does not match comments that contain comments.
     */
    public const BLANK = '(?:(?:\s|--[^\n\r]*+|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/)++|(?&comment))';
    public const COMMENT = '(?(DEFINE)(?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/))';

    /** Matches a word for a time relative to the present. Any character except a letter may stand beside the word. */
    private const CURRENT_TIME = '~(?<![a-z])(?:now|today|tomorrow|yesterday)(?![a-z])~i';

    /** First keywords of statements that leave no changes when they fail. CALL and DO are missing: they can commit. */
    private const REPEATABLE_KEYWORDS = 'SELECT|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|WITH';

    /** @throws \LogicException when the text contains a NUL byte */
    public static function ensureNoNul(string $sql): void
    {
        if (str_contains($sql, "\0")) {
            throw new \LogicException('An SQL statement must not contain NUL bytes');
        }
    }

    /** Replaces each character of quoted strings, except newlines, by an asterisk. All positions remain. */
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
            '~' . self::COMMENT . '^(?:' . self::BLANK . '|\()*+(?:' . self::REPEATABLE_KEYWORDS . ')\b~',
            strtoupper($sql),
        ) === 1;
    }

    /**
     * Returns whether the statement may stay prepared. FETCH and EXECUTE may not, because their cursor or statement can
     * be replaced by one with other columns. A statement with a string such as 'today' may not, because the server may
     * convert the string to a date when it prepares the statement, and not again at each execution.
     *
     * @param bool $escapesWithBackslash whether standard_conforming_strings is off
     */
    public static function mayStayPrepared(string $sql, bool $escapesWithBackslash = false): bool
    {
        if (preg_match('~' . self::COMMENT . '^(?:' . self::BLANK . '|;)*+(?:FETCH|EXECUTE)\b~i', $sql) !== 0) {
            return false;
        }
        $length = preg_match(self::CURRENT_TIME, $sql) === 0 ? 0 : \strlen($sql);
        for ($at = 0; ($at += strcspn($sql, self::TOKEN_STARTS, $at)) < $length; $at = $end) {
            $end = self::tokenEnd($sql, $at, $escapesWithBackslash);
            $isString = $sql[$at] === "'" || $sql[$at] === '$';
            if ($isString && preg_match(self::CURRENT_TIME, substr($sql, $at, $end - $at)) === 1) {
                return false;
            }
        }

        return true;
    }

    /**
     * @param string $direction FROM STDIN or TO STDOUT
     * @param bool $escapesWithBackslash whether standard_conforming_strings is off
     *
     * @throws \LogicException when the statement is not a COPY in this direction
     * @throws MultipleStatementsException when another statement follows
     */
    public static function checkCopy(string $sql, string $direction, bool $escapesWithBackslash = false): void
    {
        self::ensureNoNul($sql);
        if (!self::isCopyWith($sql, $direction)) {
            $method = $direction === 'FROM STDIN' ? 'copyFrom()' : 'copyTo()';
            throw new \LogicException("{$method} needs a COPY … {$direction}");
        }
        $failure = MultipleStatementsException::of($sql, $escapesWithBackslash);
        if ($failure !== null) {
            throw $failure;
        }
    }

    /**
     * Returns the beginning of the second statement, and the number of its first character, starting at 1. Returns null
     * if there is only one statement. Empty statements are not counted. This method also splits at semicolons in the
     * body of a routine (BEGIN ATOMIC … END). So if the text may create a routine, call this method only after the
     * server has reported several statements.
     *
     * @param bool $escapesWithBackslash whether standard_conforming_strings is off
     *
     * @return array{string, int}|null
     */
    public static function secondStatement(string $sql, bool $escapesWithBackslash = false): ?array
    {
        $end = self::statementEnd($sql, self::blanksEnd($sql, 0), $escapesWithBackslash);
        $start = self::blanksEnd($sql, $end);
        if ($start === \strlen($sql)) {
            return null;
        }
        $text = rtrim(substr($sql, $start, self::statementEnd($sql, $start, $escapesWithBackslash) - $start));

        return [
            \strlen($text) > self::MAX_EXCERPT_BYTES
                ? preg_replace('/[\xC0-\xFF]?[\x80-\xBF]*$/D', '', substr($text, 0, self::MAX_EXCERPT_BYTES)) . '…'
                : $text,
            self::characters(substr($sql, 0, $start)) + 1,
        ];
    }

    /** Returns the offset of the semicolon after a statement, or of the end of the text. */
    private static function statementEnd(string $sql, int $at, bool $escapesWithBackslash): int
    {
        for (;; $at = self::tokenEnd($sql, $at, $escapesWithBackslash)) {
            if (!$escapesWithBackslash && preg_match(self::SIMPLE_TOKENS, $sql, $match, 0, $at) === 1) {
                $at += \strlen($match[0]);
            }
            $at += strcspn($sql, self::DELIMITERS, $at);
            if (($sql[$at] ?? ';') === ';') {
                return $at;
            }
        }
    }

    private static function blanksEnd(string $sql, int $at): int
    {
        for (;; $at = self::tokenEnd($sql, $at, false)) {
            $at += strspn($sql, self::BETWEEN_STATEMENTS, $at);
            if (!\in_array(substr($sql, $at, 2), ['--', '/*'], true)) {
                return $at;
            }
        }
    }

    /** Returns the offset after the token at `$at`: a string, quoted name or comment, otherwise one character. */
    private static function tokenEnd(string $sql, int $at, bool $escapesWithBackslash): int
    {
        $quote = $sql[$at];
        $next = $sql[$at + 1] ?? '';
        if ($quote === '-') {
            return $next === '-' ? $at + strcspn($sql, self::LINE_ENDS, $at) : $at + 1;
        }
        if ($quote === '/') {
            return $next === '*' ? self::commentEnd($sql, $at) : $at + 1;
        }
        $before = substr($sql, max(0, $at - 2), min(2, $at));
        if ($quote === "'" && ($escapesWithBackslash || preg_match(self::ESCAPE_PREFIX, $before) === 1)) {
            return self::escapedStringEnd($sql, $at);
        }
        if ($quote === '$') {
            $quote = preg_match(self::DOLLAR_QUOTE, $sql, $match, 0, $at) === 1 ? $match[0] : '';
        }
        // A doubled quote counts as the end of one string and the start of another. This does not change the offset at
        // which the last of these strings ends.
        $end = $quote === '' ? false : strpos($sql, $quote, $at + \strlen($quote));

        return $end === false ? $at + 1 : $end + \strlen($quote);
    }

    private static function commentEnd(string $sql, int $at): int
    {
        for ($depth = 0; preg_match('~/\*|\*/~', $sql, $match, \PREG_OFFSET_CAPTURE, $at) === 1;) {
            [[$delimiter, $offset]] = $match;
            $at = $offset + 2;
            $depth += $delimiter === '/*' ? 1 : -1;
            if ($depth === 0) {
                return $at;
            }
        }

        return \strlen($sql);
    }

    /** Returns the offset after a string with escapes. Later lines may continue the string without another prefix E. */
    private static function escapedStringEnd(string $sql, int $at): int
    {
        $length = \strlen($sql);
        for (++$at; ($at += strcspn($sql, "'\\", $at)) < $length; $at += 2) {
            if ($sql[$at] === "'" && ($sql[$at + 1] ?? '') !== "'") {
                $next = self::nextPart($sql, $at + 1);
                if ($next === null) {
                    return $at + 1;
                }
                $at = $next - 1;
            }
        }

        return $length;
    }

    /** Returns the offset of the quote with which a string continues on a later line; null if the string has ended. */
    private static function nextPart(string $sql, int $end): ?int
    {
        $at = $end + strspn($sql, self::SPACES, $end);
        while (substr($sql, $at, 2) === '--') {
            $at += strcspn($sql, self::LINE_ENDS, $at);
            $at += strspn($sql, self::SPACES, $at);
        }
        $isOnLaterLine = strcspn($sql, self::LINE_ENDS, $end, $at - $end) < $at - $end;

        return $isOnLaterLine && ($sql[$at] ?? '') === "'" ? $at : null;
    }

    private static function isCopyWith(string $sql, string $direction): bool
    {
        $end = str_replace(' ', '\b' . self::BLANK . '++', $direction);

        return preg_match('~' . self::COMMENT . '^' . self::BLANK . "*+COPY\b.*\b{$end}\b~s", strtoupper($sql)) === 1;
    }

    private static function characters(string $text): int
    {
        return \strlen((string) preg_replace('/[\x80-\xBF]+/', '', $text));
    }
}
