<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

/** Formats and parses dates in header fields: RFC 9110, 5.6.7. */
final class HttpDate
{
    public const MONTHS = [
        'jan' => 1, 'feb' => 2, 'mar' => 3, 'apr' => 4, 'may' => 5, 'jun' => 6,
        'jul' => 7, 'aug' => 8, 'sep' => 9, 'oct' => 10, 'nov' => 11, 'dec' => 12,
    ];

    private const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
    private const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
    private const MONTH = '(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
    private const TIME = '(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d):(?<second>[0-5]\d|60)';

    /** The current format first, then two obsolete formats. */
    private const DATE_PATTERNS = [
        '/^' . self::DAY . ', (?<day>\d\d) ' . self::MONTH . ' (?<year>\d{4}) ' . self::TIME . ' GMT$/D',
        '/^' . self::LONG_DAY . ', (?<day>\d\d)-' . self::MONTH . '-(?<year>\d\d) ' . self::TIME . ' GMT$/D',
        '/^' . self::DAY . ' ' . self::MONTH . ' (?<day>\d\d| \d) ' . self::TIME . ' (?<year>\d{4})$/D',
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
        $month = self::MONTHS[strtolower($parts['month'])] ?? 0;
        [$day, $year] = [(int) $parts['day'], (int) $parts['year']];
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
