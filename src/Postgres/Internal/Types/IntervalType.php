<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/**
 * Converts intervals. In PostgreSQL, months, days and time have separate signs. So the properties of a decoded
 * DateInterval may be negative, and its property invert is always 0. Decodes the IntervalStyles "postgres" and
 * "iso_8601". Encodes as "iso_8601", which the server always accepts.
 */
final readonly class IntervalType implements Type
{
    private const POSTGRES_PATTERN = '/^(?=.)(?:([+-]?\d+) years?)? ?(?:([+-]?\d+) mons?)? ?(?:([+-]?\d+) days?)? ?'
        . '(?:([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?$/D';

    private const ISO_8601_PATTERN = '/^P(?=.)(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?'
        . '(?:T(?=.)(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d{1,6}))?S)?)?$/D';

    /** Maximum seconds of an interval. The server stores the time part as microseconds in 64 bits. */
    private const MAX_SECONDS = 9_200_000_000_000;

    public function decode(#[\SensitiveParameter] string $text): \DateInterval|float
    {
        if (preg_match(self::POSTGRES_PATTERN, $text, $parts, \PREG_UNMATCHED_AS_NULL) === 1) {
            [, $years, $months, $days, $sign, $hours, $minutes, $seconds, $fraction] = $parts;
            [$hours, $minutes] = [$sign . $hours, $sign . $minutes];
        } elseif (preg_match(self::ISO_8601_PATTERN, $text, $parts, \PREG_UNMATCHED_AS_NULL) === 1) {
            [, $years, $months, $days, $hours, $minutes, $sign, $seconds, $fraction] = $parts;
        } else {
            return Scalar::infinity($text)
                ?? throw ProtocolException::unreadableValue(
                    'interval',
                    'the setting IntervalStyle must be postgres or iso_8601',
                );
        }
        $interval = new \DateInterval('PT0S');
        [$interval->y, $interval->m, $interval->d] = [(int) $years, (int) $months, (int) $days];
        [$interval->h, $interval->i, $interval->s] = [(int) $hours, (int) $minutes, (int) ($sign . $seconds)];
        if ($fraction !== null) {
            // PHP truncates the float to whole microseconds. Adding 0.1 µs ensures that no microsecond is lost.
            $interval->f = ($sign === '-' ? -1 : 1) * ((int) str_pad($fraction, 6, '0') + 0.1) / 1e6;
        }

        return $interval;
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        if (!$value instanceof \DateInterval) {
            return Scalar::text($value);
        }
        if (abs($value->s) + abs($value->f) > self::MAX_SECONDS || self::isRelative($value)) {
            throw UnencodableException::of($value, 'PostgreSQL can not store it as months, days and microseconds');
        }
        $sign = $value->invert === 1 ? -1 : 1;
        $microseconds = $sign * ($value->s * 1_000_000 + (int) round($value->f * 1e6));

        return \sprintf(
            'P%dY%dM%dDT%dH%dM%s%d.%06dS',
            $sign * $value->y,
            $sign * $value->m,
            $sign * $value->d,
            $sign * $value->h,
            $sign * $value->i,
            $microseconds < 0 ? '-' : '',
            abs(intdiv($microseconds, 1_000_000)),
            abs($microseconds % 1_000_000),
        );
    }

    /** Returns whether the interval has a part that its properties do not show, such as "next weekday". */
    private static function isRelative(#[\SensitiveParameter] \DateInterval $value): bool
    {
        if ((get_object_vars($value)['from_string'] ?? false) !== true) {
            return false;
        }
        $same = new \DateInterval('PT0S');
        foreach (['y', 'm', 'd', 'h', 'i', 's', 'f'] as $property) {
            $same->{$property} = $value->{$property};
        }
        $date = new \DateTimeImmutable('2001-08-15 12:00:00 UTC');

        return ($date->add($same) <=> $date->add($value)) !== 0;
    }
}
