<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/**
 * Rewrites a shell line into a form that does not depend on the style of quoting. GNU parallel's job log has a\ b or
 * 'it'"'"'s' where Spindle's has 'a b' and 'it'\''s'.
 *
 * Two lines have the same form only if they are the same command. Lines with a here-document, a comment or a nested
 * substitution with its own quotes stay unchanged, because their form is not certain.
 */
final class CanonicalQuotes
{
    private const TOKEN_PATTERN = <<<'REGEX'
        ~\G(?: '(?<single>[^']*+)' | "(?<double>(?:[^"\\]++|\\.)*+)" | \\(?<escaped>[^\0\n]) | (?<bare>[^'"\\]++) )~xs
        REGEX;

    /** Unquoted text after which quotes have another meaning. */
    private const OBSTACLE_PATTERN = '~(?:^|[\s\0;&|()])#|<<|`|\$\{|\$$~D';
    private const DOUBLE_OBSTACLE_PATTERN = '~`|\$[({]~';

    /** Characters whose meaning depends on quoting; all others mean the same with quotes and without. */
    private const NOT_PLAIN_PATTERN = '~[^\w@%+:./,\x80-\xff-]~';

    /** Marks: QUOTED stands before each quoted character, EMPTY stands for quotes with nothing between them. */
    private const QUOTED = "\1";
    private const EMPTY = "\2";
    private const REDUNDANT_EMPTY_PATTERN = '~(?<=[^\s\0;&|<>()])\x02|\x02(?=[^\s\0;&|<>()])~';

    private function __construct() {}

    /** @param string $line its line feeds may be NUL bytes, as in a job log */
    public static function of(string $line): string
    {
        if (strpbrk($line, "'\"\\") === false || strpbrk($line, self::QUOTED . self::EMPTY) !== false) {
            return $line;
        }
        $form = '';
        $at = 0;
        $length = \strlen($line);
        while ($at < $length && preg_match(self::TOKEN_PATTERN, $line, $token, \PREG_UNMATCHED_AS_NULL, $at) === 1) {
            $part = self::part($token);
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
    private static function part(array $token): ?string
    {
        $bare = $token['bare'] ?? null;
        if ($bare !== null) {
            return preg_match(self::OBSTACLE_PATTERN, $bare) === 1 ? null : $bare;
        }
        $double = $token['double'] ?? null;
        if ($double !== null && strpbrk($double, '$`\\') !== false) {
            return preg_match(self::DOUBLE_OBSTACLE_PATTERN, $double) === 1 ? null : "\"{$double}\"";
        }
        $value = $double ?? $token['single'] ?? $token['escaped'] ?? '';

        return $value === '' ? self::EMPTY : preg_replace(self::NOT_PLAIN_PATTERN, self::QUOTED . '$0', $value);
    }
}
