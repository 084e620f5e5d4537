<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Internal\NumberRange;

final class Duration
{
    public const FORM = 'a number of seconds, or a number with s, m, h or d such as 10m, at most '
        . NumberRange::MAX_SECONDS
        . ' s';
    private const UNITS = ['' => 1, 's' => 1, 'm' => 60, 'h' => 3600, 'd' => 86400];

    /** @return float|null seconds; null when the text is invalid or exceeds {@see NumberRange::MAX_SECONDS} */
    public static function parse(string $text): ?float
    {
        if (preg_match('/^(\d{1,10}(?:\.\d+)?|\.\d+)([smhd]?)$/D', $text, $match) !== 1) {
            return null;
        }

        $seconds = (float) $match[1] * self::UNITS[$match[2]];

        return $seconds <= NumberRange::MAX_SECONDS ? $seconds : null;
    }

    public static function format(float $seconds): string
    {
        $seconds = (int) round($seconds);
        $hours = intdiv($seconds, 3600);

        return $hours > 0
            ? \sprintf('%d:%02d:%02d', $hours, intdiv($seconds, 60) % 60, $seconds % 60)
            : \sprintf('%d:%02d', intdiv($seconds, 60), $seconds % 60);
    }
}
