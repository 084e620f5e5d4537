<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Host;
use Spindle\Tests\Remote\Simulation\Program;
use Spindle\Tests\Scale;

/**
 * A hundred agents and 20,000 jobs, in one process and in virtual time, through crashes of workers and agents, pauses,
 * partitions and lost answers. A full run has a thousand agents and two million jobs. All chance comes from one seed,
 * which repeats a run.
 */
final class SimulationTest extends TestCase
{
    use EndsInTime;

    protected function deadline(): int
    {
        return 120 + intdiv(self::jobs(), 1000);
    }

    public function testEachJobHasOneOutcomeDespiteAllDeaths(): void
    {
        $jobs = self::jobs();
        $arguments = [Scale::seed(), Scale::of(1000), $jobs];
        /**
         * @var array{
         *     results: int,
         *     failures: int,
         *     cancelled: int,
         *     faults: list<string>,
         *     runs: int,
         *     seconds: float,
         *     figures: array<string, int>,
         * } $seen
         */
        $seen = Host::call(Program::class . '::run', $arguments, timeout: $this->deadline());
        $statistics = $seen['figures'];

        self::assertSame([], $seen['faults']);
        self::assertSame($jobs, $seen['results']);
        $ended = $statistics['done_total'] + $statistics['died_total'] + $statistics['cancelled_total'];
        self::assertSame($statistics['submitted_total'], $ended);
        self::assertSame($seen['failures'], $statistics['died_total']);
        self::assertSame($seen['cancelled'], $statistics['cancelled_total']);
        self::assertGreaterThan(0, $seen['cancelled']);
        self::assertGreaterThan(0, $statistics['lost_total']);
        self::assertGreaterThan(0, $statistics['stale_total']);
        foreach (['waiting', 'running', 'delayed', 'blocked'] as $rest) {
            self::assertSame(0, $statistics[$rest], $rest);
        }
    }

    public function testASeedRepeatsARun(): void
    {
        $runs = [];
        for ($i = 0; $i < 2; ++$i) {
            $runs[] = Host::call(Program::class . '::run', [7, 20, 1000]);
        }

        self::assertSame($runs[0], $runs[1]);
    }

    private static function jobs(): int
    {
        return Scale::isFull() ? 2_000_000 : 20_000;
    }
}
