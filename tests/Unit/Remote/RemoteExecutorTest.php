<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
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
use Spindle\Remote\Job;
use Spindle\Remote\JobLostException;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Worker\ExecutorClosedException;

use function Amp\delay;

final class RemoteExecutorTest extends TestCase
{
    /** @var (\Closure(MailboxMessage): void)|null receives the messages of the last mailbox */
    private ?\Closure $onMessage = null;

    /** @var (\Closure(bool): void)|null called when the last mailbox is open */
    private ?\Closure $onOpen = null;

    #[RequiresPhpExtension('pcntl')]
    public function testACallThatCannotWaitIsRefusedBeforeItHasAnEffect(): void
    {
        $broker = $this->createMock(Broker::class);
        foreach (['openMailbox', 'submit', 'attach', 'status'] as $method) {
            $broker->expects(self::never())->method($method);
        }
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        foreach ([
            static fn() => $executor->submit('time'),
            static fn() => $executor->dispatch('time'),
            static fn() => $executor->attach('id'),
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

    /** @param list<string> $expected calls of the broker */
    #[TestWith(['dispatch', ['cancel', 'no answer', 'submit']])]
    #[TestWith(['attach', ['cancel', 'attach', 'no answer', 'attach']])]
    public function testAnUnansweredCancellationDoesNotRemoveALaterJob(string $method, array $expected): void
    {
        $calls = [];
        /** @var DeferredFuture<null> $lost */
        $lost = new DeferredFuture();
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturn(static function (): void {});
        $broker->method('attach')->willReturnCallback(static function () use (&$calls): array {
            $calls[] = 'attach';

            return ['id' => new AttachResult(true, null, false)];
        });
        $broker->method('submit')->willReturnCallback(static function () use (&$calls): SubmitResult {
            $calls[] = 'submit';

            return new SubmitResult(1);
        });
        $broker->method('cancel')->willReturnCallback(static function () use (&$calls, $lost): array {
            $calls[] = 'cancel';
            $lost->getFuture()->await();
            $calls[] = 'no answer';

            throw BrokerUnavailableException::at('localhost', 'the connection broke');
        });
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $cancellation = new DeferredCancellation();
        $tasks = [
            $executor->attach('id', $cancellation->getCancellation())->ignore(),
            $executor->attach('id', $cancellation->getCancellation())->ignore(),
        ];
        delay(0.001);
        $calls = [];
        $cancellation->cancel();
        delay(0.001);
        $again = Async::run(static fn(): bool => $method === 'attach'
            ? $executor->attach('id')->ignore()->isComplete()
            : $executor->dispatch('time', 'id') === 'id');
        delay(0.001);
        $lost->complete();
        $isLookedUp = static function () use (&$calls, $expected): bool {
            return \count($calls) >= \count($expected);
        };
        Eventually::holds($isLookedUp, 'all jobs are looked up after unsent cancellations are sent');
        $again->await();

        self::assertSame($expected, $calls);
        [$failures] = Future\awaitAll($tasks, new TimeoutCancellation(5.0));
        self::assertCount(2, $failures);
        $executor->kill();
    }

    #[TestWith(['dispatch'])]
    #[TestWith(['dispatch immediately'])]
    #[TestWith(['attach'])]
    public function testAnUnsentCancellationEndsItsCallAndNotALaterJob(string $method): void
    {
        $cancelled = 0;
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturn(static function (): void {});
        $broker->method('attach')->willReturn(['id' => new AttachResult(true, null, false)]);
        $broker->method('submit')->willReturn(new SubmitResult(1));
        $broker->method('cancel')->willReturnCallback(static function () use (&$cancelled): never {
            ++$cancelled;

            throw BrokerUnavailableException::at('localhost', 'it is stopped');
        });
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $cancellation = new DeferredCancellation();
        $task = $executor->attach('id', $cancellation->getCancellation());
        $cancellation->cancel();
        if ($method !== 'dispatch immediately') {
            delay(0.001);
        }
        $other = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $method === 'attach' ? $other->attach('id')->ignore() : $other->dispatch('time', 'id');
        try {
            $task->await(new TimeoutCancellation(5.0));
            self::fail('The task was cancelled');
        } catch (CancelledException $exception) {
            self::assertNull($exception->getPrevious(), 'no timeout');
        }
        $executor->kill();

        self::assertSame(1, $cancelled);
        $other->kill();
    }

    public function testKillEndsADispatchThatWaitsForTheAnswerToACancellation(): void
    {
        /** @var DeferredFuture<list<string>> $answer */
        $answer = new DeferredFuture();
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturn(static function (): void {});
        $broker->method('attach')->willReturn(['id' => new AttachResult(true, null, false)]);
        $broker->method('cancel')->willReturnCallback(static fn(): array => $answer->getFuture()->await());
        $connection = EventLoop::repeat(1.0, static function (): void {}); // keeps the loop running
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $cancellation = new DeferredCancellation();
        $executor->attach('id', $cancellation->getCancellation())->ignore();
        $cancellation->cancel();
        $dispatch = Async::run(static fn(): string => $executor->dispatch('time', 'id'));
        delay(0.001);
        self::assertFalse($dispatch->isComplete());
        $executor->kill();
        try {
            $dispatch->await(new TimeoutCancellation(5.0));
            self::fail('The task was dispatched');
        } catch (ExecutorClosedException) {
            EventLoop::cancel($connection);
            $answer->complete(['id']);
        }
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
}
