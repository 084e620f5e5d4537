<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Cli\Internal\Run\JobControl;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;

final class JobControlTest extends TestCase
{
    public function testAJobThatDoesNotRunIsNotMarkedAsEnded(): void
    {
        $control = new JobControl(new CommandPool(1), new InputWait(), new RunStatistics(), 1);
        $job = new InputJob(1, JobValues::of(['a']), Command::of('true'));

        $control->end($job);

        self::assertFalse($control->forgetEnded($job));
    }

    public function testAJobThatFailedBeforeItsCancellationIsCompleteWithoutARetryOnly(): void
    {
        self::assertTrue(JobControl::isComplete(Outcome::result(0), 1));
        self::assertTrue(JobControl::isComplete(Outcome::result(1), 0));
        self::assertFalse(JobControl::isComplete(Outcome::result(1), 1));
        self::assertFalse(JobControl::isComplete(Outcome::result(null, error: 'cancelled'), 0));
    }
}
