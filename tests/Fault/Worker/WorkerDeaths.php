<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPool;

use function Amp\delay;

/** Tests workers, and processes that start workers, that are killed from outside. */
trait WorkerDeaths
{
    public function testADeathIsReportedWithinASecondAndByItsOwnTaskOnly(): void
    {
        $this->needsAProcessForEachWorker('a signal ends the tasks of all of them');
        $pool = $this->pool(2);
        $killed = $pool->submit(new Call('sleep', $this->path('killed')));
        $other = $pool->submit(new Call('sleep', $this->path('other'), 0.3));
        $pid = self::pidIn($this->path('killed'));
        self::pidIn($this->path('other'));
        $at = hrtime(true);
        posix_kill($pid, \SIGKILL);
        $outcome = self::outcome($killed);

        self::assertLessThan(1.0, (hrtime(true) - $at) / 1e9, 'seconds');
        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertSame(9, $outcome->signal);
        self::assertSame('slept', self::outcome($other));
        self::assertUsable($pool);
    }

    public function testWorkersThatAreKilledAllAtOnceFailWhatTheyRanAndNothingElse(): void
    {
        $pool = $this->pool(4);
        $futures = $files = [];
        for ($i = 0; $i < 4; ++$i) {
            $futures[] = $pool->submit(new Call('sleep', $files[] = $this->path("begun{$i}")));
        }
        for ($i = 0; $i < 20; ++$i) {
            $futures[] = $pool->submit(new RecordedTask($i, $this->path('starts'), 0));
        }
        foreach (array_map(self::pidIn(...), $files) as $pid) {
            posix_kill($pid, \SIGKILL);
        }
        $outcomes = self::outcomes($futures);

        self::assertContainsOnlyInstancesOf(WorkerCrashedException::class, \array_slice($outcomes, 0, 4));
        self::assertSame(range(0, 19), self::numbersOf(\array_slice($outcomes, 4)));
        self::assertSame(array_fill(0, 20, 1), RecordedTask::starts($this->path('starts')));
        self::assertUsable($pool);
    }

    public function testIdleWorkersThatAreKilledFailNothing(): void
    {
        $pool = $this->pool(2);
        for ($round = 0; $round < 5; ++$round) {
            $files = [$this->path("{$round}a"), $this->path("{$round}b")];
            $futures = array_map(
                static fn(string $file): Future => $pool->submit(new Call('sleep', $file, 0.02)),
                $files,
            );
            $workers = array_map(self::pidIn(...), $files);
            self::assertSame(['slept', 'slept'], self::outcomes($futures));
            array_map(static fn(int $worker): bool => posix_kill($worker, \SIGKILL), $workers);
            self::assertSame(
                49,
                self::outcome($pool->submit(new Call('square', 7))),
                'asked before their death is known',
            );
        }
        self::assertUsable($pool);
    }

    public function testWorkersThatKillEachOtherAreReportedAsCrashed(): void
    {
        mkdir($this->path('killers'));
        $pool = $this->pool(2);
        $outcomes = self::outcomes([
            $pool->submit(new Call('killAnother', $this->path('killers'), 0)),
            $pool->submit(new Call('killAnother', $this->path('killers'), 1)),
            $pool->submit(new Call('square', 5)),
        ]);

        foreach ([0, 1] as $i) {
            self::assertInstanceOf(WorkerCrashedException::class, $outcomes[$i]);
            self::assertSame(9, $outcomes[$i]->signal);
        }
        self::assertSame(25, $outcomes[2]);
        self::assertUsable($pool);
    }

    public function testTheDeathOfTheLauncherFailsOnlyRunningTasks(): void
    {
        $pool = $this->pool(2);
        $running = [
            $pool->submit(new Call('sleep', $this->path('0'))),
            $pool->submit(new Call('sleep', $this->path('1'))),
        ];
        $waiting = [];
        for ($i = 0; $i < 20; ++$i) {
            $waiting[] = $pool->submit(new RecordedTask($i, $this->path('starts'), 0));
        }
        $workers = [self::pidIn($this->path('0')), self::pidIn($this->path('1'))];
        foreach (Processes::launchers() as $launcher) {
            posix_kill($launcher, \SIGKILL);
        }
        $at = hrtime(true);
        $outcomes = self::outcomes($running);

        self::assertLessThan(2.0, (hrtime(true) - $at) / 1e9, 'seconds');
        self::assertContainsOnlyInstancesOf(WorkerCrashedException::class, $outcomes);
        self::assertSame(range(0, 19), self::numbersOf(self::outcomes($waiting)));
        self::assertSame(array_fill(0, 20, 1), RecordedTask::starts($this->path('starts')));
        self::assertSame([], array_filter($workers, Processes::isAlive(...)), 'the workers went with it');
        self::assertUsable($pool);
    }

