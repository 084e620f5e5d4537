<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Creates locales of the GNU C library in a directory, because few locales are installed on most machines. */
final class Locale
{
    private const MO_MAGIC = 0x9504_12DE;
    private const MO_HEADER_BYTES = 28;

    /** Start of a file for the category LC_NUMERIC: its magic number, the number of its values, and their offsets. */
    private const NUMERIC_HEADER = [0x2003_1114, 6, 32, 34, 36, 40, 44, 48];

    /** A locale whose file for LC_CTYPE is changed: its tables for toupper() and tolower() begin at the index -128. */
    private const CTYPE_FILE = '/usr/lib/locale/C.utf8/LC_CTYPE';
    private const TOUPPER = 1;
    private const TOLOWER = 3;
    private const TABLE_START = 128;

    /**
     * Returns PHP code that makes the C library translate an error message.
     *
     * @param string $directory existing directory for the translation
     */
    public static function translating(string $directory, string $message, string $translation): string
    {
        mkdir("{$directory}/xx/LC_MESSAGES", recursive: true);
        $text = self::MO_HEADER_BYTES + 16;
        file_put_contents(
            "{$directory}/xx/LC_MESSAGES/libc.mo",
            pack('V7', self::MO_MAGIC, 0, 1, self::MO_HEADER_BYTES, self::MO_HEADER_BYTES + 8, 0, $text)
                . pack('V4', \strlen($message), $text, \strlen($translation), $text + \strlen($message) + 1)
                . "{$message}\0{$translation}\0",
        );

        return 'putenv("LANGUAGE=xx"); setlocale(LC_ALL, "C.UTF-8");'
            . ' bindtextdomain("libc", ' . var_export($directory, true) . ');';
    }

    /**
     * Calls $call while the decimal separator of the process is a comma. Returns null if this is not possible.
     *
     * @template T
     *
     * @param string $directory existing directory for the locale
     * @param \Closure(): T $call
     *
     * @return T|null
     */
    public static function withDecimalComma(string $directory, \Closure $call): mixed
    {
        $separators = pack('V2', \ord(','), \ord('.'));
        $content = pack('V*', ...self::NUMERIC_HEADER) . ",\0.\0\3\3\0\0{$separators}UTF-8\0";

        return self::with($directory, \LC_NUMERIC, 'LC_NUMERIC', $content, $call);
    }

    /**
     * Calls $call while "i" and "I" are different letters, as in Turkish. Returns null if this is not possible.
     *
     * @template T
     *
     * @param string $directory existing directory for the locale
     * @param \Closure(): T $call
     *
     * @return T|null
     */
    public static function withDotlessI(string $directory, \Closure $call): mixed
    {
        $ctype = @file_get_contents(self::CTYPE_FILE);
        if ($ctype === false) {
            return null;
        }
        foreach ([self::TOUPPER => 'i', self::TOLOWER => 'I'] as $table => $letter) {
            /** @var array{1: int} $start */
            $start = unpack('V', $ctype, 8 + 4 * $table);
            $offset = $start[1] + 4 * (self::TABLE_START + \ord($letter));
            $ctype = substr_replace($ctype, pack('V', \ord($letter)), $offset, 4);
        }

        return self::with($directory, \LC_CTYPE, 'LC_CTYPE', $ctype, $call);
    }

    /**
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return T|null
     */
    private static function with(string $directory, int $category, string $file, string $content, \Closure $call): mixed
    {
        mkdir("{$directory}/spindle");
        file_put_contents("{$directory}/spindle/{$file}", $content);
        $path = getenv('LOCPATH');
        $before = setlocale($category, '0');
        putenv("LOCPATH={$directory}");
        try {
            return setlocale($category, 'spindle') === false ? null : $call();
        } finally {
            setlocale($category, (string) $before);
            putenv($path === false ? 'LOCPATH' : "LOCPATH={$path}");
        }
    }
}
