<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/**
 * Rewrites a shell line into a form that does not depend on the style of quoting. Where GNU parallel's job log contains
 * a\ b or 'it'"'"'s', Spindle's contains 'a b' or 'it'\''s'.
 *
 * Two lines have the same form only if they are the same command. Lines with a here-document, a comment, or a
 * substitution in `...`, ${...} or double quotes stay unchanged, because their form is not certain.
 */
final class CanonicalQuotes
{
    private const TOKEN_PATTERN = <<<'REGEX'
        ~\G(?: '(?<single>[^']*+)' | "(?<double>(?:[^"\\]++|\\.)*+)" | \\(?<escaped>[^\0\n]) | (?<bare>[^'"\\]++) )~xs
        REGEX;

    /** Matches constructs in unquoted text after which quotes may have another meaning. */
    private const UNCERTAIN_PATTERN = '~(?:^|[\s\0;&|()])#|<<|`|\$\{|\$$~D';
    private const UNCERTAIN_IN_DOUBLE_PATTERN = '~`|\$[({]~';

    /** Matches a character whose meaning depends on whether it is quoted. */
    private const NOT_PLAIN_PATTERN = '~[^\w@%+:./,\x80-\xff-]~';

    /** Marks of the form: QUOTED precedes each quoted character, and EMPTY replaces quotes without text. */
    private const QUOTED = "\1";
    private const EMPTY = "\2";
    private const REDUNDANT_EMPTY_PATTERN = '~(?<=[^\s\0;&|<>()])\x02|\x02(?=[^\s\0;&|<>()])~';

    private function __construct() {}

    /**
     * Returns the form of a shell line; the line itself when its meaning is not certain.
     *
     * @param string $line can have NUL bytes in place of its line feeds, as in a job log
     */
    public static function of(string $line): string
    {
        if (strpbrk($line, "'\"\\") === false || strpbrk($line, self::QUOTED . self::EMPTY) !== false) {
            return $line;
        }
        $form = '';
        $at = 0;
        $length = \strlen($line);
        while ($at < $length && preg_match(self::TOKEN_PATTERN, $line, $token, \PREG_UNMATCHED_AS_NULL, $at) === 1) {
            $part = self::canonicalPart($token);
            if ($part === null) {
                return $line;
            }
            $form .= $part;
            $at += \strlen($token[0]);
        }

        return $at < $length ? $line : (string) preg_replace(self::REDUNDANT_EMPTY_PATTERN, '', $form);
    }

    /**
     * @param array<string|null> $token
     *
     * @return string|null null when the meaning is not certain
     */
    private static function canonicalPart(array $token): ?string
    {
        $bare = $token['bare'] ?? null;
        if ($bare !== null) {
            return preg_match(self::UNCERTAIN_PATTERN, $bare) === 1 ? null : $bare;
        }
        $double = $token['double'] ?? null;
        if ($double !== null && strpbrk($double, '$`\\') !== false) {
            return preg_match(self::UNCERTAIN_IN_DOUBLE_PATTERN, $double) === 1 ? null : "\"{$double}\"";
        }
        $value = $double ?? $token['single'] ?? $token['escaped'] ?? '';

        return $value === '' ? self::EMPTY : preg_replace(self::NOT_PLAIN_PATTERN, self::QUOTED . '$0', $value);
    }
}
