<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;
use Spindle\Remote\AttachResult;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Internal\FrameKind;
use Spindle\Remote\Internal\OutcomeBody;
use Spindle\Remote\Job;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\JobStatus;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Worker\ExecutorClosedException;

use function Amp\delay;

final class RemoteExecutorTest extends TestCase
{
    use CatchesThrown;

    /** @var (\Closure(MailboxMessage): void)|null receives the messages of the last mailbox */
    private ?\Closure $onMessage = null;

    /** @var (\Closure(bool): void)|null called when the last mailbox is open */
    private ?\Closure $onOpen = null;

    public function testCancelEndsIfKillHasDroppedTheUnsentTask(): void
    {
        $id = Job::storedId('order-7');
        $broker = self::createStub(Broker::class);
        $broker->method('cancelAndRecord')->willReturn([$id => null]);
        $keys = new SigningKeys([AgentProgram::KEY]);
        $killed = new RemoteExecutor($broker, 'queue', $keys);
        $other = new RemoteExecutor($broker, 'queue', $keys);
        $dispatching = Async::run(static fn(): string => $killed->dispatch('time', 'order-7'))->ignore();
        $cancelling = Async::run(static fn(): bool => $other->cancel('order-7'));
        Async::run(static fn() => $killed->kill());

        self::assertFalse($cancelling->await(new TimeoutCancellation(10)));
        $this->expectException(ExecutorClosedException::class);
        $dispatching->await();
    }

    #[RequiresPhpExtension('pcntl')]
    public function testACallThatCannotWaitIsRefusedBeforeItHasAnEffect(): void
    {
        $broker = $this->createMock(Broker::class);
        foreach (['openMailbox', 'submit', 'attach', 'cancelAndRecord', 'status'] as $method) {
            $broker->expects(self::never())->method($method);
        }
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        foreach ([
            static fn() => $executor->submit('time'),
            static fn() => $executor->dispatch('time'),
            static fn() => $executor->attach('id'),
            static fn() => $executor->cancel('id'),
            static fn() => $executor->status('id'),
            static fn() => iterator_to_array($executor->map([1], abs(...))),
        ] as $call) {
            self::assertInstanceOf(CannotWaitException::class, Async::inSignalHandler($call));
        }
        $executor->close();
    }

    public function testAKilledExecutorWithdrawsAJobWhenTheEngineHasIt(): void
    {
        $calls = [];
        /** @var DeferredFuture<null> $answered */
        $answered = new DeferredFuture();
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturn(static function (): void {});
        $broker->method('submit')->willReturnCallback(
            /** @param list<Job> $jobs */
            static function (string $queue, array $jobs) use (&$calls, $answered): SubmitResult {
                $calls[] = 'submission';
                $answered->getFuture()->await();
                $calls[] = 'answer';

                return new SubmitResult(\count($jobs));
            },
        );
        $broker->method('cancel')->willReturnCallback(
            /** @param list<string> $ids */
            static function (string $queue, array $ids) use (&$calls): array {
                $calls[] = \count($ids) . ' withdrawn';

                return $ids;
            },
        );
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $task = Async::run(static fn(): mixed => $executor->submit('time')->await());
        delay(0.001);
        $killing = Async::run($executor->kill(...));
        delay(0.001);
        $isEarly = \in_array('1 withdrawn', $calls, true);
        $answered->complete();
        $killing->await();

        self::assertFalse($isEarly);
        self::assertSame(['submission', 'answer', '1 withdrawn'], $calls);
        $this->expectException(ExecutorClosedException::class);
        $task->await();
    }

