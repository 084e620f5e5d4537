<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Pipe;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Cli\Internal\Run\Pipe\BlockFiles;
use Spindle\Cli\Internal\Run\Pipe\Blocks;
use Spindle\Cli\Internal\Run\Pipe\BlockSplitter;
use Spindle\Cli\Internal\Run\Pipe\RoundRobinInputs;
use Spindle\Cli\Internal\Run\Pipe\SeparatorEnds;
use Spindle\Command\Command;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\OwnDirectory;

final class RoundRobinInputsTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    public function testTheInputOfAJobEndsWhenTheRunStopsBeforeAllJobsExist(): void
    {
        [$wait, $jobs, $input] = $this->firstOfTwoJobs();

        $wait->stop();

        self::assertSame("1\n", implode('', iterator_to_array($input, false)));
        self::assertTrue($jobs->valid());
    }

    public function testTheInputOfAJobEndsWhenNoMoreJobsAreRead(): void
    {
        [, $jobs, $input] = $this->firstOfTwoJobs();

        unset($jobs);

        self::assertSame("1\n", implode('', iterator_to_array($input, false)));
    }

    public function testBlocksAreDistributedBeforeTheLastJobIsCreated(): void
    {
        [, $jobs, $input] = $this->firstOfTwoJobs();

        $jobs->next();

        self::assertSame("1\n3\n", implode('', iterator_to_array($input, false)));
    }

    /**
     * @return array{InputWait, \Generator<int, JobValues>, \Iterator<mixed, string>} the wait, the jobs, and the
     *     input of the first job
     */
    private function firstOfTwoJobs(): array
    {
        $path = $this->file('lines', "1\n2\n3\n");
        $ends = new SeparatorEnds("\n", '');
        $splitter = new BlockSplitter($ends, 2);
        $inputs = new RoundRobinInputs(
            new Blocks(InputSource::file($path, "\n"), $splitter, $ends, null, false, false),
            new BlockFiles(),
        );
        $wait = new InputWait();
        $jobs = $inputs->jobs($wait, static fn(): int => 2);
        $first = $inputs->withInput(new InputJob($jobs->key(), $jobs->current(), Command::of('cat')));
        $input = $first->command->input;
        \assert($input instanceof \Iterator);

        return [$wait, $jobs, $input];
    }
}
