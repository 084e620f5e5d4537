<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Spindle\Http\Application;
use Spindle\Http\HttpServer;
use Spindle\Http\Internal\Admin\LocalServers;
use Spindle\Http\Internal\Server\Checks;
use Spindle\Http\Response;
use Spindle\Statistics;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

final class LocalServersTest extends TidyTestCase
{
    public function testServersOfOneProcessAreReportedAsOne(): void
    {
        $shared = self::pool(3);
        $servers = [
            self::server(['db' => $shared, 'one' => self::pool(1)]),
            self::server(['db' => $shared, 'two' => self::pool(2)]),
        ];
        [$together] = $all = (new LocalServers($servers))->statistics()->processes;

        self::assertCount(1, $all);
        self::assertSame(
            [getmypid(), $servers[0]->statistics()->startedAt, false],
            [$together->pid, $together->startedAt, $together->stopping],
        );
        self::assertSame(
            ['db' => ['in_use' => 3], 'one' => ['in_use' => 1], 'two' => ['in_use' => 2]],
            $together->pools,
        );
        self::assertCount(\count($servers[0]->statistics()->durationCounts), $together->durationCounts);
        self::assertGreaterThan(0, $together->memory);
    }

    public function testASharedPoolWithANumberAsItsNameIsReportedOnce(): void
    {
        [$seven, $nine] = array_map(FixedOverview::numeric(...), ['7', '9']);
        $shared = self::pool(3);
        $servers = [self::server([$seven => $shared]), self::server([$seven => $shared, $nine => self::pool(1)])];
        [$together] = (new LocalServers($servers))->statistics()->processes;

        self::assertSame([$seven => ['in_use' => 3], $nine => ['in_use' => 1]], $together->pools);
    }

    public function testDifferentPoolsWithTheSameNameAreRefused(): void
    {
        $servers = [self::server(['db' => self::pool(1)]), self::server(['db' => self::pool(2)])];

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('Two servers have different statistics named "db".');
        new LocalServers($servers);
    }

    public function testAllServersCountAsStoppingWhenOneStops(): void
    {
        $servers = [self::server(), self::server()];
        $servers[1]->close();

        self::assertFalse((new LocalServers($servers))->statistics()->isReady());
        self::assertSame('draining', (new LocalServers($servers))->readiness()->problem);
    }

    public function testACheckFailsIfItFailsInOneServer(): void
    {
        $end = new DeferredCancellation();
        $works = static function (): void {};
        $fails = static fn() => throw new \RuntimeException('gone');
        $late = static fn() => delay(60, cancellation: $end->getCancellation());
        $servers = [
            self::server(checks: ['db' => $works, 'disk' => $works]),
            self::server(checks: ['db' => $fails, 'late' => $late]),
            self::server(checks: ['db' => $works]),
        ];

        self::assertSame(
            ['db' => 'gone', 'disk' => null, 'late' => Checks::LATE],
            (new LocalServers($servers))->readiness()->checks,
        );
        $end->cancel();
        delay(0); // lets the late check end
    }

    public function testChecksOfAllAreRunAtOnce(): void
    {
        /** @var DeferredFuture<null> $all */
        $all = new DeferredFuture();
        $begun = 0;
        $check = static function () use ($all, &$begun): void {
            ++$begun === 3 ? $all->complete() : $all->getFuture()->await();
        };
        $servers = [
            self::server(checks: ['a' => $check]),
            self::server(checks: ['b' => $check]),
            self::server(checks: ['c' => $check]),
        ];

        self::assertSame(['a' => null, 'b' => null, 'c' => null], (new LocalServers($servers))->readiness()->checks);
    }

    /**
     * @param array<string, Statistics>       $statistics
     * @param array<string, \Closure(): void> $checks
     */
    private static function server(array $statistics = [], array $checks = []): HttpServer
    {
        return new HttpServer(new Application(static fn(): Response => Response::text(''), $statistics, $checks));
    }

    private static function pool(int $used): Statistics
    {
        return new class ($used) implements Statistics {
            public function __construct(private readonly int $used) {}

            public function statistics(): array
            {
                return ['in_use' => $this->used];
            }
        };
    }
}
