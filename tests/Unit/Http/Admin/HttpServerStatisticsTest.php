<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpServerStatistics;

final class HttpServerStatisticsTest extends TestCase
{
    public function testStatisticsAreTheSameAfterJson(): void
    {
        $statistics = FixedOverview::process(
            count: 4,
            answered: [200 => 1, 404 => 2],
            routes: ['/ü "x"' => [1, 2.0, 3]],
            pools: ['db' => ['in_use' => 1, 'wait_seconds' => 3.0, 'tiny' => 1e-12]],
            durationCounts: [1, 2, 3],
        );

        self::assertEquals($statistics, HttpServerStatistics::fromJson($statistics->toJson()));
        self::assertSame($statistics->pools, HttpServerStatistics::fromJson($statistics->toJson())->pools);
        self::assertSame($statistics->routes, HttpServerStatistics::fromJson($statistics->toJson())->routes);
    }

    public function testEmptyStatisticsAreTheSameAfterJson(): void
    {
        $statistics = FixedOverview::process();

        self::assertEquals($statistics, HttpServerStatistics::fromJson($statistics->toJson()));
    }

    public function testValuesThatJsonDoesNotSupportAreReplaced(): void
    {
        $statistics = FixedOverview::process(
            routes: ["/\xff" => [1, 1.0, 0]],
            pools: ['db' => ['age_seconds' => \INF, 'ratio' => \NAN]],
        );
        $told = HttpServerStatistics::fromJson($statistics->toJson());

        self::assertSame(["/\u{FFFD}" => [1, 1.0, 0]], $told->routes);
        self::assertEquals(['db' => ['age_seconds' => 0, 'ratio' => 0]], $told->pools);
    }
}
