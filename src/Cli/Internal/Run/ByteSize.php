<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

final class ByteSize
{
    public const UNITS = 'K, M and G stand for powers of 1024; k, m and g for powers of 1000';

    private const PATTERN = '/^(\d{1,10}(?:\.\d{1,9})?)([kmgtp]?)$/Di';

    /** @return float|null bytes; null when the text is invalid */
    public static function parse(string $text): ?float
    {
        if (preg_match(self::PATTERN, $text, $match) !== 1) {
            return null;
        }
        $base = ctype_upper($match[2]) ? 1024 : 1000;
        $power = $match[2] === '' ? 0 : (int) strpos('kmgtp', strtolower($match[2])) + 1;

        return (float) $match[1] * $base ** $power;
    }
}
