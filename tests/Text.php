<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Splits the output of commands. */
final class Text
{
    /** @return list<string> lines of a file; none if it does not exist */
    public static function lines(string $path): array
    {
        $lines = @file($path, \FILE_IGNORE_NEW_LINES);

        return $lines === false ? [] : $lines;
    }

    /** @return list<int> numbers in a text, separated by blanks and line ends */
    public static function numbers(string $text): array
    {
        preg_match_all('/\d+/', $text, $matches);

        return array_map(intval(...), $matches[0]);
    }

    /** @return list<int> numbers in a file, such as process ids; none if it does not exist */
    public static function numbersIn(string $path): array
    {
        return self::numbers(implode("\n", self::lines($path)));
    }

    /** @return list<string> names in a folder; none if it does not exist */
    public static function names(string $directory): array
    {
        $names = @scandir($directory);

        return $names === false ? [] : array_values(array_diff($names, ['.', '..']));
    }
}
