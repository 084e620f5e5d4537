<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Escapes text from other sources, so that a terminal does not interpret it. */
final class TerminalText
{
    /** Unicode control characters outside ASCII. A terminal interprets U+009B like ESC with "[". */
    private const C1_PATTERN = '/\xc2[\x80-\x9f]/';

    private function __construct() {}

    /** Returns the text in one line, with escaped control characters. */
    public static function escape(string $text): string
    {
        $last = preg_match('//u', $text) === 1 ? "\177" : "\377"; // without UTF-8, any byte can be a control character

        return (string) preg_replace_callback(
            self::C1_PATTERN,
            static fn(array $c1): string => addcslashes($c1[0], "\177..\377"),
            addcslashes($text, "\0..\37\177..{$last}"),
        );
    }

    /** Escapes control characters in JSON that was encoded with JSON_UNESCAPED_UNICODE. */
    public static function escapeJson(string $json): string
    {
        return (string) preg_replace_callback(
            self::C1_PATTERN,
            static fn(array $c1): string => '\u00' . bin2hex($c1[0][1]),
            $json,
        );
    }
}
