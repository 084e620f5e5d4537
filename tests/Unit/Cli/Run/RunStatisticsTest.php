<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Output\LineProgress;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Tests\Unit\Cli\Run\Output\RecordedLines;
use Spindle\Tests\VirtualTime;

final class RunStatisticsTest extends TestCase
{
    use VirtualTime;

    public function testARateAndARemainderFollowFromWhatIsDone(): void
    {
        $statistics = $this->statistics(succeeded: 6, failed: 2, started: 10, total: 40);
        $this->freeze(4.0);

        self::assertSame(
            [8, 4.0, 2.0, 16.0, 2],
            [
                $statistics->doneCount(),
                $statistics->elapsed(),
                $statistics->rate(),
                $statistics->remainingSeconds(),
                $statistics->runningCount(),
            ],
        );
    }

    public function testTheRemainingTimeIsUnknownBeforeTheFirstResultOrWithoutATotal(): void
    {
        self::assertNull($this->statistics(0, 0, 2, 40)->remainingSeconds());
        $statistics = $this->statistics(1, 0, 2, null);
        $this->freeze(1e-9);

        self::assertNull($statistics->remainingSeconds());
    }

    public function testAJobThatWaitsForASlotDoesNotCountAsRunning(): void
    {
        $statistics = $this->statistics(0, 0, 100, null);
        $statistics->concurrency = 8;

        self::assertSame(8, $statistics->runningCount());
    }

    public function testASkippedJobIsNotPartOfTheTotal(): void
    {
        $statistics = $this->statistics(0, 0, 0, 10);
        $statistics->skipJob();
        self::assertSame(9, $statistics->total);

        $statistics = $this->statistics(0, 0, 0, null);
        $statistics->skipJob();
        self::assertNull($statistics->total);
    }

    public function testTextAndJsonReportTheSameValues(): void
    {
        $statistics = $this->statistics(6, 2, 10, 40);
        $this->freeze(4.0);

        self::assertSame('8/40 done, 2 failed, 2.0/s, ETA 0:16', LineProgress::plain($statistics));
        self::assertSame(
            '{"done":8,"total":40,"failed":2,"running":2,"rate":2,"eta":16,"elapsed":4}',
            LineProgress::json($statistics),
        );
    }

    public function testUnknownValuesAreMissingInTextAndNullInJson(): void
    {
        $statistics = $this->statistics(1, 0, 1, null);
        $this->freeze(1.0);

        self::assertSame('1 done, 0 failed, 1.0/s', LineProgress::plain($statistics));
        self::assertSame(
            '{"done":1,"total":null,"failed":0,"running":0,"rate":1,"eta":null,"elapsed":1}',
            LineProgress::json($statistics),
        );
    }

    public function testALineIsWrittenOnlyWhenThereIsSomethingNewAndAtTheEnd(): void
    {
        $console = new RecordedLines();
        $progress = new LineProgress($console, false);
        $statistics = $this->statistics(1, 0, 2, null);

        $progress->show($statistics);
        $progress->show($statistics);
        self::assertCount(1, $console);

        ++$statistics->succeeded;
        $progress->show($statistics);
        self::assertCount(2, $console);

        $progress->finish($statistics);
        self::assertCount(3, $console);
    }

    public function testALogOfALongRunHasALineAMinuteAndOneAtTheEnd(): void
    {
        self::assertSame([60, 9, 1], $this->linesPerMinute(isForPrograms: false));
        self::assertSame([60, 60, 60], $this->linesPerMinute(isForPrograms: true));
    }

    /** @return list<int> numbers of lines in the first, the seventh and the 120th minute */
    private function linesPerMinute(bool $isForPrograms): array
    {
        $console = new RecordedLines();
        $progress = new LineProgress($console, $isForPrograms);
        $statistics = $this->statistics(0, 0, 10_000, 10_000);
        $lines = [];
        for ($minute = 1; $minute <= 120; ++$minute) {
            $before = \count($console);
            for ($second = 0; $second < 60; ++$second) {
                $this->freeze(1.0);
                ++$statistics->succeeded;
                $progress->show($statistics);
            }
            $lines[$minute] = \count($console) - $before;
        }
        $before = \count($console);
        $progress->finish($statistics);
        self::assertSame(1, \count($console) - $before);

        return [$lines[1], $lines[7], $lines[120]];
    }

    private function statistics(int $succeeded, int $failed, int $started, ?int $total): RunStatistics
    {
        $statistics = new RunStatistics();
        [
            $statistics->succeeded,
            $statistics->failed,
            $statistics->submitted,
            $statistics->total,
        ] = [$succeeded, $failed, $started, $total];

        return $statistics;
    }
}
