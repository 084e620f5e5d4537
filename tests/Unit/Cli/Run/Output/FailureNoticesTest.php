<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Output\FailureNotices;
use Spindle\Tests\Unit\Cli\Run\Outcome;

final class FailureNoticesTest extends TestCase
{
    public function testTenJobsPerSecondAreNamedAndTheRestIsCounted(): void
    {
        $console = new RecordedLines();
        $notices = new FailureNotices($console);
        $job = Outcome::job(7, 'grep x');
        for ($i = 0; $i < 11; ++$i) {
            $notices->add($job, Outcome::result(2), 5.0 + $i / 100);
        }
        self::assertCount(10, $console);
        self::assertSame('spindle: job 7 failed: exit code 2 after 2.5 s: grep x', $console[9]);

        $notices->summarise(5.9);
        self::assertCount(10, $console);
        $notices->add($job, Outcome::result(2), 6.1);
        self::assertSame('spindle: 1 more job failed', $console[10]);
        self::assertCount(12, $console);
        $notices->summarise(\INF);
        self::assertCount(12, $console);
    }
}
