<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerStartException;

use function Amp\delay;

/** Tests workers, and processes that start workers, that are killed before any task has begun. */
trait StartDeaths
{
    #[TestWith([1, 'the launcher'])]
    #[TestWith([4, 'the launcher'])]
    #[TestWith([1, 'what the launcher has started'])]
    #[TestWith([4, 'what the launcher has started'])]
    public function testDeathsBeforeAnyWorkerIsReadyFailNothing(int $workers, string $victims): void
    {
        [$begun, $go] = [$this->path('begun'), $this->path('go')];
        $pool = $this->pool($workers, initialize: static function () use ($begun, $go): void {
            file_put_contents($begun, getmypid() . "\n", \FILE_APPEND);
            while (!is_file($go)) {
                clearstatcache();
                usleep(1000);
            }
        });
        $futures = $this->submitNumbered($pool, 200);
        Eventually::holds(static fn(): bool => \count(Text::lines($begun)) === $workers, 'the initialisers have begun');
        $initialised = array_map(intval(...), Text::lines($begun));
        self::kill($victims);
        // Forks outlive their host for a moment, in which they could begin a task.
        $alive = static fn(): array => array_filter($initialised, Processes::isAlive(...));
        Eventually::holds(static fn(): bool => $alive() === [], 'those that were started before are gone');
        touch($go);

        $this->assertEachRanOnce($futures);
    }

    #[TestWith(['the launcher'])]
    #[TestWith(['what the launcher has started'])]
    public function testDeathsRightAfterTheFirstTasksWereSubmittedFailNothing(string $victims): void
    {
        foreach ([0.0, 0.005, 0.02] as $seconds) {
            $pool = $this->pool(2, initialize: static fn() => usleep(200_000)); // no task begins before the kill
            $starts = $this->path("starts-{$seconds}");
            $futures = $this->submitNumbered($pool, 50, $starts);
            delay($seconds);
            self::kill($victims);

            $this->assertEachRanOnce($futures, $starts);
        }
    }

    #[TestWith(['the launcher'])]
    #[TestWith(['what the launcher has started'])]
    public function testDeathsOfReadyWorkersThatHaveNotBegunFailNothing(string $victims): void
    {
        $pool = $this->pool(4);
        $files = array_map(fn(int $i): string => $this->path("warm{$i}"), range(1, 4));
        self::outcomes(array_map(
            static fn(string $file): Future => $pool->submit(new Call('sleep', $file, 0.3)),
            $files,
        ));
        for ($round = 0; $round < 4; ++$round) {
            self::stopWorkers();
            $starts = $this->path("starts-{$round}");
            $futures = $this->submitNumbered($pool, 20, $starts);
            self::kill($victims);

            $this->assertEachRanOnce($futures, $starts);
        }
    }

    public function testAWorkerThatIsKilledBeforeItIsReadyIsReplacedByAnotherOne(): void
    {
        $first = $this->path('first');
        $pool = $this->pool(1, initialize: static fn() => @mkdir($first) && ProcessEnding::Kill->happens());

        $this->assertEachRanOnce($this->submitNumbered($pool, 10));
    }

    public function testAfterFiveDeathsInARowTheTasksFailAndTheNextOneIsTriedOnce(): void
    {
        $file = $this->path('initialised');
        $pool = $this->pool(1, initialize: static function () use ($file): void {
            file_put_contents($file, "x\n", \FILE_APPEND);
            ProcessEnding::Kill->happens();
        });
        foreach ([5, 6] as $starts) {
            $outcome = self::outcome($pool->submit(new Call('square', 1)));

            self::assertInstanceOf(WorkerStartException::class, $outcome);
            self::assertStringContainsString('signal 9', $outcome->getMessage());
            self::assertCount($starts, Text::lines($file));
        }
    }