    public function testASuspendedLauncherDelaysNoExistingWorker(): void
    {
        $pool = $this->pool(2);
        self::assertUsable($pool);
        $launchers = Processes::launchers();
        array_map(static fn(int $launcher): bool => posix_kill($launcher, \SIGSTOP), $launchers);
        try {
            self::assertUsable($pool);
        } finally {
            array_map(static fn(int $launcher): bool => posix_kill($launcher, \SIGCONT), $launchers);
        }
        self::assertUsable($pool);
    }

    /** Shows that the pool waits for the exit status after the socket of a worker closed. */
    public function testAWorkerDeathIsReportedWhenASuspendedLauncherContinues(): void
    {
        $pool = $this->pool(1);
        $future = $pool->submit(new Call('sleep', $this->path('begun')));
        $worker = self::pidIn($this->path('begun'));
        $launchers = Processes::launchers();
        array_map(static fn(int $launcher): bool => posix_kill($launcher, \SIGSTOP), $launchers);
        posix_kill($worker, \SIGKILL);
        delay(0);
        array_map(static fn(int $launcher): bool => posix_kill($launcher, \SIGCONT), $launchers);
        $outcome = self::outcome($future);

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertSame(9, $outcome->signal);
        self::assertUsable($pool);
    }

    public function testAMillionTasksRunOnceEachAndHaveOneOutcomeEachWhileWorkersAreKilled(): void
    {
        $count = Scale::isFull() ? 1_000_000 : 20_000;
        $pool = $this->pool(2);
        [$done, $failed] = $this->runWhileWorkersAreKilled($pool, $count);
        $starts = RecordedTask::starts($this->path('starts'));

        self::assertSame($count, \count($done) + \count($failed), 'each has an outcome');
        self::assertSame([], array_intersect_key($done, $failed));
        self::assertSame([], array_filter($starts, static fn(int $times): bool => $times !== 1), 'run twice');
        self::assertSame([], array_diff_key($done, $starts), 'have a result and were not run');
        self::assertSame([], array_diff_key($starts, $done, $failed), 'were run and have no outcome');
        self::assertNotSame([], $failed, 'a kill has hit a task');
        self::assertUsable($pool);
    }

    public function testAMillionRetriedTasksHaveTheirResultsWhileWorkersAreKilled(): void
    {
        $count = Scale::isFull() ? 1_000_000 : 20_000;
        $pool = $this->pool(2, new TaskRetryPolicy(3, onTimeout: false, onThrow: false, delay: 0.0));
        [$done, $failed] = $this->runWhileWorkersAreKilled($pool, $count);

        self::assertSame([], $failed);
        self::assertCount($count, $done);
        self::assertGreaterThan($count, array_sum(RecordedTask::starts($this->path('starts'))), 'some were run again');
    }

    /**
     * @return array{array<int, true>, array<int, true>} tasks with a result, and tasks that failed because of a kill
     */
    private function runWhileWorkersAreKilled(WorkerPool $pool, int $count): array
    {
        mt_srand(Scale::seed());
        $kills = Scale::isFull() ? 200 : 10;
        $apart = intdiv($count, $kills);
        $next = mt_rand(1, $apart);
        $futures = $done = $failed = $seen = [];
        for ($submitted = $ended = 0; $ended < $count; ++$ended) {
            for (; $submitted < $count && $submitted - $ended < 2_000; ++$submitted) {
                $futures[$submitted] = $pool->submit(new RecordedTask(
                    $submitted,
                    $this->path('starts'),
                    $submitted % 50 === 0 ? mt_rand(1, 5_000) : 0,
                ));
            }
            $outcome = self::outcome($futures[$ended]);
            unset($futures[$ended]);
            if ($outcome instanceof WorkerCrashedException) {
                self::assertSame(9, $outcome->signal);
                $failed[$ended] = true;
            } else {
                self::assertIsInt($outcome, $outcome instanceof \Throwable ? (string) $outcome : 'a result');
                self::assertSame($ended, RecordedTask::numberOf($outcome));
                $done[$ended] = true;
                $seen[RecordedTask::workerOf($outcome)] = $ended;
            }
            if ($ended >= $next && $kills > 0) {
                $seen = array_filter(
                    $seen,
                    static fn(int $at, int $pid): bool => $at > $ended - $apart / 2 && Processes::isAlive($pid),
                    \ARRAY_FILTER_USE_BOTH,
                );
                if ($seen !== []) {
                    usleep(mt_rand(0, 300)); // a different moment in each round
                    posix_kill(array_rand($seen), \SIGKILL);
                    --$kills;
                    $next = $ended + mt_rand(intdiv($apart, 3), $apart);
                }
            }
        }
        self::assertSame(0, $kills, 'there was somebody to kill each time');

        return [$done, $failed];
    }
}
