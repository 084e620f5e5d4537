<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Text from elsewhere, which no terminal is to obey. */
final class TerminalText
{
    /** Of Unicode's control characters those that are not ASCII: a terminal obeys U+009B as it does ESC with "[". */
    private const C1 = '/\xc2[\x80-\x9f]/';

    private function __construct() {}

    /** In one line. */
    public static function escape(string $text): string
    {
        $last = preg_match('//u', $text) === 1 ? "\177" : "\377"; // what is not UTF-8 may be anything

        return (string) preg_replace_callback(self::C1, static fn(array $c1): string => addcslashes($c1[0], "\177..\377"), addcslashes($text, "\0..\37\177..{$last}"));
    }

    /** Of JSON that leaves characters as they are. */
    public static function escapeJson(string $json): string
    {
        return (string) preg_replace_callback(self::C1, static fn(array $c1): string => '\u00' . bin2hex($c1[0][1]), $json);
    }
}