    public function testInitialisersThatFailOneAfterTheOtherFailTheTasksThatWait(): void
    {
        $file = $this->path('initialised');
        $pool = $this->pool(2, initialize: static function () use ($file): never {
            $handle = fopen($file, 'a');
            if ($handle === false || !flock($handle, \LOCK_EX)) { // otherwise two workers could find the same size
                throw new \LogicException("Could not lock {$file}");
            }
            fwrite($handle, 'x');
            $own = fstat($handle)['size'] ?? 0;
            flock($handle, \LOCK_UN);
            do { // until the next worker has begun, so that always one may become ready
                usleep(1000);
                clearstatcache();
            } while (filesize($file) === $own);
            throw new \RuntimeException('The database is down');
        });
        $futures = [$pool->submit(new Call('square', 1)), $pool->submit(new Call('square', 2))];
        foreach (self::outcomes($futures) as $outcome) {
            self::assertInstanceOf(WorkerStartException::class, $outcome);
            self::assertStringContainsString('The database is down', $outcome->getMessage());
        }
    }

    public function testDeathsBetweenTasksThatBeginAreNotCounted(): void
    {
        [$gate, $log] = [$this->path('gate'), $this->path('log')];
        $pool = $this->pool(1, initialize: static function () use ($gate, $log): void {
            file_put_contents($log, getmypid() . "\n", \FILE_APPEND);
            while (!file_exists($gate)) {
                usleep(1000);
                clearstatcache();
            }
        });
        for ($round = 0; $round < 5; ++$round) {
            @unlink($gate);
            $starts = \count(Text::lines($log));
            $future = $pool->submit(new Call('square', $round));
            Eventually::holds(static fn(): bool => \count(Text::lines($log)) > $starts, 'a worker is starting');
            self::kill('the launcher');
            $started = (int) (Text::lines($log)[$starts] ?? 0);
            // The worker outlives its launcher for a moment, in which it could begin the task.
            Eventually::holds(static fn(): bool => !Processes::isAlive($started), 'the worker is gone');
            touch($gate);
            self::assertSame($round * $round, self::outcome($future));
            self::kill('the launcher');
            Eventually::holds(static fn(): bool => $pool->statistics()['workers'] === 0, 'the death is noticed');
        }
    }

    /** @return list<Future<mixed>> */
    private function submitNumbered(WorkerPool $pool, int $count, ?string $starts = null): array
    {
        $starts ??= $this->path('starts');

        return array_map(
            static fn(int $i): Future => $pool->submit(new RecordedTask($i, $starts, 0)),
            range(0, $count - 1),
        );
    }

    /** @param list<Future<mixed>> $futures futures of {@see submitNumbered()} */
    private function assertEachRanOnce(array $futures, ?string $starts = null): void
    {
        self::assertSame(range(0, \count($futures) - 1), self::numbersOf(self::outcomes($futures)));
        self::assertSame(array_fill(0, \count($futures), 1), RecordedTask::starts($starts ?? $this->path('starts')));
    }

    /** Stops all workers. Repeats this while new ones appear: a host may fork until it is stopped itself. */
    private static function stopWorkers(): void
    {
        $stopped = [];
        do {
            $pids = array_keys(self::descendantsWith('Worker/Internal/Process/main.php'));
            $running = array_diff($pids, $stopped);
            foreach ($running as $pid) {
                posix_kill($pid, \SIGSTOP);
                $isStopped = static fn(): bool => Processes::state($pid) === 'T' || !Processes::isAlive($pid);
                Eventually::holds($isStopped, 'it is stopped, or has ended', 20);
            }
            $stopped = [...$stopped, ...$running];
        } while ($running !== []);
    }

    private static function kill(string $victims): void
    {
        foreach (Processes::launchers() as $launcher) {
            $pids = $victims === 'the launcher' ? [$launcher] : array_keys(Processes::childrenOf($launcher));
            foreach ($pids as $pid) {
                posix_kill($pid, \SIGKILL);
            }
        }
    }
}
