<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Admin\Ledger;

final class LedgerTest extends TestCase
{
    public function testWhatAnEndedProcessHasCountedStillCounts(): void
    {
        $ledger = new Ledger();
        $ledger->sum([FixedSource::process(pid: 1, answered: [200 => 5], pools: ['db' => ['opened_total' => 2]]), FixedSource::process(pid: 2, answered: [200 => 1])]);
        $totals = $ledger->sum([FixedSource::process(pid: 2, answered: [200 => 3], pools: ['db' => ['opened_total' => 1]])]);

        self::assertSame([200 => 8], $totals->answered);
        self::assertSame(['db' => ['opened_total' => 3]], $totals->pools);
    }

    public function testWhatAnEndedProcessHasDoesNotCount(): void
    {
        $ledger = new Ledger();
        $ledger->sum([FixedSource::process(pid: 1, count: 5, pools: ['db' => ['in_use' => 2]])]);
        $totals = $ledger->sum([FixedSource::process(pid: 2, pools: ['db' => ['in_use' => 1]])]);

        self::assertSame([0, 1, ['db' => ['in_use' => 1]]], [$totals->inFlight, $totals->connections, $totals->pools]);
    }

    public function testTheOneThatStaysMayBeTheElder(): void
    {
        $ledger = new Ledger();
        $ledger->sum([FixedSource::process(pid: 1, count: 5, answered: [200 => 1]), FixedSource::process(pid: 2, count: 5, answered: [200 => 2])]);
        $totals = $ledger->sum([FixedSource::process(pid: 1, count: 4, answered: [200 => 4])]);

        self::assertSame([4, [200 => 6]], [$totals->inFlight, $totals->answered]);
    }

    public function testAProcessWithAnEarlierOnesNumberIsAnother(): void
    {
        $ledger = new Ledger();
        $ledger->sum([FixedSource::process(pid: 1, started: 1.0, answered: [200 => 5])]);

        self::assertSame([200 => 6], $ledger->sum([FixedSource::process(pid: 1, started: 2.0, answered: [200 => 1])])->answered);
    }

    public function testAProcessThatWasSilentForAWhileCountsOnce(): void
    {
        $ledger = new Ledger();
        $ledger->sum([FixedSource::process(pid: 1, answered: [200 => 5])]);
        self::assertSame([200 => 5], $ledger->sum([])->answered);

        self::assertSame([200 => 7], $ledger->sum([FixedSource::process(pid: 1, answered: [200 => 7])])->answered);
    }

    public function testManyProcessesThatHaveEndedTakeNoMoreMemory(): void
    {
        $ledger = new Ledger();
        $sum = static function (int $from, int $to) use ($ledger): array {
            for ($pid = $from; $pid < $to; ++$pid) {
                $ledger->sum([FixedSource::process(pid: $pid, answered: [200 => 1])]);
            }

            return $ledger->sum([])->answered;
        };
        self::assertSame([200 => 500], $sum(0, 500));
        $memory = memory_get_usage();

        self::assertSame([200 => 3000], $sum(500, 3000));
        self::assertLessThan(100_000, memory_get_usage() - $memory);
    }
}
