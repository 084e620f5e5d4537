<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Admin\Snapshots;
use Spindle\Tests\TidyTestCase;

final class SnapshotsTest extends TidyTestCase
{
    public function testASnapshotHasAllProcesses(): void
    {
        $event = (new Snapshots(new FixedOverview([
            FixedOverview::process(
                pid: 1,
                count: 10,
                answered: [200 => 3],
                routes: [FixedOverview::numeric('7') => [1, 0.5, 0]],
                pools: [FixedOverview::numeric('0') => ['in_use' => 1]],
                durationCounts: [3],
            ),
            FixedOverview::process(
                pid: 2,
                stopping: true,
                count: 20,
                answered: [200 => 4, 500 => 2],
                durationCounts: [6],
            ),
        ])))->follow(null)->current();
        $snapshot = (array) json_decode($event->data, true, flags: \JSON_THROW_ON_ERROR);

        self::assertEquals(
            [true, ['200' => 7, '500' => 2], 30, HttpServerStatistics::DURATION_BOUNDS],
            [$snapshot['ready'], $snapshot['answered'], $snapshot['inFlight'], $snapshot['bounds']],
        );
        self::assertSame([[7, [1, 0.5, 0]]], $snapshot['routes']);
        self::assertSame([[0, ['in_use' => 1]]], $snapshot['pools']);
        self::assertEquals([
            [
                'pid' => 1,
                'started' => 1_700_000_000.5,
                'stopping' => false,
                'answered' => 3,
                'inFlight' => 10,
                'connections' => 11,
                'lag' => 0.1,
                'maxLag' => 1,
                'memory' => 10_000,
            ],
            [
                'pid' => 2,
                'started' => 1_700_000_000.5,
                'stopping' => true,
                'answered' => 6,
                'inFlight' => 20,
                'connections' => 21,
                'lag' => 0.2,
                'maxLag' => 2,
                'memory' => 20_000,
            ],
        ], $snapshot['processes']);
    }

    public function testNoStatisticsAreReadBeforeAPageIsOpen(): void
    {
        $overview = new FixedOverview();
        $following = (new Snapshots($overview))->follow(null);
        self::assertSame(0, $overview->asked);
        $following->current();

        self::assertSame(1, $overview->asked);
    }

    public function testSnapshotsComeOnceASecondUntilTheCancellation(): void
    {
        $overview = new FixedOverview();
        $leaving = new DeferredCancellation();
        $times = [];
        foreach ((new Snapshots($overview))->follow($leaving->getCancellation()) as $_) {
            $times[] = hrtime(true);
            if (\count($times) === 3) {
                EventLoop::queue($leaving->cancel(...));
            }
        }

        self::assertSame([3, 3], [\count($times), $overview->asked]);
        self::assertGreaterThan(1.9, ($times[2] - $times[0]) / 1e9);
    }

    public function testTheLastSnapshotReportsThatTheServersStop(): void
    {
        $snapshots = iterator_to_array(
            (new Snapshots(new FixedOverview([FixedOverview::process(stopping: true)])))->follow(null),
        );

        self::assertCount(1, $snapshots);
        self::assertStringContainsString('"ready":false', $snapshots[0]->data);
        self::assertSame(1000, $snapshots[0]->retry, 'clients reconnect after a second');
    }
}
