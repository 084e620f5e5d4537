<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/**
 * Rewrites a shell line into a form that does not depend on the style of quoting: a\ b, 'a b' and "a b" have the same
 * form. Thus, Spindle can resume a job log in which GNU parallel has quoted the commands in another style.
 *
 * Two lines have the same form only if dash and bash read the same command from both lines. A line stays unchanged if
 * its form is uncertain, for example because of a here-document, a comment, backticks, ${...}, or a $(...) in double
 * quotes. The form is also uncertain if quotes change the meaning of a plain character, such as a letter:
 * {@see MEANINGFUL_QUOTES_PATTERN}.
 */
final class CanonicalQuotes
{
    private const TOKEN_PATTERN = <<<'REGEX'
        ~\G(?: '(?<single>[^']*+)' | "(?<double>(?:[^"\\]++|\\.)*+)" | \\(?<escaped>[^\0\n]) | (?<bare>[^'"\\]++) )~xs
        REGEX;

    /** Matches shell syntax in unquoted text after which the meaning of quotes is uncertain. */
    private const UNCERTAIN_PATTERN = '~(?:^|[\s\0;&|()])#|<<|`|\$\{|\$\[|\$$|\(\(|\[\[|\balias\b~D';
    private const UNCERTAIN_IN_DOUBLE_PATTERN = '~`|\$[({]~';

    /** Matches a character whose form in quotes differs from the form without quotes. Other characters are plain. */
    private const NOT_PLAIN_PATTERN = '~[^\w@%+:./,\x80-\xff-]~';

    /** Marks in a form: QUOTED precedes a quoted character that is not plain. EMPTY replaces quotes without text. */
    private const QUOTED = "\1";
    private const EMPTY = "\2";

    /** Matches EMPTY next to another character of the same word: empty quotes add nothing to that word. */
    private const REDUNDANT_EMPTY_PATTERN = '~(?<=[^\s\0;&|<>()])\x02|\x02(?=\x02*+[^\s\0;&|<>()\x02])~';

    /** START matches the start of a word, BARE one unquoted character, and ANY one character, quoted or not. */
    private const START = '(?<![^ \t\n\0;&|()<>])(?<!\x01.)';
    private const BARE = '[^ \t\n\0;&|()<>\x01\x02]';
    private const ANY = '(?:\x01.|[^ \t\n\0;&|()<>\x01])';

    /** Matches the start of a word that contains a quoted character or empty quotes. */
    private const MARKED = self::START . '(?=' . self::BARE . '*+[\x01\x02])';

    /** Matches the start of a command and zero or more of its reserved words. Another one, or a program, can follow. */
    private const COMMAND = '(?:^|(?<!\x01)[\n\0;&|()])[ \t]*+'
        . '(?:(?:for|case|select|function|coproc)[ \t]++' . self::ANY . '++[ \t\n\0]++'
        . '|(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|in|function|select|time|coproc)[ \t]++'
        . '|(?:-p|--|[!{}])[ \t]++)*';

    /** Matches quotes that change a plain character's meaning, in a text with QUOTED before each quoted character. */
    private const MEANINGFUL_QUOTES_PATTERN = '%'
        . self::MARKED . '(?:\x01?\d|\x02)++[<>]|' // '2'>file
        . self::START . '(?=(?:(?!=)' . self::BARE . ')*+[\x01\x02])(?:(?!=)' . self::ANY . ')++=|' // 'a'=1
        . self::COMMAND . self::MARKED . '(?:\x01?[\w-]|[!{}\]]|\x02)++(?!' . self::ANY . ')|' // 'if' true
        . '(?<!\x01)~(?:(?![/:])' . self::BARE . ')*+[\x01\x02]|' // ~'user'/file
        . '\x01:~|' // a=b':'~
        . '(?<!\x01)[{[]' . self::BARE . '*+[\x01\x02]|' // {1','2} or [a'-'z]
        . self::MARKED . '(?:\x01?\w|\x02)++\[|' // 'a'[1]=2
        . '(?<!\x01)\$\w*+(?:\x01\w|\x02)|' // $a'b'
        . self::START . '(?=(?:(?!\x02)' . self::ANY . ')*+\x02)(?:(?![$~{])' . self::ANY . ')*+[$~{]|' // ''$a
        . self::MARKED . self::ANY . '++[ \t]*+\(|' // '@'(a|b)
        . '(?<!\x01)[<>]&[ \t]*+' . self::BARE . '*+[\x01\x02]%s'; // >&3'-'

    /**
     * Returns the form of a shell line; the line itself when its form is uncertain.
     *
     * @param string $line can have NUL bytes in place of its line feeds, as in a job log
     */
    public static function of(string $line): string
    {
        if (strpbrk($line, "'\"\\") === false || strpbrk($line, self::QUOTED . self::EMPTY) !== false) {
            return $line;
        }
        $form = $marked = '';
        $at = 0;
        $length = \strlen($line);
        while ($at < $length && preg_match(self::TOKEN_PATTERN, $line, $token, \PREG_UNMATCHED_AS_NULL, $at) === 1) {
            $parts = self::canonicalParts($token);
            if ($parts === null) {
                return $line;
            }
            $form .= $parts[0];
            $marked .= $parts[1];
            $at += \strlen($token[0]);
        }

        return $at < $length || preg_match(self::MEANINGFUL_QUOTES_PATTERN, $marked) !== 0
            ? $line
            : (string) preg_replace(self::REDUNDANT_EMPTY_PATTERN, '', $form);
    }

    /**
     * @param array<string|null> $token
     *
     * @return array{string, string}|null the token's form, and its text for MEANINGFUL_QUOTES_PATTERN; null if the form
     *     is uncertain. The text has QUOTED before each quoted character. A string in double quotes that contains $ or
     *     \ counts as one quoted character.
     */
    private static function canonicalParts(array $token): ?array
    {
        $bare = $token['bare'] ?? null;
        if ($bare !== null) {
            return preg_match(self::UNCERTAIN_PATTERN, $bare) === 1 ? null : [$bare, $bare];
        }
        $double = $token['double'] ?? null;
        if ($double !== null && strpbrk($double, '$`\\') !== false) {
            return preg_match(self::UNCERTAIN_IN_DOUBLE_PATTERN, $double) === 1
                ? null
                : ["\"{$double}\"", self::QUOTED . '"'];
        }
        $value = $double ?? $token['single'] ?? $token['escaped'] ?? '';

        return $value === '' ? [self::EMPTY, self::EMPTY] : [
            (string) preg_replace(self::NOT_PLAIN_PATTERN, self::QUOTED . '$0', $value),
            (string) preg_replace('~.~s', self::QUOTED . '$0', $value),
        ];
    }
}
