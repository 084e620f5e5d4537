<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

final class Plural
{
    private function __construct() {}

    /** @param string $noun in the singular; its plural ends with s */
    public static function of(int $count, string $noun): string
    {
        return "{$count} {$noun}" . ($count === 1 ? '' : 's');
    }
}
