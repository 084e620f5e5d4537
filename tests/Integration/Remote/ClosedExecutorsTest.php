<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\SharesAnAgent;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ExecutorClosedException;

use function Amp\delay;

/** The end of executors whose tasks run in a queue. */
final class ClosedExecutorsTest extends TidyTestCase
{
    use OwnDirectory;
    use SharesAnAgent;

    public function testEachUseOfAClosedExecutorIsRefused(): void
    {
        $executor = $this->remote();
        $loop = $executor->map([1], abs(...));
        $executor->close();
        foreach ([
            static fn() => $executor->submit('time'),
            static fn() => $executor->dispatch('time'),
            static fn() => $executor->attach('id'),
            static fn() => $executor->status('id'),
            static fn() => $executor->map([1], abs(...)),
            static fn() => $executor->mapUnordered([1], abs(...)),
            static fn() => iterator_to_array($loop),
        ] as $use) {
            self::assertStringContainsString('Create another one', self::refusal($use)->getMessage());
        }
    }

    public function testExecutorsShareAMailboxWhichIsClosedWithTheLastOfThem(): void
    {
        $before = self::mailboxes();
        $broker = new RedisBroker(Redis::shared()->url());
        $executors = [$this->on($broker), $this->on($broker)];
        foreach ($executors as $executor) {
            $executor->submit('time')->await();
        }
        self::assertSame($before + 1, self::mailboxes());
        $executors[0]->close();
        self::assertSame(3, $executors[1]->submit(static fn(): int => 3)->await());
        $executors[1]->close();

        Eventually::holds(static fn(): bool => self::mailboxes() === $before, 'the mailbox is closed');
        self::assertSame(4, $this->on($broker)->submit(static fn(): int => 4)->await(), 'the broker is usable');
    }

    public function testNothingOfAClosedExecutorKeepsTheLoopRunning(): void
    {
        foreach ([false, true] as $isKilled) {
            $executor = $this->remote();
            $executor->submit('time')->await();
            $isKilled ? $executor->kill() : $executor->close();
            $start = hrtime(true);
            EventLoop::run();
            self::assertLessThan(0.5, (hrtime(true) - $start) / 1e9);
        }
    }

    public function testAClosedExecutorHasNoConnection(): void
    {
        foreach ([false, true] as $isKilled) {
            $before = $this->surroundings()['descriptors'];
            $executor = $this->remote();
            $executor->submit('time')->await();
            self::assertNotSame($before, $this->surroundings()['descriptors']);
            $isKilled ? $executor->kill() : $executor->close();
            Eventually::holds(
                fn(): bool => $this->surroundings()['descriptors'] === $before,
                'the connections are closed',
            );
        }
    }

    public function testALoopGetsTheResultsOfWhatWasReadBeforeTheClose(): void
    {
        $executor = $this->remote();
        $input = static function (): \Generator {
            for ($i = 0; true; ++$i) {
                yield $i;
            }
        };
        $closing = null;
        $results = [];
        $refusal = self::refusal(static function () use ($executor, $input, &$closing, &$results): void {
            foreach ($executor->map($input(), static fn(int $i): int => 2 * $i) as $i => $result) {
                $results[$i] = $result;
                $closing ??= Async::run($executor->close(...));
            }
        });
        $closing?->await();

        self::assertStringContainsString('before the end of the input was reached', $refusal->getMessage());
        self::assertSame(range(0, 2 * \count($results) - 2, 2), $results);
    }

    public function testALoopOverAnArrayThatWasReadDoesNotFail(): void
    {
        $executor = $this->remote();
        $before = self::jobCount();
        $results = [];
        foreach ($executor->map([1, 2], abs(...)) as $result) {
            $results[] = $result;
            Eventually::holds(static fn(): bool => self::jobCount() === $before + 2, 'the array was read');
            $executor->close();
        }

        self::assertSame([1, 2], $results);
    }

    public function testCloseDoesNotWaitForAnInputThatIsSuspended(): void
    {
        $executor = $this->remote();
        /** @var DeferredFuture<int> $never */
        $never = new DeferredFuture();
        $results = [];
        self::refusal(static function () use ($executor, $never, &$results): void {
            foreach ($executor->map(self::suspendedInput($never), abs(...)) as $result) {
                $results[] = $result;
                $executor->close(new TimeoutCancellation(5.0));
            }
        });

        self::assertSame([1], $results);
    }

    public function testTheValueOfAReadThatIsRunningIsDropped(): void
    {
        $executor = $this->remote();
        $gate = new Gate($this->path('gate'));
        /** @var DeferredFuture<int> $later */
        $later = new DeferredFuture();
        $loop = $executor->map(self::suspendedInput($later), static fn(int $i): string => $gate->pass("task {$i}"));
        $first = Async::run(static fn(): mixed => $loop->current());
        $gate->awaitTasks(1);
        $closing = Async::run($executor->close(...));
        delay(0);
        $later->complete(2);
        $gate->open();
        $closing->await();

        self::assertSame('task 1', $first->await());
        self::refusal($loop->next(...));
        self::assertSame(['task 1'], $gate->names());
    }

