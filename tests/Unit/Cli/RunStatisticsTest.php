<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\LineProgress;
use Spindle\Cli\Internal\RunStatistics;

final class RunStatisticsTest extends TestCase
{
    private int $now = 5_000_000_000;

    public function testARateAndARemainderFollowFromWhatIsDone(): void
    {
        $figures = $this->figures(succeeded: 6, failed: 2, started: 10, total: 40);
        $this->now += 4_000_000_000;

        self::assertSame(
            [8, 4.0, 2.0, 16.0, 2],
            [$figures->done(), $figures->elapsed(), $figures->rate(), $figures->remaining(), $figures->running()],
        );
    }

    public function testNobodyKnowsTheRemainderBeforeSomethingIsDoneOrWithoutATotal(): void
    {
        self::assertNull($this->figures(0, 0, 2, 40)->remaining());
        $figures = $this->figures(1, 0, 2, null);
        $this->now += 1;

        self::assertNull($figures->remaining());
    }

    public function testWhatWaitsForASlotDoesNotRun(): void
    {
        $figures = $this->figures(0, 0, 100, null);
        $figures->slots = 8;

        self::assertSame(8, $figures->running());
    }

    public function testAJobThatIsSparedIsNotPartOfTheTotal(): void
    {
        $figures = $this->figures(0, 0, 0, 10);
        $figures->spared();
        self::assertSame(9, $figures->total);

        $figures = $this->figures(0, 0, 0, null);
        $figures->spared();
        self::assertNull($figures->total);
    }

    public function testLinesForPeopleAndForProgramsSayTheSame(): void
    {
        $figures = $this->figures(6, 2, 10, 40);
        $this->now += 4_000_000_000;

        self::assertSame("8/40 done, 2 failed, 2.0/s, ETA 0:16\n", LineProgress::plain($figures));
        self::assertSame(
            '{"done":8,"total":40,"failed":2,"running":2,"rate":2,"eta":16,"elapsed":4}' . "\n",
            LineProgress::json($figures),
        );
    }

    public function testWhatIsNotKnownIsLeftOutForPeopleAndNullForPrograms(): void
    {
        $figures = $this->figures(1, 0, 1, null);
        $this->now += 1_000_000_000;

        self::assertSame("1 done, 0 failed, 1.0/s\n", LineProgress::plain($figures));
        self::assertSame(
            '{"done":1,"total":null,"failed":0,"running":0,"rate":1,"eta":null,"elapsed":1}' . "\n",
            LineProgress::json($figures),
        );
    }

    public function testALineIsWrittenOnlyWhenThereIsSomethingNewAndAtTheEnd(): void
    {
        $lines = new \ArrayObject();
        $progress = new LineProgress($lines->append(...), false);
        $figures = $this->figures(1, 0, 2, null);

        $progress->show($figures);
        $progress->show($figures);
        self::assertCount(1, $lines);

        ++$figures->succeeded;
        $progress->show($figures);
        self::assertCount(2, $lines);

        $progress->finish($figures);
        self::assertCount(3, $lines);
    }

    private function figures(int $succeeded, int $failed, int $started, ?int $total): RunStatistics
    {
        $figures = new RunStatistics(fn(): int => $this->now);
        [
            $figures->succeeded,
            $figures->failed,
            $figures->started,
            $figures->total,
        ] = [$succeeded, $failed, $started, $total];

        return $figures;
    }
}
