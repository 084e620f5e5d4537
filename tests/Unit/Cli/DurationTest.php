<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Duration;

final class DurationTest extends TestCase
{
    /** @return iterable<string, array{string, float|null}> */
    public static function durations(): iterable
    {
        yield 'seconds' => ['90', 90.0];
        yield 'a fraction' => ['1.5', 1.5];
        yield 'only a fraction' => ['.5', 0.5];
        yield 'seconds, said' => ['2s', 2.0];
        yield 'minutes' => ['10m', 600.0];
        yield 'hours' => ['1.5h', 5400.0];
        yield 'days' => ['2d', 172_800.0];
        yield 'the longest' => ['1000000000', 1e9];
        yield 'a longer one' => ['1000000001', null];
        yield 'nothing' => ['', null];
        yield 'less than nothing' => ['-1', null];
        yield 'a word' => ['soon', null];
        yield 'an unknown unit' => ['3w', null];
        yield 'a unit alone' => ['m', null];
        yield 'an exponent' => ['1e3', null];
        yield 'more after it' => ["1\n", null];
    }

    #[DataProvider('durations')]
    public function testADurationIsSecondsOrHasAUnit(string $text, ?float $seconds): void
    {
        self::assertSame($seconds, Duration::parse($text));
    }

    public function testADurationIsShownAsAClockDoes(): void
    {
        self::assertSame(
            ['0:00', '0:07', '12:34', '1:02:03', '100:00:00'],
            array_map(Duration::format(...), [0.4, 6.6, 754.0, 3723.0, 360_000.0]),
        );
    }
}
