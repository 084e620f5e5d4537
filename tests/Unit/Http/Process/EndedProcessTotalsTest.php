<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Admin\CombinedStatistics;
use Spindle\Http\Internal\Process\EndedProcessTotals;
use Spindle\Tests\Unit\Http\Admin\FixedOverview;

final class EndedProcessTotalsTest extends TestCase
{
    public function testCountersOfEndedProcessesAreSummed(): void
    {
        $past = new EndedProcessTotals();
        $past->add(
            FixedOverview::process(
                pid: 1,
                answered: [200 => 5],
                routes: ['/a' => [1, 0.5, 1]],
                pools: ['db' => ['opened_total' => 2]],
                durationCounts: [1, 2],
            )->toJson(),
        );
        $past->add(
            FixedOverview::process(
                pid: 2,
                answered: [200 => 1, 404 => 2],
                routes: ['/a' => [2, 0.5, 0]],
                pools: ['db' => ['opened_total' => 1]],
                durationCounts: [2, 3],
            )->toJson(),
        );

        self::assertSame([200 => 6, 404 => 2], $past->totals->answered);
        self::assertSame(['/a' => [3, 1.0, 1]], $past->totals->routes);
        self::assertSame(['db' => ['opened_total' => 3]], $past->totals->pools);
        self::assertSame([3, 5], \array_slice($past->totals->durationCounts, 0, 2));
    }

    public function testGaugesOfEndedProcessesDoNotCount(): void
    {
        $past = new EndedProcessTotals();
        $past->add(FixedOverview::process(pid: 1, count: 5, pools: ['db' => ['in_use' => 2]])->toJson());
        $totals = (new CombinedStatistics(
            [FixedOverview::process(pid: 2, pools: ['db' => ['in_use' => 1]])],
            $past->totals,
        ))->totals;

        self::assertSame([0, 1, ['db' => ['in_use' => 1]]], [$totals->inFlight, $totals->connections, $totals->pools]);
        self::assertSame([], $past->totals->pools, 'what is added to it later is added to a copy');
    }

    public function testManyEndedProcessesNeedNoMoreMemory(): void
    {
        $past = new EndedProcessTotals();
        for ($pid = 1; $pid <= 50; ++$pid) {
            $past->add(
                FixedOverview::process(
                    pid: $pid,
                    routes: array_fill_keys(
                        array_map(static fn(int $n): string => "/{$pid}/{$n}", range(1, 100)),
                        [1, 0.25, 1],
                    ),
                )->toJson(),
            );
        }

        self::assertLessThanOrEqual(501, \count($past->totals->routes));
        self::assertSame([1, 0.25, 1], $past->totals->routes['/1/1']);
        self::assertSame(5000, array_sum(array_column($past->totals->routes, 0)));
    }

    public function testTheRoutesOfAProcessStaySeparateAfterItsEnd(): void
    {
        $routes = static fn(string $prefix): array
            => array_fill_keys(array_map(static fn(int $n): string => "/{$prefix}{$n}", range(1, 300)), [5, 0.25, 1]);
        $past = new EndedProcessTotals();
        $first = FixedOverview::process(pid: 1, routes: $routes('a'));
        $second = FixedOverview::process(pid: 2, routes: $routes('b'));
        $past->addRoutes($first->toJson());
        $past->addRoutes($second->toJson());
        $before = (new CombinedStatistics([$first, $second], $past->totals))->totals->routes;
        $past->add($second->toJson());

        self::assertSame([5, 0.25, 1], $before['/b200']);
        self::assertSame([500, 25.0, 100], $before['other']);
        self::assertSame($before, (new CombinedStatistics([$first], $past->totals))->totals->routes);
        $past->add($first->toJson());
        self::assertSame($before, $past->totals->routes);
    }

    /** @return iterable<string, array{string}> */
    public static function nonsense(): iterable
    {
        yield 'no JSON' => ['{'];
        yield 'no object' => ['7'];
        yield 'another object' => ['{"pid":1,"more":[]}'];
        yield 'other types' => [str_replace('"routes":[]', '"routes":7', FixedOverview::process()->toJson())];
    }

    #[DataProvider('nonsense')]
    public function testMalformedStatisticsAreIgnored(string $counted): void
    {
        $past = new EndedProcessTotals();
        $past->addRoutes($counted);
        $past->add($counted);

        self::assertSame([[], []], [$past->totals->answered, $past->totals->routes]);
    }
}
