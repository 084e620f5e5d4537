<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Messages of PHP about invalid JSON. PHP 8.6 adds where the error is, such as "near location 1:2". */
final class JsonMessages
{
    public static function withoutLocation(string $text): string
    {
        return (string) preg_replace('/ near location \d+:\d+/', '', $text);
    }
}
