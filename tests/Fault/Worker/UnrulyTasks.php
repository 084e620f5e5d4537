<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerCrashedException;

/** Tests tasks that misuse their process. */
trait UnrulyTasks
{
    #[TestWith(['forkAndReturn'])]
    #[TestWith(['forkAndThrow'])]
    #[TestWith(['forkAndExit'])]
    public function testAForkByATaskSendsNothingToThePool(string $deed): void
    {
        $this->needsAProcessForEachWorker('a fork is of that one only, and not a thread of any host');
        $pool = $this->pool(1);
        $worker = self::outcome($pool->submit(new Call('pid')));
        for ($i = 0; $i < 5; ++$i) {
            $outcomes = self::outcomes(
                [
                    $pool->submit(new Call('square', $i)),
                    $pool->submit(new Call($deed)),
                    $pool->submit(new Call('square', $i)),
                ],
            );

            self::assertSame([$i * $i, 'the worker', $i * $i], $outcomes);
        }
        self::assertSame($worker, self::outcome($pool->submit(new Call('pid'))));
        self::assertUsable($pool);
    }

    public function testAForkThatReturnsLateStartsNoTaskAgain(): void
    {
        $this->needsAProcessForEachWorker('a fork is of that one only, and not a thread of any host');
        $path = $this->path('fork');
        $task = static fn(int $number): ?int => match ($number) {
            1500 => TaskFunctions::forkThatReturnsLate($path),
            1503 => TaskFunctions::dieAfterFork($path),
            default => $number,
        };
        $failed = [];
        foreach ($this->pool(1)->mapOutcomes(range(0, 1999), $task) as $number => $outcome) {
            $failed[$number] = !$outcome->succeeded();
        }

        self::assertCount(2000, $failed);
        self::assertTrue($failed[1503]);
        self::assertSame('started ', file_get_contents("{$path}.started"));
    }

    public function testAForkThatReturnsLateDoesNotEndTheTimeLimitOfTheNextTask(): void
    {
        $this->needsAProcessForEachWorker('a fork is of that one only, and not a thread of any host');
        $pool = $this->pool(1, timeout: 1.0);
        $path = $this->path('fork');

        self::assertNull(self::outcome($pool->submit(new Call('forkThatReturnsLate', $path))));
        $outcome = self::outcome($pool->submit(new Call('waitForFork', $path)));

        self::assertInstanceOf(TaskTimeoutException::class, $outcome);
    }

    public function testOnlyTheTaskThatEndedItsWorkerIsSaidToHaveDoneSo(): void
    {
        $this->needsAProcessForEachWorker('a thread ends with its host');
        $task = static fn(int $number): int => $number % 100 === 99 ? ProcessEnding::Kill->happens() : $number;
        $wrong = [];
        foreach ($this->pool(1)->mapOutcomes(range(0, 999), $task) as $number => $outcome) {
            $expected = match (true) {
                $number % 100 === 99 => "The task for {$number} ended its worker by signal 9",
                $outcome->succeeded() => '',
                default => "The task for {$number} has no result: a later task ended its worker by signal 9",
            };
            if (!str_contains($outcome->describe(), $expected)) {
                $wrong[] = $outcome->describe();
            }
        }

        self::assertSame([], $wrong);
    }

    public function testAForkByAGeneratorSendsNothingToThePool(): void
    {
        $this->needsAProcessForEachWorker('a fork is of that one only, and not a thread of any host');
        $pool = $this->pool(1);
        $items = self::outcome($pool->submit(new Call('forkAndYield')));

        self::assertInstanceOf(\Generator::class, $items);
        self::assertSame(['before', 'the worker'], iterator_to_array($items, false));
        self::assertUsable($pool);
    }