    /**
     * @param DeferredFuture<int> $later
     *
     * @return \Generator<int, int>
     */
    private static function suspendedInput(DeferredFuture $later): \Generator
    {
        yield 1;
        yield $later->getFuture()->await();
    }

    public function testKillEndsALoopAndCancelsItsTasks(): void
    {
        $executor = $this->remote();
        $gate = new Gate($this->path('gate'));
        $task = static fn(int $i): string => $gate->pass("task {$i}", true);
        $loop = Async::run(static fn(): array => iterator_to_array($executor->mapUnordered(range(1, 1000), $task)));
        $gate->awaitTasks(2);
        $executor->kill();

        self::assertStringContainsString('was cancelled', self::refusal($loop->await(...))->getMessage());
        Eventually::holds(static fn(): bool => self::isQueueEmpty(), 'the tasks are cancelled');
    }

    #[TestWith(['break'])]
    #[TestWith(['throw'])]
    #[TestWith(['fiber'])]
    #[TestWith(['cancel'])]
    public function testKillCancelsTheTasksOfALoopThatWasLeft(string $way): void
    {
        $executor = $this->remote();
        $cancellation = new DeferredCancellation();
        $results = $executor->mapUnordered(
            range(1, 1000),
            static fn(int $i) => usleep($i === 1 ? 0 : 200_000),
            $cancellation->getCancellation(),
        );
        $leave = static function () use (&$results, $executor, $cancellation, $way): void {
            try {
                foreach ($results ?? [] as $_) {
                    if ($way === 'throw') {
                        throw new \DomainException('leaves the loop');
                    }
                    if ($way !== 'cancel') {
                        break;
                    }
                    $cancellation->cancel();
                }
            } catch (\DomainException|CancelledException) {
            } finally {
                $results = null;
                $executor->kill();
            }
        };
        $way === 'fiber' ? Async::run($leave)->await() : $leave();

        self::assertSame(0, (new RedisBroker(Redis::shared()->url()))->statistics(self::$sharedQueue)['waiting']);
    }

    public function testCloseReturnsWhenTheTasksOfALoopThatWasLeftAreCancelled(): void
    {
        $executor = $this->remote();
        $broker = new RedisBroker(Redis::shared()->url());
        foreach ($executor->mapUnordered(range(1, 1000), static fn(int $i) => usleep($i === 1 ? 0 : 50_000)) as $_) {
            break;
        }
        $executor->close();

        self::assertSame(0, $broker->statistics(self::$sharedQueue)['waiting']);
    }

    public function testTheGeneratorsOfALoopThatCloseHasEndedContinue(): void
    {
        $executor = $this->remote();
        $gate = new Gate($this->path('gate'));
        /** @var DeferredFuture<int> $later */
        $later = new DeferredFuture();
        $task = static function (int $i) use ($gate): \Generator {
            yield $i;
            $gate->pass();
            yield $i + 1;
        };
        $kept = $closing = null;
        self::refusal(static function () use ($executor, $later, $task, &$kept, &$closing): void {
            foreach ($executor->map(self::suspendedInput($later), $task) as $items) {
                $kept = $items;
                self::assertSame(1, $items->current());
                $closing = Async::run($executor->close(...));
            }
        });
        $gate->open();
        self::assertInstanceOf(\Generator::class, $kept);
        $kept->next();
        self::assertSame(2, $kept->current());
        $kept->next();
        self::assertFalse($kept->valid());
        $later->complete(2);
        $closing?->await();
    }

    public function testAClosedExecutorHasTheLastItemsOfItsGenerators(): void
    {
        $executor = $this->remote();
        $gate = new Gate($this->path('gate'));
        $items = $executor->submit(static function () use ($gate): \Generator {
            yield 1;
            $gate->pass();
            yield 2;
        })->await();
        $closing = Async::run($executor->close(...));
        $gate->awaitTasks(1);
        self::assertFalse($closing->isComplete());
        $gate->open();
        $closing->await();

        self::assertSame([1, 2], iterator_to_array($items, false));
    }

    public function testKillEndsGenerators(): void
    {
        $gate = new Gate($this->path('gate'));
        $task = static function () use ($gate): \Generator {
            yield 1;
            $gate->pass(ends: true);
            yield 2;
        };
        $executor = $this->remote();
        $submitted = $executor->submit($task)->await();
        $loop = $executor->map([1], $task);
        $mapped = $loop->current();
        $loop->next();
        $readers = [
            Async::run(static fn(): array => iterator_to_array($submitted, false)),
            Async::run(static fn(): array => iterator_to_array($mapped, false)),
        ];
        $gate->awaitTasks(1);
        $executor->kill();
        foreach ($readers as $reader) {
            self::refusal($reader->await(...));
        }
        Eventually::holds(static fn(): bool => self::isQueueEmpty(), 'the tasks are ended');
    }

