<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\Host;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\SharedMemory;
use Spindle\Tests\Text;

/** Tests a process with a pool that is killed, or forked. */
trait ParentFaults
{
    public function testAllProcessesOfAPoolEndWithinASecondOfASigkill(): void
    {
        $this->killAtRandomMoments(0, 400_000);
    }

    public function testAllProcessesOfAStartingPoolEndWithinASecondOfASigkill(): void
    {
        $this->killAtRandomMoments(60_000, 110_000);
    }

    public function testAForkCannotUseThePoolAndDoesNotAffectIt(): void
    {
        $answer = Host::call(HostPrograms::class . '::fork', [$this->context()->name, $this->path('said')]);
        self::assertIsArray($answer);
        [$said, $exited, $left] = $answer;

        self::assertSame(
            'This pool belongs to the parent process of this fork. Create another pool after the fork',
            $said,
        );
        self::assertTrue($exited);
        self::assertSame(['slept', 'done', 'done', 'done', 'done'], $left);
    }

    public function testAForkThatWaitsForAnOutcomeFails(): void
    {
        $message = 'This pool belongs to the parent process of this fork. Create another pool after the fork';

        self::assertSame(
            [[$message, $message, $message], 7, ['running', true, ['before', 'streaming']]],
            Host::call(HostPrograms::class . '::forkThatWaits', [$this->context()->name, $this->path('gate')]),
        );
    }

    public function testAForkDuringALoopDoesNotAffectTheLoopOfItsParent(): void
    {
        $answer = Host::call(HostPrograms::class . '::forkInALoop', [$this->context()->name, $this->path('gate')]);
        self::assertIsArray($answer);

        self::assertSame([
            'exited' => true,
            'loop' => array_map(TaskFunctions::square(...), range(0, 4999)),
            'task' => 'running',
            'items' => ['before', 'streaming', 'after'],
        ], $answer);
    }

    public function testAForkThatRunsTheLoopReadsNothingThatIsSentToThePool(): void
    {
        self::assertSame(
            ['done', 'done'],
            Host::call(HostPrograms::class . '::forkThatLoops', [$this->context()->name, $this->path('begun')]),
        );
    }

    /**
     * Kills processes and checks their shared memory. If both worker and pool die at its creation, the next pool
     * removes it.
     */
    private function killAtRandomMoments(int $first, int $last): void
    {
        mt_srand(Scale::seed());
        $segments = SharedMemory::segments();
        foreach (Scale::rounds(atLeast: Scale::isFull() ? 200 : 4) as $round) {
            $this->killAtARandomMoment($round, mt_rand($first, $last));
        }
        self::assertUsable($this->pool(1));
        self::assertSame($segments, SharedMemory::segments());
    }

    private function killAtARandomMoment(int $number, int $microseconds): void
    {
        mkdir($this->path("temporary{$number}"));
        $mark = bin2hex(random_bytes(8));
        $environment = ['SPINDLE_TEST_HOST' => $mark, 'TMPDIR' => $this->path("temporary{$number}")];
        $host = Host::start(HostPrograms::class . '::work', [$this->context()->name], environment: $environment);
        usleep($microseconds); // a different moment in each round
        $host->signal(\SIGKILL);
        $left = fn(): array => [
            ...Processes::withVariable('SPINDLE_TEST_HOST', $mark),
            ...array_filter(
                Text::names($this->path("temporary{$number}")),
                static fn(string $name): bool => str_starts_with($name, 'spindle'),
            ),
        ];
        $rest = $left();
        for ($end = hrtime(true) + 1_000_000_000; $rest !== [] && hrtime(true) < $end; $rest = $left()) {
            usleep(10_000);
        }
        self::assertSame([], $rest, "a second after it was killed {$microseconds} microseconds from its start");
        $host->wait();
    }
}
