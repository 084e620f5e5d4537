<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Output\JobReport;
use Spindle\Tests\Unit\Cli\Run\Outcome;

final class JobReportTest extends TestCase
{
    public function testFiveSlowJobsAndTwentyFailedJobsAreListed(): void
    {
        $report = new JobReport();
        self::assertSame([], $report->lines());
        for ($i = 1; $i <= 22; ++$i) {
            $report->add(Outcome::job($i, "exit {$i}"), Outcome::result($i));
        }
        $lines = $report->lines();

        self::assertSame(['spindle: slowest jobs:', '  2.5 s  job 1: exit 1'], \array_slice($lines, 0, 2));
        self::assertSame('spindle: 22 jobs failed; to run them again:', $lines[6]);
        self::assertSame('  job 1, exit code 1: exit 1', $lines[7]);
        self::assertSame('  and 2 more jobs', \array_slice($lines, -1)[0]);
        self::assertSame(
            ['job 22, exit code 22', 'job 21, exit code 21', 'job 20, exit code 20'],
            $report->recentFailures(),
        );
    }

    public function testAFailedJobIsListedWithItsBlock(): void
    {
        $report = new JobReport();
        $job = Outcome::job(3, 'exit 1');
        $report->add($job->withCommand($job->command, block: "bytes 6 to 10 of 'a\nb'"), Outcome::result(1));

        self::assertSame(
            ["  job 3 (bytes 6 to 10 of 'a\\nb'), exit code 1: exit 1"],
            \array_slice($report->lines(), -1),
        );
    }

    public function testTheEndSaysOneJobInTheSingular(): void
    {
        $report = new JobReport();
        $report->add(Outcome::job(3, "a\nb"), Outcome::result(null, 9));

        self::assertSame(
            ['spindle: 1 job failed; to run it again:', '  job 3, signal 9: a\nb'],
            \array_slice($report->lines(), -2),
        );
    }
}