    public function testDispatchedTasksStayInTheQueue(): void
    {
        $executor = $this->remote();
        $broker = new RedisBroker(Redis::shared()->url());
        $id = $executor->dispatch('time', delay: 60.0);
        $executor->kill();
        self::assertSame(JobStatus::Delayed, $broker->status(self::$sharedQueue, $id));
        $broker->cancel(self::$sharedQueue, [$id]);
    }

    public function testKillEndsTheWaitForADispatchedTaskAndNotTheTask(): void
    {
        $broker = new RedisBroker(Redis::shared()->url());
        [$killed, $other] = [$this->on($broker), $this->on($broker)];
        $gate = new Gate($this->path('gate'));
        $id = $killed->dispatch(static fn(): string => $gate->pass(ends: true));
        $futures = [$killed->attach($id), $killed->attach($id), $other->attach($id)];
        $gate->awaitTasks(1);
        $killed->kill();
        self::refusal($futures[0]->await(...));
        self::refusal($futures[1]->await(...));
        self::assertSame(5, $other->submit(static fn(): int => 5)->await());
        $gate->open();

        self::assertSame('task', $futures[2]->await(new TimeoutCancellation(5.0)));
    }

    public function testCloseInAForkDoesNotWaitAndKillThereEndsNothing(): void
    {
        $executor = $this->remote();
        $gate = new Gate($this->path('gate'));
        $future = $executor->submit(static fn(): string => $gate->pass(ends: true));
        $gate->awaitTasks(1);
        foreach ([false, true] as $isKilled) {
            $left = $this->path($isKilled ? 'killed' : 'closed');
            $pid = pcntl_fork();
            if ($pid === 0) {
                pcntl_signal(\SIGALRM, \SIG_DFL);
                pcntl_alarm(5); // ends a fork that hangs
                $isKilled ? $executor->kill() : $executor->close();
                self::refusal(static fn() => $executor->submit('time'));
                touch($left);
                posix_kill((int) getmypid(), \SIGKILL);
            }
            pcntl_waitpid($pid, $status);
            self::assertFileExists($left);
        }
        $gate->open();

        self::assertSame('task', $future->await());
    }

    public function testACancellationInAForkDoesNotCancelTasksOfItsParent(): void
    {
        $executor = $this->remote();
        $gate = new Gate($this->path('gate'));
        $cancellation = new DeferredCancellation();
        $id = $executor->dispatch(static fn(): string => $gate->pass('attached'));
        $futures = [
            $executor->submit(static fn(): string => $gate->pass('submitted'), $cancellation->getCancellation()),
            $executor->attach($id, $cancellation->getCancellation()),
        ];
        $gate->awaitTasks(2);
        $pid = pcntl_fork();
        if ($pid === 0) {
            $cancellation->cancel();
            self::endFork($executor);
        }
        self::awaitFork($pid);
        $gate->open();

        self::assertSame(['submitted', 'attached'], array_map(static fn(Future $future) => $future->await(), $futures));
    }

    public function testAForkThatLeavesALoopOfItsParentDoesNotCancelItsTasks(): void
    {
        $executor = $this->remote();
        $gate = new Gate($this->path('gate'));
        $task = static fn(int $i): string => $i === 1 ? 'first' : $gate->pass("task {$i}");
        $results = [];
        foreach ($executor->map([1, 2, 3, 4], $task) as $result) {
            $results[] = $result;
            if ($result === 'first') {
                $gate->awaitTasks(2);
                if (($pid = pcntl_fork()) === 0) {
                    break;
                }
                self::awaitFork($pid);
                $gate->open();
            }
        }
        if (($pid ?? 0) === 0) {
            self::endFork($executor);
        }

        self::assertSame(['first', 'task 2', 'task 3', 'task 4'], $results);
    }

    private function on(RedisBroker $broker): RemoteExecutor
    {
        return new RemoteExecutor($broker, self::$sharedQueue, self::keys());
    }

    /** Waits for an answer of the engine, so that earlier requests are answered too, and ends this fork. */
    private static function endFork(RemoteExecutor $executor): void
    {
        pcntl_signal(\SIGALRM, \SIG_DFL);
        pcntl_alarm(10); // ends a fork that hangs
        $executor->status('none');
        posix_kill((int) getmypid(), \SIGKILL);
    }

    private static function awaitFork(int $pid): void
    {
        pcntl_waitpid($pid, $status);
        self::assertIsInt($status);
        self::assertSame(\SIGKILL, pcntl_wtermsig($status));
    }

    private static function refusal(\Closure $use): ExecutorClosedException
    {
        try {
            $use();
        } catch (ExecutorClosedException $refusal) {
            return $refusal;
        }
        self::fail('It was not refused');
    }

    private static function mailboxes(): int
    {
        return \count((array) Redis::shared()->command('PUBSUB', 'CHANNELS', 'spindle:to:*'));
    }

    /** Returns the number of jobs that the shared queue has had. */
    private static function jobCount(): int
    {
        $statistics = (new RedisBroker(Redis::shared()->url()))->statistics(self::$sharedQueue);

        return $statistics['waiting'] + $statistics['running'] + $statistics['done_total'];
    }
}
