<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Internal\Answer\HttpDate;

/** Reads the date in the Expires attribute of a cookie: RFC 6265bis, 5.1.1. The weekday and the zone are ignored. */
final class CookieDate
{
    private const TOKEN = '/[^\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]++/';

    private const MIN_YEAR = 1601;

    /** Returns the Unix time; null if the text is no date. */
    public static function parse(string $text): ?int
    {
        $time = $day = $month = $year = null;
        preg_match_all(self::TOKEN, $text, $tokens);
        foreach ($tokens[0] as $token) {
            $start = strtolower(substr($token, 0, 3));
            if ($time === null && preg_match('/^(\d\d?):(\d\d?):(\d\d?)(?!\d)/', $token, $match) === 1) {
                $time = [(int) $match[1], (int) $match[2], (int) $match[3]];
            } elseif ($day === null && preg_match('/^\d\d?(?!\d)/', $token, $match) === 1) {
                $day = (int) $match[0];
            } elseif ($month === null && isset(HttpDate::MONTHS[$start])) {
                $month = HttpDate::MONTHS[$start];
            } elseif ($year === null && preg_match('/^\d{2,4}(?!\d)/', $token, $match) === 1) {
                $year = self::fullYear((int) $match[0]);
            }
        }
        if ($time === null || $day === null || $month === null || $year === null) {
            return null;
        }
        [$hour, $minute, $second] = $time;
        $isDate = $year >= self::MIN_YEAR && checkdate($month, $day, $year);
        $isTime = $hour <= 23 && $minute <= 59 && $second <= 59;

        return $isDate && $isTime ? (int) gmmktime($hour, $minute, $second, $month, $day, $year) : null;
    }

    private static function fullYear(int $year): int
    {
        return match (true) {
            $year <= 69 => $year + 2000,
            $year <= 99 => $year + 1900,
            default => $year,
        };
    }
}