    #[TestWith(['cancellation'])]
    #[TestWith(['kill'])]
    public function testTheEndOfAWaitForADispatchedTaskDoesNotCancelTheTask(string $end): void
    {
        $broker = $this->createMock(Broker::class);
        $broker->method('openMailbox')->willReturnCallback(
            function (string $mailbox, \Closure $onMessage): \Closure {
                $this->onMessage = $onMessage;

                return static function (): void {};
            },
        );
        $broker->method('attach')->willReturn(['id' => new AttachResult(true, null, false)]);
        foreach (['cancel', 'cancelUnclaimed', 'cancelAndRecord'] as $method) {
            $broker->expects(self::never())->method($method);
        }
        $keys = new SigningKeys([AgentProgram::KEY]);
        $executor = new RemoteExecutor($broker, 'queue', $keys);
        $other = new RemoteExecutor($broker, 'queue', $keys);
        $cancellation = new DeferredCancellation();
        $ended = $executor->attach('id', $cancellation->getCancellation());
        $remaining = $other->attach('id');
        delay(0.001);
        $end === 'kill' ? $executor->kill() : $cancellation->cancel();
        try {
            $ended->await(new TimeoutCancellation(5.0));
            self::fail('The wait has ended');
        } catch (CancelledException|ExecutorClosedException $exception) {
            self::assertNull($exception->getPrevious(), 'no timeout');
            self::assertNotInstanceOf(JobCancelledException::class, $exception);
        }
        self::assertNotNull($this->onMessage);
        $frame = $keys->seal(FrameKind::Outcome, 'queue', 'id', 1, OutcomeBody::cancelled());
        ($this->onMessage)(new MailboxMessage(outcomes: ['id' => $frame]));
        $cancelled = self::thrown(
            JobCancelledException::class,
            static fn() => $remaining->await(new TimeoutCancellation(5.0)),
        );
        self::assertSame('id', $cancelled->id);
        self::assertSame('The job id of the queue queue was cancelled', $cancelled->getMessage());
        $executor->close(new TimeoutCancellation(5.0));
        $other->close(new TimeoutCancellation(5.0));
    }

    public function testAnEndedWaitDoesNotKeepTheLoopRunning(): void
    {
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturn(static function (): void {});
        $broker->method('attach')->willReturn(['id' => new AttachResult(true, null, false)]);
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $cancellation = new DeferredCancellation();
        $executor->attach('id', $cancellation->getCancellation())->ignore();
        $cancellation->cancel();
        $executor->attach('id', $cancellation->getCancellation())->ignore();
        EventLoop::run(); // returns when no timer is left

        $late = $executor->attach('other', $cancellation->getCancellation());
        $executor->close(new TimeoutCancellation(5.0));
        $this->expectException(CancelledException::class);
        $late->await();
    }

