<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** What commands have written, taken apart. */
final class Text
{
    /** @return list<string> the lines of a file; none when it is not there */
    public static function lines(string $path): array
    {
        $lines = @file($path, \FILE_IGNORE_NEW_LINES);

        return $lines === false ? [] : $lines;
    }

    /** @return list<int> the numbers of a text between blanks and line ends */
    public static function numbers(string $text): array
    {
        preg_match_all('/\d+/', $text, $matches);

        return array_map(intval(...), $matches[0]);
    }

    /** @return list<int> the numbers of a file, such as process ids; none when it is not there */
    public static function numbersIn(string $path): array
    {
        return self::numbers(implode("\n", self::lines($path)));
    }

    /** @return list<string> the names in a folder; none when it is not there */
    public static function names(string $directory): array
    {
        $names = @scandir($directory);

        return $names === false ? [] : array_values(array_diff($names, ['.', '..']));
    }
}
