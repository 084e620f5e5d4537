<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Answer;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Answer\HttpDate;

final class HttpDateTest extends TestCase
{
    private const TIME = 784_111_777;
    private const NOW = 1_790_000_000; // in 2026

    /** @return iterable<string, array{string, int}> */
    public static function dates(): iterable
    {
        yield 'the form of today' => ['Sun, 06 Nov 1994 08:49:37 GMT', self::TIME];
        yield 'RFC 850' => ['Sunday, 06-Nov-94 08:49:37 GMT', self::TIME];
        yield 'asctime()' => ['Sun Nov  6 08:49:37 1994', self::TIME];
        yield 'asctime() with a day of two digits' => ['Wed Nov 16 08:49:37 1994', self::TIME + 864_000];
        yield 'a leap second' => ['Fri, 30 Jun 1972 23:59:60 GMT', 78_796_800];
        yield 'a leap day' => ['Thu, 29 Feb 2024 00:00:00 GMT', 1_709_164_800];
        yield 'before 1970' => ['Wed, 31 Dec 1969 23:59:59 GMT', -1];
        yield 'two digits up to 50 years ahead' => ['Friday, 06-Nov-76 08:49:37 GMT', 3_371_878_177];
        yield 'two digits of more than that' => ['Sunday, 06-Nov-77 08:49:37 GMT', 247_654_177];
        yield 'a weekday of another date, which adds nothing' => ['Mon, 06 Nov 1994 08:49:37 GMT', self::TIME];
    }

    #[DataProvider('dates')]
    public function testAllThreeFormatsAreParsed(string $date, int $time): void
    {
        self::assertSame($time, HttpDate::parse($date, self::NOW));
    }

    /** @return iterable<string, array{string}> */
    public static function noDates(): iterable
    {
        yield 'nothing' => [''];
        yield 'a number' => ['784111777'];
        yield 'a word' => ['now'];
        yield 'another zone' => ['Sun, 06 Nov 1994 08:49:37 UTC'];
        yield 'an offset' => ['Sun, 06 Nov 1994 08:49:37 +0000'];
        yield 'no zone' => ['Sun, 06 Nov 1994 08:49:37'];
        yield 'no weekday' => ['06 Nov 1994 08:49:37 GMT'];
        yield 'a day of one digit' => ['Sun, 6 Nov 1994 08:49:37 GMT'];
        yield 'small letters' => ['sun, 06 nov 1994 08:49:37 gmt'];
        yield 'a day that there is not' => ['Thu, 30 Feb 1994 08:49:37 GMT'];
        yield 'an hour that there is not' => ['Sun, 06 Nov 1994 24:49:37 GMT'];
        yield 'a second that there is not' => ['Sun, 06 Nov 1994 08:49:61 GMT'];
        yield 'ISO 8601' => ['1994-11-06T08:49:37Z'];
        yield 'two' => ['Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT'];
        yield 'a line break' => ["Sun, 06 Nov 1994 08:49:37 GMT\n"];
    }

    #[DataProvider('noDates')]
    public function testOtherTextsAreNotParsed(string $date): void
    {
        self::assertNull(HttpDate::parse($date, self::NOW));
    }

    public function testDatesAreSentInTheCurrentFormat(): void
    {
        self::assertSame('Sun, 06 Nov 1994 08:49:37 GMT', HttpDate::of(self::TIME));
    }
}
