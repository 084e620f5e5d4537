<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

final class Plural
{
    /** @param string $noun singular form; the plural adds only an s */
    public static function of(int $count, string $noun): string
    {
        return "{$count} {$noun}" . ($count === 1 ? '' : 's');
    }
}