    /** @param list<JobStatus|null> $answers null for a lost answer */
    #[TestWith([[JobStatus::Waiting], true])]
    #[TestWith([[JobStatus::Cancelled], false])]
    #[TestWith([[null, JobStatus::Running], true])]
    #[TestWith([[null, JobStatus::Cancelled], true])]
    #[TestWith([[null, JobStatus::Done], false])]
    public function testACancellationIsRepeatedUntilTheEngineAnswers(array $answers, bool $expected): void
    {
        $broker = self::createStub(Broker::class);
        $broker->method('cancelAndRecord')->willReturnCallback(static function () use (&$answers): array {
            return ['#7' => array_shift($answers) ?? throw BrokerUnavailableException::at('localhost', 'it broke')];
        });
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));

        self::assertSame($expected, $executor->cancel('7'));
        self::assertSame([], $answers);
    }

    public function testACancellationFollowsADispatchWhoseWaitWasCancelled(): void
    {
        $calls = [];
        $broker = self::createStub(Broker::class);
        $broker->method('submit')->willReturnCallback(static function () use (&$calls): SubmitResult {
            $calls[] = 'submit';

            return \count($calls) > 1
                ? new SubmitResult(1)
                : throw BrokerUnavailableException::at('localhost', 'the connection broke');
        });
        $broker->method('cancelAndRecord')->willReturnCallback(static function () use (&$calls): array {
            $calls[] = 'cancel';

            return ['id' => JobStatus::Waiting];
        });
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $cancellation = new DeferredCancellation();
        $dispatch = Async::run(
            static fn(): string => $executor->dispatch('time', 'id', cancellation: $cancellation->getCancellation()),
        );
        delay(0.001);
        $cancellation->cancel();
        $dispatch->ignore();

        self::assertTrue($executor->cancel('id'));
        self::assertSame(['submit', 'submit', 'cancel'], $calls);
    }

    /** @return iterable<string, array{callable, string}> */
    public static function tasksWithArguments(): iterable
    {
        yield 'a function' => ['strtoupper', 'strtoupper()'];
        yield 'a closure' => [static fn(int $order): int => $order, 'closure at ' . __FILE__ . ':' . __LINE__];
        yield 'a static method' => [[Job::class, 'storedId'], Job::class . '::storedId()'];
    }

    #[DataProvider('tasksWithArguments')]
    public function testATaskThatNeedsArgumentsIsNotDispatched(callable $task, string $name): void
    {
        $broker = $this->createMock(Broker::class);
        $broker->expects(self::never())->method('submit');
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("{$name} needs arguments, but a dispatched task gets none, and the second");
        $executor->dispatch($task, 'order-7');
    }

    #[TestWith([null, ''])]
    #[TestWith(['customer 7', 'customer 7'])]
    public function testTheExclusiveKeyOfATaskMayBeNull(?string $key, string $expected): void
    {
        $keys = [];
        $broker = self::createStub(Broker::class);
        $broker->method('submit')->willReturnCallback(
            static function (string $queue, array $jobs) use (&$keys): SubmitResult {
                $keys = array_column($jobs, 'exclusiveKey');

                return new SubmitResult(1);
            },
        );
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));

        self::assertSame('order-7', $executor->dispatch('time', 'order-7', exclusiveKey: $key));
        self::assertSame([$expected], $keys);
    }

    public function testABrokerMayReportThatTheFirstJobIsTooLarge(): void
    {
        $broker = self::createStub(Broker::class);
        $broker->method('submit')->willReturnOnConsecutiveCalls(
            new SubmitResult(0, refusal: PayloadTooLargeException::of(9, 8)),
            new SubmitResult(1),
        );
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $refused = Async::run(static fn(): string => $executor->dispatch('time', 'refused'));
        $accepted = Async::run(static fn(): string => $executor->dispatch('time', 'accepted'));

        self::thrown(PayloadTooLargeException::class, $refused->await(...));
        self::assertSame('accepted', $accepted->await());
    }

    public function testJobsBehindOneThatIsTooLargeAreNotSentAfterKill(): void
    {
        $count = 0;
        /** @var \ArrayObject<int, RemoteExecutor> $executors */
        $executors = new \ArrayObject();
        $broker = self::createStub(Broker::class);
        $broker->method('submit')->willReturnCallback(static function () use ($executors, &$count): SubmitResult {
            if (++$count > 1) {
                return new SubmitResult(1);
            }
            $executors[0]?->kill();

            throw PayloadTooLargeException::of(9, 8);
        });
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $executors[] = $executor;
        $refused = Async::run(static fn(): string => $executor->dispatch('time', 'refused'));
        $unsent = Async::run(static fn(): string => $executor->dispatch('time', 'unsent'));
        self::thrown(ExecutorClosedException::class, $refused->await(...));
        self::thrown(ExecutorClosedException::class, $unsent->await(...));
        Async::run(static fn() => delay(0.0))->await(); // the outbox has handled the refusal

        self::assertSame(1, $count);
    }

    public function testAFullEngineDoesNotHideThatAnAnswerWasLost(): void
    {
        $checks = [];
        $broker = self::createStub(Broker::class);
        $broker->method('submit')->willReturnCallback(
            static function (string $queue, array $jobs, int $max, string $mailbox, bool $check) use (&$checks) {
                $checks[] = $check;
                $lost = BrokerUnavailableException::at('localhost', 'it broke');

                return match (\count($checks)) {
                    1 => throw $lost,
                    2 => throw QueueFullException::engine($queue, 'its memory is full', $lost),
                    default => new SubmitResult(1),
                };
            },
        );
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $executor->dispatch('time'); // the engine has perhaps added the job in the first call
        self::assertSame([true, true, true], $checks);
    }

    public function testAnEngineThatIsFullAfterSomeJobsDoesNotHideThatAnAnswerWasLost(): void
    {
        $count = 0;
        $broker = self::createStub(Broker::class);
        $broker->method('submit')->willReturnCallback(static function (string $queue, array $jobs) use (&$count) {
            $lost = BrokerUnavailableException::at('localhost', 'it broke');

            return match (++$count) {
                1 => throw $lost,
                2 => new SubmitResult(1, refusal: QueueFullException::engine($queue, 'its memory is full', $lost)),
                default => new SubmitResult(\count($jobs)),
            };
        });
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $first = Async::run(static fn(): string => $executor->dispatch('time', 'first'));
        $second = Async::run(static fn(): string => $executor->dispatch('time', 'second'));

        self::assertSame(['first', 'second'], [$first->await(), $second->await()]);
        self::assertSame(3, $count);
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testACancellationDoesNotWaitForLaterJobs(bool $isKill): void
    {
        [$isCancelled, $count] = [false, 0];
        $broker = self::createStub(Broker::class);
        $broker->method('cancel')->willReturnCallback(static function () use (&$isCancelled): array {
            $isCancelled = true;

            return [];
        });
        $broker->method('cancelAndRecord')->willReturnCallback(static function () use (&$isCancelled): array {
            $isCancelled = true;

            return ['id' => JobStatus::Waiting];
        });
        $other = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $broker->method('submit')->willReturnCallback(
            static function (string $queue, array $jobs) use (&$isCancelled, &$count, $other): SubmitResult {
                if (!$isCancelled && ++$count < 100) { // another dispatch begins during each request
                    Async::run(static fn(): string => $other->dispatch('time', "other-{$count}"));
                }
                delay(0.0);

                return new SubmitResult(\count($jobs));
            },
        );
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        if ($isKill) {
            $executor->submit('time')->ignore();
            $other->dispatch('time', 'first');
            $executor->kill();
        } else {
            $dispatch = Async::run(static fn(): string => $executor->dispatch('time', 'id'));
            Async::run(static fn() => null)->await();
            self::assertTrue($executor->cancel('id'));
            $dispatch->await();
        }

        self::assertLessThan(100, $count);
    }

    public function testACancelledCallOfCancelEndsImmediately(): void
    {
        /** @var DeferredFuture<array<string, JobStatus>> $answer */
        $answer = new DeferredFuture();
        $broker = self::createStub(Broker::class);
        $broker->method('cancelAndRecord')->willReturnCallback(static fn(): array => $answer->getFuture()->await());
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $cancellation = new DeferredCancellation();
        $call = Async::run(static fn(): bool => $executor->cancel('id', $cancellation->getCancellation()));
        delay(0.001);
        $cancellation->cancel();
        $exception = self::thrown(CancelledException::class, static fn() => $call->await(new TimeoutCancellation(5.0)));
        self::assertNull($exception->getPrevious(), 'no timeout');
        $closing = Async::run($executor->close(...));
        delay(0.001);
        self::assertFalse($closing->isComplete(), 'close() waits for the answer');
        $answer->complete(['id' => JobStatus::Waiting]);
        $closing->await(new TimeoutCancellation(5.0));

        $this->expectException(ExecutorClosedException::class);
        $executor->cancel('id');
    }

    public function testEachExecutorThatAwaitsATaskGetsItsReports(): void
    {
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturnCallback(
            function (string $mailbox, \Closure $onMessage): \Closure {
                $this->onMessage = $onMessage;

                return static function (): void {};
            },
        );
        $broker->method('attach')->willReturn(['a' => new AttachResult(true, null, false)]);
        $keys = new SigningKeys([AgentProgram::KEY]);
        $reports = $executors = [];
        foreach (['first', 'second'] as $name) {
            $onReport = static function (mixed $report) use (&$reports, $name): void {
                $reports[] = [$name, $report];
            };
            $options = new RemoteOptions(onReport: $onReport);
            $executors[] = $executor = new RemoteExecutor($broker, 'queue', $keys, options: $options);
            $executor->attach('a')->ignore();
            $executor->attach('a')->ignore();
        }
        $frame = $keys->seal(FrameKind::Report, 'queue', 'a', 1, serialize('half'));
        self::assertNotNull($this->onMessage);
        ($this->onMessage)(new MailboxMessage(reports: ['a' => $frame]));

        self::assertSame([['first', 'half'], ['second', 'half']], $reports);
        array_map(static fn(RemoteExecutor $executor) => $executor->kill(), $executors);
    }

    public function testNoOutcomeIsLookedUpBeforeItsReportsCanArrive(): void
    {
        $broker = self::createMock(Broker::class);
        $broker->method('openMailbox')->willReturnCallback(
            function (string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure {
                $this->onOpen = $onOpen;

                return static function (): void {};
            },
        );
        $broker->method('submit')->willReturn(new SubmitResult(1));
        $broker->expects(self::never())->method('attach');
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $executor->submit(static fn(): int => 1)->ignore();
        self::assertNotNull($this->onOpen);

        ($this->onOpen)(false);
        delay(0.01);
        $executor->kill();
    }

    public function testALostTaskOfAMapIsNotReportedAsRefused(): void
    {
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturnCallback(
            function (string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure {
                $this->onOpen = $onOpen;

                return static function (): void {};
            },
        );
        $broker->method('submit')->willReturnCallback(
            /** @param list<Job> $jobs */
            static fn(string $queue, array $jobs): SubmitResult => new SubmitResult(\count($jobs)),
        );
        $broker->method('attach')->willReturnCallback(
            static function (string $queue, array $ids): array {
                $results = [];
                foreach ($ids as $id) {
                    \assert(\is_string($id));
                    $results[$id] = new AttachResult(false, null, false);
                }

                return \count($results) === 1000
                    ? $results
                    : throw BrokerRefusedException::at('localhost', 'no permission', 'grant it');
            },
        );
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $results = Async::run(static fn(): array => iterator_to_array($executor->map(range(0, 1000), 'abs')));
        delay(0.01);
        self::assertNotNull($this->onOpen);
        ($this->onOpen)(true);

        $this->expectException(JobLostException::class);
        $results->await();
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testAMapYieldsTheOutcomesAfterAValueThatWasRefused(bool $isTooLarge): void
    {
        $keys = new SigningKeys([AgentProgram::KEY]);
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturnCallback(
            function (string $mailbox, \Closure $onMessage): \Closure {
                $this->onMessage = $onMessage;

                return static function (): void {};
            },
        );
        /** @var DeferredFuture<null> $isFirstSent */
        $isFirstSent = new DeferredFuture();
        /** @var DeferredFuture<null> $allSent */
        $allSent = new DeferredFuture();
        $broker->method('submit')->willReturnCallback(
            function (string $queue, array $jobs) use ($keys, $isFirstSent, $allSent, $isTooLarge): SubmitResult {
                [$job] = $jobs;
                \assert($job instanceof Job);
                if (!$isFirstSent->isComplete()) {
                    $isFirstSent->complete();
                    $allSent->getFuture()->await();

                    throw $isTooLarge
                        ? PayloadTooLargeException::forEngine($job->id, 9, 8)
                        : BrokerRefusedException::at('localhost', 'no permission', 'grant it');
                }
                $frame = $keys->seal(FrameKind::Outcome, 'queue', $job->id, 1, OutcomeBody::cancelled());
                self::assertNotNull($this->onMessage);
                EventLoop::defer(fn() => ($this->onMessage)(new MailboxMessage(outcomes: [$job->id => $frame])));

                return new SubmitResult(1);
            },
        );
        $executor = new RemoteExecutor($broker, 'queue', $keys);
        $input = static function () use ($isFirstSent, $allSent): \Generator {
            yield 'refused' => 1;
            $isFirstSent->getFuture()->await();
            EventLoop::delay(0.001, static fn() => $allSent->complete());
            yield 'accepted' => 2;
            delay(0.01);
        };
        $yielded = [];
        $failure = self::thrown(\Exception::class, static function () use ($executor, $input, &$yielded): void {
            foreach ($executor->mapOutcomes($input(), abs(...)) as $key => $outcome) {
                $yielded[] = $key;
            }
        });
        self::assertInstanceOf(
            $isTooLarge ? PayloadTooLargeException::class : BrokerRefusedException::class,
            $failure,
        );
        self::assertSame(['accepted'], $yielded);
    }
}
