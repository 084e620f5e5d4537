<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * Normalizes passwords before they are hashed, as libpq and the server do. A password that is not UTF-8 or violates
 * RFC 4013 stays unchanged. Without ext-intl, every password stays unchanged.
 *
 * @see https://www.rfc-editor.org/rfc/rfc4013
 */
final class SaslPrep
{
    /** Table B.1 of RFC 3454: characters that are removed. */
    private const MAPPED_TO_NOTHING_PATTERN = '~[\x{AD}\x{34F}\x{1806}\x{180B}-\x{180D}\x{200B}-\x{200D}\x{2060}'
        . '\x{FE00}-\x{FE0F}\x{FEFF}]~u';

    /** Table C.1.2 of RFC 3454: characters that are replaced with a space. */
    private const NON_ASCII_SPACE_PATTERN = '~[\x{A0}\x{1680}\x{2000}-\x{200B}\x{202F}\x{205F}\x{3000}]~u';

    /** Tables C.1.2, C.2.1, C.2.2 and C.3 to C.9 of RFC 3454, without C.5 (surrogates, which UTF-8 can't contain). */
    private const PROHIBITED_PATTERN = '~[\x{A0}\x{1680}\x{2000}-\x{200B}\x{202F}\x{205F}\x{3000}'
        . '\x00-\x1F\x7F\x{80}-\x{9F}\x{6DD}\x{70F}\x{180E}\x{200C}\x{200D}\x{2028}\x{2029}\x{2060}-\x{2063}'
        . '\x{206A}-\x{206F}\x{FEFF}\x{FFF9}-\x{FFFC}\x{1D173}-\x{1D17A}'
        . '\x{E000}-\x{F8FF}\x{F0000}-\x{FFFFD}\x{100000}-\x{10FFFD}'
        . '\x{FDD0}-\x{FDEF}\x{FFFE}\x{FFFF}\x{1FFFE}\x{1FFFF}\x{2FFFE}\x{2FFFF}\x{3FFFE}\x{3FFFF}\x{4FFFE}\x{4FFFF}'
        . '\x{5FFFE}\x{5FFFF}\x{6FFFE}\x{6FFFF}'
        . '\x{7FFFE}\x{7FFFF}\x{8FFFE}\x{8FFFF}\x{9FFFE}\x{9FFFF}\x{AFFFE}\x{AFFFF}\x{BFFFE}\x{BFFFF}\x{CFFFE}'
        . '\x{CFFFF}\x{DFFFE}\x{DFFFF}\x{EFFFE}\x{EFFFF}\x{FFFFE}\x{FFFFF}\x{10FFFE}\x{10FFFF}'
        . '\x{FFFD}\x{2FF0}-\x{2FFB}\x{340}\x{341}\x{200E}\x{200F}\x{202A}-\x{202E}\x{E0001}\x{E0020}-\x{E007F}]~u';

    /** Version of Unicode on which RFC 3454 is based. */
    private const UNICODE_VERSION = [3, 2, 0, 0];

    public static function prepare(#[\SensitiveParameter] string $password): string
    {
        if (
            preg_match('~[^\x00-\x7f]~', $password) !== 1
            || !\extension_loaded('intl')
            || preg_match('~~u', $password) !== 1
        ) {
            return $password;
        }
        // U+200B matches both patterns. PostgreSQL replaces U+200B with a space, so the pattern of spaces comes first.
        $mapped = (string) preg_replace(
            [self::NON_ASCII_SPACE_PATTERN, self::MAPPED_TO_NOTHING_PATTERN],
            [' ', ''],
            $password,
        );
        if (!self::isKnown($mapped)) {
            return $password;
        }
        $prepared = \Normalizer::normalize($mapped, \Normalizer::FORM_KC);

        return !\is_string($prepared)
            || $prepared === ''
            || preg_match(self::PROHIBITED_PATTERN, $prepared) === 1
            || !self::isKnown($prepared)
            || !self::isOfOneDirection($prepared)
            ? $password
            : $prepared;
    }

    /** Returns whether all characters are assigned in the Unicode version of RFC 3454. */
    private static function isKnown(#[\SensitiveParameter] string $text): bool
    {
        foreach (self::characters($text) as $character) {
            $age = \IntlChar::charAge($character);
            if ($age === [0, 0, 0, 0] || $age > self::UNICODE_VERSION) {
                return false;
            }
        }

        return true;
    }

    /**
     * Returns whether the text complies with RFC 3454, section 6: a text with right-to-left characters must begin and
     * end with such characters, and must not contain left-to-right characters.
     */
    private static function isOfOneDirection(#[\SensitiveParameter] string $text): bool
    {
        $right = [\IntlChar::CHAR_DIRECTION_RIGHT_TO_LEFT, \IntlChar::CHAR_DIRECTION_RIGHT_TO_LEFT_ARABIC];
        $directions = array_map(\IntlChar::charDirection(...), self::characters($text));
        if (array_intersect($right, $directions) === []) {
            return true;
        }

        return !\in_array(\IntlChar::CHAR_DIRECTION_LEFT_TO_RIGHT, $directions, true)
            && \in_array($directions[0], $right, true)
            && \in_array($directions[array_key_last($directions)], $right, true);
    }

    /** @return list<string> */
    private static function characters(#[\SensitiveParameter] string $text): array
    {
        preg_match_all('~.~su', $text, $characters);

        return $characters[0];
    }
}
