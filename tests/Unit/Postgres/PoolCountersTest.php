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
        $counters = new PoolCounters();
        $waits = Locale::withDecimalComma($this->path(), $counters->waits(...));
        $waits ?? self::markTestSkipped('The locale can not be loaded');

        self::assertSame((new PoolCounters())->waits(), $waits);
        self::assertArrayHasKey('wait_seconds_le_0.001_total', $waits);
    }
}
