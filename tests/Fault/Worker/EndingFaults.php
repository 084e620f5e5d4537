<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

use function Amp\delay;

/** Tests workers that resist being ended. */
trait EndingFaults
{
    public function testASuspendedWorkerIsEndedByItsTimeout(): void
    {
        $this->needsAProcessForEachWorker('one that can not be ended takes those with it that are being started');
        $pool = $this->pool(1, timeout: 0.3, gracePeriod: 0.2);
        $future = $pool->submit(new Call('stop', $this->path('begun')));
        $other = $pool->submit(new Call('square', 4));
        $pid = self::pidIn($this->path('begun'));
        Eventually::holds(static fn(): bool => Processes::state($pid) === 'T', 'it has stopped');

        self::assertInstanceOf(TaskTimeoutException::class, self::outcome($future));
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'its process has ended');
        self::assertSame(16, self::outcome($other));
        self::assertUsable($pool);
    }

    public function testAWorkerThatIsSuspendedBeforeItBeginsIsReplaced(): void
    {
        $this->needsAProcessForEachWorker('all of them are stopped with their process');
        $pool = $this->pool(1, gracePeriod: 0.2);
        $pid = $this->stopIdle($pool);
        $futures = [$pool->submit(new Call('square', 4)), $pool->submit(new Call('square', 5))];

        self::assertSame([16, 25], self::outcomes($futures));
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'its process has ended');
        self::assertUsable($pool);
    }

    public function testASuspendedWorkerDoesNotKeepAClosingPoolWaiting(): void
    {
        $this->needsAProcessForEachWorker('all of them are stopped with their process');
        $pool = $this->pool(1, gracePeriod: 0.2);
        $this->stopIdle($pool);
        $future = $pool->submit(new Call('square', 4));
        $closing = Async::run($pool->close(...));

        self::assertNull(self::outcome($closing));
        self::assertSame(16, self::outcome($future));
    }

    public function testATaskThatHandlesTermItselfIsKilledAfterTheGrace(): void
    {
        $this->needsAProcessForEachWorker('one of them gets no signal');
        $pool = $this->pool(1, timeout: 0.2, gracePeriod: 0.3);
        $at = hrtime(true);
        $future = $pool->submit(new Call('ignoreTerm', $this->path('begun')));
        $pid = self::pidIn($this->path('begun'));

        self::assertInstanceOf(TaskTimeoutException::class, self::outcome($future));
        self::assertGreaterThan(0.5, (hrtime(true) - $at) / 1e9, 'seconds');
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'its process has ended');
        self::assertUsable($pool);
    }

    public function testATimeoutAlsoEndsProcessesThatTheTaskStarted(): void
    {
        $this->needsAProcessForEachWorker('what one of them has started lives for as long as all of them');
        $pool = $this->pool(1, timeout: 0.5, gracePeriod: 0.2);
        $future = $pool->submit(new Call('sleepAmongDescendants', $this->path(), $this->path('begun')));
        self::pidIn($this->path('begun'));
        self::assertGreaterThanOrEqual(3, \count(self::descendantsWith('sleep 1000')));

        self::assertInstanceOf(TaskTimeoutException::class, self::outcome($future));
        Eventually::holdsByItself(
            static fn(): bool => self::descendantsWith('sleep 1000') === [],
            'what it has started has ended',
        );
        self::assertUsable($pool);
    }

    public function testWithoutSharedMemoryATimeLimitIsThatOfEachTask(): void
    {
        $pool = $this->poolWithoutSharedMemory(timeout: 0.5);
        $task = static function (int $i): int {
            usleep($i < 1000 ? 0 : 50_000); // tasks that seem tiny are sent together

            return \function_exists('shmop_open') ? -1 : $i;
        };

        self::assertSame(range(0, 1039), iterator_to_array($pool->map(range(0, 1039), $task)));
        self::assertInstanceOf(
            TaskTimeoutException::class,
            self::outcome($pool->submit(new Call('sleep', $this->path('begun')))),
        );
        self::assertUsable($pool);
    }

    public function testWithoutSharedMemoryTheTimeOfAGeneratorDoesNotRunWhileItsReaderPauses(): void
    {
        $pool = $this->poolWithoutSharedMemory(timeout: 0.3, budget: new ResultBudget(1 << 24));
        $begun = $this->path('begun');
        $items = self::outcome($pool->submit(static function () use ($begun): \Generator {
            yield str_repeat('x', 1 << 20); // the generator waits until the reader asks for the next item
            yield from range(1, 200);
            yield TaskFunctions::sleep($begun);
        }));
        self::assertInstanceOf(\Generator::class, $items);
        $read = [];
        $late = null;
        try {
            foreach ($items as $item) {
                $read[] = \is_string($item) ? \strlen($item) : $item;
                if (\count($read) <= 2) {
                    delay(0.7); // longer than the task may run
                } elseif ($item === 120) {
                    usleep(700_000); // the loop does not turn
                }
            }
        } catch (TaskTimeoutException $late) {
        }

        self::assertSame([1 << 20, ...range(1, 200)], $read);
        self::assertNotNull($late);
        self::assertUsable($pool);
    }

    public function testWithoutSharedMemoryATaskThatIsCancelledBehindAnotherNeverStarts(): void
    {
        $pool = $this->poolWithoutSharedMemory();
        self::outcome($pool->submit(new Call('square', 1)));
        $this->assertATaskBehindASlowOneIsCancelled($pool);
        self::assertFileDoesNotExist($this->path('late'));
    }

    public function testWithoutSharedMemoryATaskThatIsCancelledInItsBatchIsEnded(): void
    {
        $pool = $this->poolWithoutSharedMemory();
        for ($round = 0; $round < 3; ++$round) {
            self::assertUsable($pool, 100); // tiny tasks are sent together
        }
        $pool->submit(new Call('sleep', $this->path('first'), 0.002)); // the next two tasks are one batch
        $this->assertATaskBehindASlowOneIsCancelled($pool);
    }

    public function testWithoutSharedMemoryTheNextTaskOfACancelledOneIsNotCancelled(): void
    {
        $this->needsAProcessForEachWorker('a thread handles no signal');
        $pool = $this->poolWithoutSharedMemory();
        for ($round = 0; $round < 3; ++$round) {
            self::assertUsable($pool, 100); // tiny tasks are sent together
        }
        $outcome = 'slept';
        for ($round = 0; $outcome === 'slept' && $round < 5; ++$round) { // until the last two tasks are one batch
            $pool->submit(new Call('sleep', $this->path('first'), 0.002));
            $cancellation = new DeferredCancellation();
            $begun = $this->path("begun{$round}");
            $cancelled = $pool->submit(static function () use ($begun): void {
                pcntl_signal(\SIGTERM, \SIG_IGN); // so that the next task begins before SIGKILL
                TaskFunctions::sleep($begun, 0.2);
            }, $cancellation->getCancellation());
            $next = $pool->submit(new Call('sleep', $this->path('next'), 3.0));
            self::pidIn($begun);
            $cancellation->cancel();
            self::assertInstanceOf(CancelledException::class, self::outcome($cancelled));
            $outcome = self::outcome($next);
            self::assertUsable($pool, 100);
        }

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
    }

    public function testWithoutSharedMemoryARetryDoesNotWaitBehindALaterGenerator(): void
    {
        $pool = $this->poolWithoutSharedMemory(new TaskRetryPolicy(1, delay: 0.0));
        $counts = [];
        foreach ($pool->map([1, 2], static function (int $i): \Generator {
            if ($i === 1 && TaskContext::current()->attempt === 1) {
                throw new \DomainException('not yet');
            }

            return (static fn(): \Generator => yield from range(1, 1000))();
        }) as $items) {
            $counts[] = iterator_count($items);
            unset($items);
        }

        self::assertSame([1000, 1000], $counts);
    }

    #[RequiresPhpExtension('shmop')]
    public function testThePoolReleasesTheMemoryOfAnEndedWorkerWithoutAGarbageCollection(): void
    {
        $pool = $this->pool(1);
        $generator = self::outcome($pool->submit(static function (): \Generator {
            yield 1;
            yield exit(1);
        }));
        self::assertInstanceOf(\Generator::class, $generator);
        gc_collect_cycles();
        gc_disable();
        try {
            $before = self::attachedMemories();
            self::outcome($pool->submit(static fn(): never => exit(1)));
            $after = self::attachedMemories();
        } finally {
            gc_enable();
        }

        self::assertSame($before - 1, $after);
        self::assertInstanceOf(
            WorkerCrashedException::class,
            self::outcome(Async::run(static fn(): array => iterator_to_array($generator))),
        );
        self::assertUsable($pool);
    }

    /** Cancels the task 'late' while the task 'slow' before it is running. */
    private function assertATaskBehindASlowOneIsCancelled(WorkerPool $pool): void
    {
        $slow = $pool->submit(new Call('sleep', $this->path('slow'), 0.2));
        $cancellation = new DeferredCancellation();
        $late = $pool->submit(new Call('sleep', $this->path('late')), $cancellation->getCancellation());
        self::pidIn($this->path('slow'));
        $cancellation->cancel();

        self::assertSame('slept', self::outcome($slow));
        $outcome = self::outcome($late);
        self::assertInstanceOf(CancelledException::class, $outcome);
        self::assertNull($outcome->getPrevious());
        self::assertUsable($pool);
    }

    /** Returns a pool of one worker whose PHP lacks ext-shmop. */
    private function poolWithoutSharedMemory(
        int|TaskRetryPolicy $retries = 0,
        ?float $timeout = null,
        ?ResultBudget $budget = null,
    ): WorkerPool {
        $php = $this->script('php', 'exec ' . escapeshellarg(\PHP_BINARY) . ' -d disable_functions=shmop_open "$@"');

        return new WorkerPool(1, $retries, new WorkerPoolOptions(
            context: $this->context(),
            timeout: $timeout,
            php: $php,
            resultBudget: $budget,
        ));
    }

    private static function attachedMemories(): int
    {
        return substr_count((string) file_get_contents('/proc/self/maps'), '/SYSV');
    }

    /** @return int process id of the only worker */
    private function stopIdle(WorkerPool $pool): int
    {
        $pid = self::outcome($pool->submit('getmypid'));
        self::assertIsInt($pid);
        posix_kill($pid, \SIGSTOP);
        Eventually::holds(static fn(): bool => Processes::state($pid) === 'T', 'it has stopped');

        return $pid;
    }
}
