<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\CookieDate;

final class CookieDateTest extends TestCase
{
    #[TestWith(['Sun, 06 Nov 1994 08:49:37 GMT', '1994-11-06 08:49:37'])]
    #[TestWith(['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06 08:49:37'])]
    #[TestWith(['Sun Nov  6 08:49:37 1994', '1994-11-06 08:49:37'])]
    #[TestWith(['Fri, 06 Nov 1994 08:49:37 GMT', '1994-11-06 08:49:37'])]
    #[TestWith(['Wdy, 06-Nov-1994 08:49:37 GMT', '1994-11-06 08:49:37'])]
    #[TestWith(['Sun, 06-november.-1994 08:49:37 GMT', '1994-11-06 08:49:37'])]
    #[TestWith(['"Sun, 06 Nov 1994 08:49:37 GMT"', '1994-11-06 08:49:37'])]
    #[TestWith(['Sun,06-NOV-1994,8:49:7GMT', '1994-11-06 08:49:07'])]
    #[TestWith(['08:49:37 1994 6th Nov', '1994-11-06 08:49:37'])]
    #[TestWith(['Sun, 06 Nov 1994 08:49:37 PST', '1994-11-06 08:49:37'])]
    #[TestWith(['Mon Nov 07 1994 00:00:00 GMT+0100 (CET)', '1994-11-07 00:00:00'])]
    #[TestWith(['01 Jan 69 00:00:00', '2069-01-01 00:00:00'])]
    #[TestWith(['01 Jan 70 00:00:00', '1970-01-01 00:00:00'])]
    #[TestWith(['01 Jan 99 00:00:00', '1999-01-01 00:00:00'])]
    #[TestWith(['01 Jan 100 00:00:00', null])]
    #[TestWith(['01 Jan 1600 00:00:00', null])]
    #[TestWith(['01 Jan 1601 00:00:00', '1601-01-01 00:00:00'])]
    #[TestWith(['01 Jan 10000 00:00:00', null])]
    #[TestWith(['29 Feb 2024 23:59:59', '2024-02-29 23:59:59'])]
    #[TestWith(['29 Feb 2023 00:00:00', null])]
    #[TestWith(['00 Jan 2024 00:00:00', null])]
    #[TestWith(['32 Jan 2024 00:00:00', null])]
    #[TestWith(['01 Jan 2024 24:00:00', null])]
    #[TestWith(['01 Jan 2024 00:60:00', null])]
    #[TestWith(['01 Jan 2024 00:00:60', null])]
    #[TestWith(['01 Jan 2024 00:00:000', null])]
    #[TestWith(['01 Jan 2024 00:00', null])]
    #[TestWith(['01 Abc 2024 00:00:00', null])]
    #[TestWith(['Jan 2024 00:00:00', null])]
    #[TestWith(['2024-01-01T00:00:00Z', null])]
    #[TestWith(['yesterday', null])]
    #[TestWith(['', null])]
    public function testADateIsReadAsByBrowsers(string $text, ?string $expected): void
    {
        $time = CookieDate::parse($text);

        self::assertSame($expected, $time === null ? null : gmdate('Y-m-d H:i:s', $time));
    }
}
