<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Helper\Helper;

/** Escapes control characters in text from outside this program, because a terminal would interpret them. */
final class TerminalText
{
    /** Unicode control characters outside ASCII. A terminal interprets U+009B like ESC and "[". */
    private const C1_PATTERN = '/\xc2[\x80-\x9f]/';

    /** Bytes that {@see fit()} reads per column. A character with its combining marks rarely has more bytes. */
    private const BYTES_PER_COLUMN = 16;

    /** Returns the text in one line, with escaped control characters. */
    public static function escape(string $text): string
    {
        $last = preg_match('//u', $text) === 1 ? "\177" : "\377"; // if not UTF-8, bytes above 127 can be control bytes

        return (string) preg_replace_callback(
            self::C1_PATTERN,
            static fn(array $c1): string => addcslashes($c1[0], "\177..\377"),
            addcslashes($text, "\0..\37\177..{$last}"),
        );
    }

    /** Returns the escaped text. A text of more than `$columns` columns is shortened, and ends with "…". */
    public static function fit(string $text, int $columns): string
    {
        $begin = substr($text, 0, max(0, $columns) * self::BYTES_PER_COLUMN);
        if ($begin !== $text && preg_match('//u', $begin) !== 1) {
            $begin = (string) preg_replace('/[\xc0-\xff][\x80-\xbf]*$/D', '', $begin);
        }
        $line = self::escape($begin);
        if ($begin === $text && self::width($line) <= $columns) {
            return $line;
        }
        $line = Helper::substr($line, 0, max(0, $columns - 1));
        while ($line !== '' && self::width($line) >= $columns) {
            $line = Helper::substr($line, 0, -1);
        }

        return $columns < 1 ? '' : "{$line}…";
    }

    /** Returns how many columns of a terminal a text without control characters needs. */
    public static function width(string $text): int
    {
        // For plain ASCII, strlen() is faster, because Symfony looks up each character in tables.
        return preg_match('/[^ -~]/', $text) === 1 ? Helper::width($text) : \strlen($text);
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
