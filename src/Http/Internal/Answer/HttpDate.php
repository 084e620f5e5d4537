<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

/** Formats and parses dates in header fields: RFC 9110, 5.6.7. */
final class HttpDate
{
    private const MONTH_NUMBERS = [
        'Jan' => 1,
        'Feb' => 2,
        'Mar' => 3,
        'Apr' => 4,
        'May' => 5,
        'Jun' => 6,
        'Jul' => 7,
        'Aug' => 8,
        'Sep' => 9,
        'Oct' => 10,
        'Nov' => 11,
        'Dec' => 12,
    ];

    private const DAY_PATTERN = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
    private const LONG_DAY_PATTERN = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
    private const MONTH_PATTERN = '(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
    private const TIME_PATTERN = '(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d):(?<second>[0-5]\d|60)';

    /** The current format first, then two obsolete formats. */
    private const DATE_PATTERNS = [
        '/^'
            . self::DAY_PATTERN
            . ', (?<day>\d\d) '
            . self::MONTH_PATTERN
            . ' (?<year>\d{4}) '
            . self::TIME_PATTERN
            . ' GMT$/D',
        '/^'
            . self::LONG_DAY_PATTERN
            . ', (?<day>\d\d)-'
            . self::MONTH_PATTERN
            . '-(?<year>\d\d) '
            . self::TIME_PATTERN
            . ' GMT$/D',
        '/^'
            . self::DAY_PATTERN
            . ' '
            . self::MONTH_PATTERN
            . ' (?<day>\d\d| \d) '
            . self::TIME_PATTERN
            . ' (?<year>\d{4})$/D',
    ];

    /** @param int $time Unix time */
    public static function of(int $time): string
    {
        return gmdate('D, d M Y H:i:s', $time) . ' GMT';
    }

    /** @return int|null Unix time; null if the date is invalid. A year of two digits is completed relative to $now */
    public static function parse(string $date, int $now): ?int
    {
        foreach (self::DATE_PATTERNS as $pattern) {
            if (preg_match($pattern, $date, $parts) === 1) {
                return self::time($parts, $now);
            }
        }

        return null;
    }

    /** @param array<string> $parts */
    private static function time(array $parts, int $now): ?int
    {
        [$month, $day, $year] = [self::MONTH_NUMBERS[$parts['month']] ?? 0, (int) $parts['day'], (int) $parts['year']];
        if (\strlen($parts['year']) === 2) {
            $year = self::fullYear($year, (int) gmdate('Y', $now));
        }
        $time = checkdate($month, $day, $year)
            ? gmmktime((int) $parts['hour'], (int) $parts['minute'], (int) $parts['second'], $month, $day, $year)
            : false;

        return $time === false ? null : $time;
    }

    /** Adds the current century to a two-digit year. Subtracts 100 if the result is over 50 years in the future. */
    private static function fullYear(int $year, int $current): int
    {
        $year += $current - $current % 100;

        return $year > $current + 50 ? $year - 100 : $year;
    }
}