    public function testALivingForkDelaysNeitherItsWorkerNorThePool(): void
    {
        $this->needsAProcessForEachWorker('a fork is of that one only, and not a thread of any host');
        $pool = $this->pool(1);
        $fork = self::outcome($pool->submit(new Call('forkThatLivesOn')));
        self::assertIsInt($fork);
        self::assertUsable($pool);
        $at = hrtime(true);
        $outcome = self::outcome($pool->submit(new Call('end', ProcessEnding::Kill)));

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertLessThan(1.0, (hrtime(true) - $at) / 1e9, 'seconds');
        self::assertUsable($pool);
        $at = hrtime(true);
        $pool->close();

        self::assertLessThan(4.0, (hrtime(true) - $at) / 1e9, 'seconds');
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($fork), 'it goes with the pool');
    }

    public function testSocketsAndSubprocessesThatATaskLeavesOpenGoWithThePool(): void
    {
        $pool = $this->pool(2);
        $pids = self::outcome($pool->submit(new Call('leaveThings', $this->path())));

        self::assertIsArray($pids);
        self::assertCount(3, $pids);
        self::assertUsable($pool);
        self::assertNotSame([], self::descendantsWith('sleep 1000'));
        $pool->close();
        Eventually::holds(static fn(): bool => self::descendantsWith('sleep 1000') === [], 'nothing of it is left');
    }

    /** @return iterable<string, array{string}> bytes that are no frame, or the beginning of one that never ends */
    public static function strayBytes(): iterable
    {
        foreach ([1, 4, 5, 9, 13] as $length) {
            yield "{$length} letters" => [str_repeat('a', $length)];
            yield "{$length} zeros" => [str_repeat("\0", $length)];
        }
        yield 'lines' => [str_repeat("a line of a log\n", 1000)];
        yield 'the beginning of a frame without the magic number' => [pack('VCV', 60, WorkerProtocol::RESULTS, 1)];
        yield 'of a long one' => [pack('VCV', 50_000_000, WorkerProtocol::RESULTS, 1)];
    }

    /** Shows that the pool ends a worker whose task writes to the socket of the pool. */
    #[DataProvider('strayBytes')]
    public function testATaskThatWritesToTheSocketOfItsWorkerEndsIt(string $bytes): void
    {
        $this->needsAProcessForEachWorker('the sockets are those of all of them');
        $pool = $this->pool(1);
        self::assertUsable($pool);
        $outcome = self::outcome($pool->submit(new Call('writeToSockets', $bytes)));

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertStringContainsString('it wrote bytes that are not a frame', $outcome->getMessage());
        self::assertUsable($pool);
    }

    public function testATaskThatClosesTheStandardStreamsHarmsNoOther(): void
    {
        $this->needsAProcessForEachWorker(
            'its standard streams are those of all of them, which have no constants for them',
        );
        $printed = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$printed): void {
            $printed .= $bytes;
        });
        $worker = self::outcome($pool->submit(new Call('pid')));

        self::assertSame('closed', self::outcome($pool->submit(new Call('closeStandardStreams'))));
        self::assertSame('echoed', self::outcome($pool->submit(new Call('echo', 100))));
        self::assertSame(str_repeat('o', 100), $printed);
        self::assertSame($worker, self::outcome($pool->submit(new Call('pid'))));
        self::assertUsable($pool);
    }

    public function testATaskThatChangesTheDirectoryHarmsNoOther(): void
    {
        $here = getcwd();
        $pool = $this->pool(1);

        self::assertSame(
            realpath($this->path()),
            self::outcome($pool->submit(new Call('changeDirectory', $this->path()))),
        );
        self::assertSame(
            LoadedLate::class . ' 42',
            self::outcome($pool->submit(new Call('loadAnother'))),
            'classes are found',
        );
        self::assertSame($here, getcwd());
        self::assertUsable($pool);
    }

    public function testTheLastEightKibibytesOfStandardErrorAreKept(): void
    {
        $this->needsAProcessForEachWorker('they have one standard error');
        $outcome = self::outcome($this->pool(1)->submit(new Call('complainAndDie', 1 << 20)));

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertSame(str_repeat('e', 8192 - 7) . 'the end', $outcome->stderr);
    }
}
