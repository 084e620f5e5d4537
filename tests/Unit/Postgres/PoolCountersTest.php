<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Pool\PoolCounters;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;

final class PoolCountersTest extends TestCase
{
    use OwnDirectory;

    public function testTheNamesOfTheBucketsAreTheSameInEachLocale(): void
    {
        $statistics = static fn(): array => (new PoolCounters())->waits->statistics('wait_seconds');
        $waits = Locale::withDecimalComma($this->path(), $statistics);
        $waits ?? self::markTestSkipped('The locale can not be loaded');

        self::assertSame($statistics(), $waits);
        self::assertArrayHasKey('wait_seconds_le_0.001_total', $waits);
    }
}
