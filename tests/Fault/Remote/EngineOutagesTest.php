<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Amp\NullCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\delay;

/** An engine that is away for a while. Streams go on, nothing counts as a crash, and cancellations arrive. */
final class EngineOutagesTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnEngine;

    /** Connections that the callers and agents of one test may need without a reconnect storm. */
    private const CALM = 30;

    /** Items that an agent stores ahead of the reader. */
    private const ROOM = 32;

    protected function deadline(): int
    {
        return 150;
    }

    public function testAStreamGoesOnWhereItWasWhenTheEngineIsBack(): void
    {
        $redis = $this->engine(['appendfsync' => 'always']);
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue());
        $items = $executor->submit(static fn(): \Generator => CountedTasks::count(100, 0.002))->await();
        $got = [];
        $restarted = null;
        foreach ($items as $item) {
            $got[] = $item;
            if ($item === 30 || $item === 60) {
                $isFull = fn(): bool => $this->storedItems() >= self::ROOM;
                Eventually::holds($isFull, 'as many items have come as there is room for');
            }
            if ($item === 60) {
                $redis->kill();
                $restarted = async(function () use ($redis): void {
                    $this->waitForUnansweredCalls('takeItems');
                    $redis->restart();
                });
            }
        }
        $restarted?->await();

        self::assertSame(range(1, 100), $got);
        $statistics = $this->statistics();
        self::assertSame([1, 0, 0], [$statistics['done_total'], $statistics['lost_total'], $statistics['dead']]);
    }

    /** Jobs that an agent ends because the engine is away have not crashed, however often that happens. */
    public function testOutagesThatAreLongerThanALeaseAreNoCrashes(): void
    {
        $redis = $this->engine();
        $log = $this->path('log');
        $open = $this->path('open');
        $executor = $this->executor();
        $futures = [];
        for ($i = 1; $i <= 2; ++$i) {
            $this->agentAt($redis->url(), $this->queue(), 1, 1.0, 0.1, 0.4);
            $futures[] = $executor->submit(static fn(): int => LoggedTasks::runUntil($log, $i, $open));
        }
        for ($outage = 1; $outage <= 3; ++$outage) {
            Eventually::holds(
                static fn(): bool
                    => \count(array_filter(LoggedTasks::started($log), static fn(int $n): bool => $n >= $outage)) === 2,
                'both run again',
                20.0,
            );
            posix_kill((int) $redis->pid(), \SIGSTOP);
            delay(1.2); // The outage has to be longer than a lease.
            posix_kill((int) $redis->pid(), \SIGCONT);
        }
        touch($open);

        self::assertEqualsCanonicalizing([1, 2], Future\await($futures, new TimeoutCancellation(20.0)));
        $statistics = $this->statistics();
        self::assertSame([2, 0], [$statistics['done_total'], $statistics['dead']]);
    }

    public function testATaskThatIsCancelledWhileTheEngineIsAwayEndsWhenItIsBack(): void
    {
        $redis = $this->engine();
        $directory = $this->directory('runs');
        $this->agentAt($redis->url(), $this->queue(), 1);
        $cancellation = new DeferredCancellation();
        $future = $this->executor()->submit(
            static fn(): int => RecordedTasks::linger($directory, 9),
            $cancellation->getCancellation(),
        );
        $this->waitForFile("{$directory}/1");
        $redis->kill();
        $cancellation->cancel();
        $this->waitForUnansweredCalls('cancel');
        $redis->restart();
        $began = hrtime(true);
        self::thrown(CancelledException::class, static fn() => $future->await());
        self::assertLessThan(8.0, (hrtime(true) - $began) / 1e9);
        $worker = (int) file_get_contents("{$directory}/1");
        Eventually::holds(static fn(): bool => !Processes::isAlive($worker), 'it runs no more');

        self::assertSame(1, $this->statistics()['cancelled_total']);
    }

    public function testAGeneratorThatIsDroppedWhileTheEngineIsAwayEndsWhenItIsBack(): void
    {
        $redis = $this->engine();
        $this->agentAt($redis->url(), $this->queue(), 1);
        $items = $this->executor()->submit(static function (): \Generator {
            for ($i = 0; ; ++$i) {
                yield $i;
            }
        })->await();
        self::assertSame(0, $items->current());
        $redis->kill();
        unset($items);
        $this->waitForUnansweredCalls('stopTakingItems');
        $redis->restart();
        Eventually::holds(fn(): bool => $this->statistics()['running'] === 0, 'the task ends', 20.0);

        self::assertSame([], $redis->command('KEYS', '*:items:*'));
    }

    /** All cancellations are sent in batches when the engine is back. Cancelled waits cancel no tasks. */
    public function testManyCancellationsDuringAnOutageAreNoStorm(): void
    {
        $redis = $this->engine();
        $executor = $this->executor();
        $cancellations = $futures = $waits = [];
        for ($i = 1; $i <= 200; ++$i) {
            $cancellations[] = $cancellation = new DeferredCancellation();
            $futures[] = $executor->submit(getmypid(...), $cancellation->getCancellation());
            $executor->dispatch(getmypid(...), "id-{$i}", delay: 600.0);
            $waits[] = $executor->attach("id-{$i}", $cancellation->getCancellation());
        }
        self::assertSame([200, 200], [$this->statistics()['waiting'], $this->statistics()['delayed']]);
        $redis->kill();
        $tries = 0;
        $port = $redis->port;
        $listener = stream_socket_server("tcp://127.0.0.1:{$port}");
        self::assertIsResource($listener);
        foreach ($cancellations as $i => $cancellation) {
            $cancellation->cancel();
            delay(0.01);
            self::assertTrue($waits[$i]->isComplete(), 'the wait ends at once');
            self::assertCancelled($waits[$i]);
            while (($connection = @stream_socket_accept($listener, 0)) !== false) {
                fclose($connection);
                ++$tries;
            }
        }
        fclose($listener);
        self::assertLessThan(self::CALM, $tries);
        $redis->restart();
        foreach ($futures as $future) {
            self::assertCancelled($future);
        }
        self::assertSame([0, 200], [$this->statistics()['waiting'], $this->statistics()['delayed']]);
        unset($executor, $futures, $future, $waits);
        $this->awaitAnswersOfCancellations();
    }

    public function testACancellationDuringAnOutageTakesEffectAfterIt(): void
    {
        $redis = $this->engine();
        $directory = $this->directory('runs');
        $this->agentAt($redis->url(), $this->queue(), 1);
        $executor = $this->executor();
        $executor->dispatch(static fn(): int => RecordedTasks::linger($directory, 9), 'running');
        $executor->dispatch(getmypid(...), 'delayed', delay: 600.0);
        $this->waitForFile("{$directory}/1");
        $waits = [$executor->attach('running'), $executor->attach('delayed')];
        $redis->kill();
        $calls = [async($executor->cancel(...), 'running'), async($executor->cancel(...), 'delayed')];
        $impatient = $this->executor(brokerRetryTimeout: 0.0);
        self::thrown(BrokerUnavailableException::class, static fn(): bool => $impatient->cancel('running'));
        $this->waitForUnansweredCalls('cancelAndRecord');
        $redis->restart();

        self::assertEquals([true, true], Future\await($calls));
        foreach ($waits as $wait) {
            self::thrown(JobCancelledException::class, $wait->await(...));
        }
        $worker = (int) file_get_contents("{$directory}/1");
        Eventually::holds(static fn(): bool => !Processes::isAlive($worker), 'it runs no more');
        foreach (['running', 'delayed'] as $id) {
            self::assertSame(JobStatus::Cancelled, $executor->status($id));
        }
        self::assertSame([2, 0], [$this->statistics()['cancelled_total'], $this->statistics()['done_total']]);
    }

    public function testARequestDoesNotFailBecauseTheEngineHasClosedAnIdleConnection(): void
    {
        $redis = $this->engine();
        $executor = $this->executor(new RedisBroker($redis->url()), brokerRetryTimeout: 0.0);
        self::assertNull($executor->status('job'));
        $redis->command('CLIENT', 'KILL', 'TYPE', 'normal'); // ends the connections before it answers
        self::assertNull($executor->status('job'));
        $redis->restart();
        $executor->dispatch(static fn(): int => 1, 'job');
        $redis->command('CLIENT', 'KILL', 'TYPE', 'normal');

        self::assertSame(JobStatus::Waiting, $executor->status('job'));
    }

    public function testAShortRetryTimeoutIsNotDelayedByALongOne(): void
    {
        $redis = $this->engine();
        $broker = new RedisBroker($redis->url());
        [$patient, $impatient] = array_map(
            fn(float $brokerRetryTimeout): RemoteExecutor
                => new RemoteExecutor(
                    $broker,
                    $this->queue(),
                    self::keys(),
                    options: new RemoteOptions(brokerRetryTimeout: $brokerRetryTimeout),
                ),
            [60.0, 0.0],
        );
        $redis->kill();
        $waiting = async($patient->dispatch(...), getmypid(...), 'patient');
        delay(0);
        self::thrown(
            BrokerUnavailableException::class,
            static fn() => $impatient->dispatch(getmypid(...), 'impatient'),
        );
        self::assertFalse($waiting->isComplete());
        $redis->restart();

        self::assertSame('patient', $waiting->await());
        self::assertSame(1, $this->statistics()['waiting']);
    }

    public function testCancelledTasksDoNotWaitForAnEngineThatIsAway(): void
    {
        $redis = $this->engine();
        $log = $this->path('log');
        $open = $this->path('open');
        $this->agentAt($redis->url(), $this->queue());
        $cancellation = new DeferredCancellation();
        $executor = $this->executor(brokerRetryTimeout: 1.0);
        $patient = $this->executor(brokerRetryTimeout: 60.0);
        $task = static fn(int $number): int => LoggedTasks::runUntil($log, $number, $open);
        $submitted = $executor->submit(static fn(): int => $task(1), $cancellation->getCancellation());
        $map = static fn(Cancellation $cancellation): array
            => iterator_to_array($executor->map([2], $task, $cancellation));
        $mapped = async($map, $cancellation->getCancellation());
        Eventually::holds(static fn(): bool => \count(LoggedTasks::started($log)) === 2, 'both run', 20.0);
        posix_kill((int) $redis->pid(), \SIGSTOP);
        $cancellation->cancel();
        $began = hrtime(true);
        self::assertCancelled($submitted);
        self::assertCancelled($mapped);
        self::assertCancelled(async(
            static fn() => $patient->submit(static fn(): int => $task(3), new TimeoutCancellation(0.1))->await(),
        ));
        self::assertCancelled(async($map, new TimeoutCancellation(0.1)));
        self::assertLessThan(20.0, (hrtime(true) - $began) / 1e9);
        posix_kill((int) $redis->pid(), \SIGCONT);
        $answers = array_map(
            static fn(RemoteExecutor $one): Future
                => async(static fn() => $one->submit(static fn(): int => 5)->await()),
            [$executor, $patient],
        );

        self::assertEquals([5, 5], Future\await($answers), 'what was submitted before is in the queue or refused');
        Eventually::holds(
            fn(): bool => $this->statistics()['waiting'] + $this->statistics()['running'] === 0,
            'all is cancelled',
            20.0,
        );
        self::assertSame(2, $this->statistics()['done_total']);
        self::assertNull($executor->status('none'), 'its answer comes after those of what was cancelled');
        self::assertNull($patient->status('none'));
    }

    public function testADispatchAndAStatusThatAreCancelledDoNotWaitAndTheSameIdCanBeDispatchedAgain(): void
    {
        $redis = $this->engine();
        $executor = $this->executor();
        self::assertNull($executor->status('order', new NullCancellation()));
        posix_kill((int) $redis->pid(), \SIGSTOP);
        $began = hrtime(true);
        $dispatch = static fn(float $seconds): string => $executor->dispatch(
            getmypid(...),
            'order',
            cancellation: new TimeoutCancellation($seconds),
        );
        self::assertCancelled(async($dispatch, 0.1));
        self::assertCancelled(async(
            static fn(): ?JobStatus => $executor->status('order', new TimeoutCancellation(0.1)),
        ));
        self::assertLessThan(2.0, (hrtime(true) - $began) / 1e9);
        posix_kill((int) $redis->pid(), \SIGCONT);

        self::assertSame('order', $dispatch(10.0));
        self::assertSame(JobStatus::Waiting, $executor->status('order', new TimeoutCancellation(10.0)));
        self::assertSame([1, 1], [$this->statistics()['waiting'], $this->statistics()['submitted_total']]);
        $cancelled = new DeferredCancellation();
        $cancelled->cancel();
        self::assertCancelled(async(
            static fn(): string => $executor->dispatch(
                getmypid(...),
                'other',
                cancellation: $cancelled->getCancellation(),
            ),
        ));
        self::assertNull($executor->status('other'), 'a request that was cancelled before is not sent');
    }

    #[TestWith(['killed'])]
    #[TestWith(['stopped'])]
    public function testACancelledCommandDoesNotWaitForAnEngineThatIsAway(string $engine): void
    {
        $redis = $this->engine();
        $file = $this->path('pid');
        $this->agentAt($redis->url(), $this->queue());
        $pool = new CommandPool(4, 0, new CommandPoolOptions(
            transport: new RemoteCommands(new RedisBroker($redis->url()), $this->queue(), self::keys()),
        ));
        $running = new DeferredCancellation();
        $command = Command::shell("echo \$\$ > {$file}; exec sleep 100");
        $run = async(static fn(): CommandResult => $pool->execute($command, $running->getCancellation()));
        Eventually::holds(static fn(): bool => (int) @file_get_contents($file) > 0, 'the command runs');
        $process = (int) file_get_contents($file);
        $engine === 'killed' ? $redis->kill() : posix_kill((int) $redis->pid(), \SIGSTOP);
        $began = hrtime(true);
        $running->cancel();
        self::assertCancelled($run);
        self::assertCancelled(async($pool->execute(...), Command::of('true'), new TimeoutCancellation(0.1)));
        /** @var Future<array<CommandResult>> $inRun */
        $inRun = async(static fn(): array => iterator_to_array($pool->run([Command::of('true')])));
        Eventually::holds(static fn(): bool => $pool->runningKeys() !== [], 'the command is being submitted');
        $pool->cancelAll();
        $result = $inRun->await()[0];
        self::assertLessThan(5.0, (hrtime(true) - $began) / 1e9);
        self::assertTrue($result->cancelled);
        self::assertStringContainsString('cancelled while the engine was not available', $result->describe());
        $engine === 'killed' ? $redis->restart() : posix_kill((int) $redis->pid(), \SIGCONT);

        Eventually::holds(static fn(): bool => !Processes::isAlive($process), 'the command has ended', 20.0);
        Eventually::holds(
            fn(): bool => $this->statistics()['waiting'] + $this->statistics()['running'] === 0,
            'the queue is empty',
            20.0,
        );
        unset($pool);
        $this->awaitAnswersOfCancellations();
    }

    /** The caller must have dropped the executors and pools. */
    private function awaitAnswersOfCancellations(): void
    {
        Eventually::holds(function (): bool {
            gc_collect_cycles();

            return array_diff(EventLoop::getIdentifiers(), $this->before['watchers']) === [];
        }, 'the cancellations are answered', 20.0);
    }

    /** Returns the number of stored items of the only generator that are not taken. */
    private function storedItems(): int
    {
        $keys = $this->engine()->command('KEYS', 'spindle:*:items:*');
        $count = \is_array($keys) && \is_string($keys[0] ?? null) ? $this->engine()->command('XLEN', $keys[0]) : 0;

        return \is_int($count) ? $count : 0;
    }

    /** @param Future<mixed> $future */
    private static function assertCancelled(Future $future): void
    {
        self::thrown(CancelledException::class, static fn() => $future->await());
    }

    public function testACancellationArrivesThoughItsMessageIsLost(): void
    {
        $redis = $this->engine();
        $directory = $this->directory('runs');
        $this->agentAt($redis->url(), $this->queue(), 1);
        $cancellation = new DeferredCancellation();
        $future = $this->executor()->submit(
            static fn(): int => RecordedTasks::linger($directory, 9),
            $cancellation->getCancellation(),
        );
        $this->waitForFile("{$directory}/1");
        $redis->command('CLIENT', 'KILL', 'TYPE', 'pubsub');
        $cancellation->cancel();
        $began = hrtime(true);
        self::assertCancelled($future);

        self::assertLessThan(4.0, (hrtime(true) - $began) / 1e9);
    }
}
