<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ExecutorClosedException;

use function Amp\delay;

/** Executors that end while the engine does not answer. */
final class ExecutorEndsTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnEngine;

    public function testKillEndsCallsThatWaitForTheEngine(): void
    {
        $redis = $this->engine();
        $executor = $this->executor();
        self::assertNull($executor->status('none'));
        posix_kill((int) $redis->pid(), \SIGSTOP);
        $calls = [
            Async::run(static fn() => $executor->submit('time')->await()),
            Async::run(static fn() => $executor->submit('time', new TimeoutCancellation(60.0))->await()),
            Async::run(static fn() => $executor->dispatch('time', 'sent')),
            Async::run(static fn() => $executor->dispatch('time', 'unsent', '', 0.0, new TimeoutCancellation(60.0))),
            Async::run(static fn(): array => iterator_to_array($executor->map([1, 2], abs(...)))),
        ];
        delay(0.01); // the first request is sent, and the others wait for its answer
        $start = hrtime(true);
        $executor->kill();
        array_map(self::assertEnded(...), $calls);
        self::assertLessThan(2.0, (hrtime(true) - $start) / 1e9);
        posix_kill((int) $redis->pid(), \SIGCONT);
        EventLoop::run();

        self::assertSame(1, $this->statistics()['waiting'], 'Jobs that nothing awaits are cancelled');
        $other = $this->executor();
        self::assertSame(JobStatus::Waiting, $other->status('sent'), 'A dispatched job stays in the queue');
        self::assertNull($other->status('unsent'));
    }

    public function testTheTasksOfALoopAreCancelledAlthoughItsInputThrowsAtItsEnd(): void
    {
        $this->engine();
        $executor = $this->executor();
        $cancellation = new DeferredCancellation();
        $input = static function (): \Generator {
            try {
                for ($number = 0;; ++$number) {
                    yield $number;
                }
            } finally {
                throw new \DomainException('end of the input');
            }
        };
        $loop = Async::run(static function () use ($executor, $input, $cancellation): \Throwable {
            return self::thrown(\DomainException::class, static fn(): array => iterator_to_array(
                $executor->map($input(), abs(...), $cancellation->getCancellation()),
            ));
        });
        Eventually::holds(fn(): bool => ($this->statistics()['waiting'] ?? 0) > 0, 'tasks wait');
        $cancellation->cancel();

        self::assertInstanceOf(CancelledException::class, $loop->await(new TimeoutCancellation(10))->getPrevious());
        Eventually::holds(fn(): bool => $this->statistics()['waiting'] === 0, 'the tasks are cancelled');
        $executor->close();
    }

    public function testKillCancelsTasksWhoseSubmissionHasNoAnswerWhenTheirLoopIsLeft(): void
    {
        $redis = $this->engine();
        $this->agentAt($redis->url(), $this->queue());
        $executor = $this->executor();
        /** @var DeferredFuture<int> $second */
        $second = new DeferredFuture();
        $input = static function () use ($second): \Generator {
            yield 1;
            yield $second->getFuture()->await();
        };
        $task = static fn(int $number): int => $number === 1 ? 1 : sleep(60);
        foreach ($executor->map($input(), $task) as $_) {
            posix_kill((int) $redis->pid(), \SIGSTOP);
            $second->complete(2);
            delay(0.01); // the second task is sent
            break;
        }
        $executor->kill();
        posix_kill((int) $redis->pid(), \SIGCONT);

        Eventually::holds(
            fn(): bool => $this->statistics()['waiting'] + $this->statistics()['running'] === 0
                && $this->statistics()['cancelled_total'] === 1,
            'the task is cancelled',
        );
    }

    #[TestWith(['killDuringASubmission'])]
    #[TestWith(['cancelCloseDuringASubmission'])]
    #[TestWith(['cancelDuringASubmission'])]
    public function testATaskWhoseSubmissionHasNoAnswerIsCancelledWhenTheProcessEnds(string $program): void
    {
        $redis = $this->engine();
        $process = Host::start(Callers::class . "::{$program}", [$redis->url(), $this->queue(), $redis->pid()]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 30.0);
        posix_kill((int) $redis->pid(), \SIGCONT);

        self::assertSame(7, $process->getExitCode(), $process->getOutput() . $process->getErrorOutput());
        Eventually::holds(fn(): bool => $this->statistics()['cancelled_total'] === 2, 'both tasks are cancelled');
        self::assertSame([2, 0], [$this->statistics()['submitted_total'], $this->statistics()['waiting']]);
    }

    public function testKillDoesNotKeepTheLoopRunningForTheRetryTimeout(): void
    {
        $redis = $this->engine();
        $executor = $this->executor(brokerRetryTimeout: 60.0);
        self::assertNull($executor->status('none'));
        $redis->kill();
        $call = Async::run(static fn() => $executor->submit('time')->await());
        $this->waitForUnansweredCalls('submit');
        $executor->kill();
        self::assertEnded($call);
        $start = hrtime(true);
        EventLoop::run();

        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
    }

    public function testKillEndsAReaderThatWaitsForTheEngine(): void
    {
        $redis = $this->engine();
        $this->agentAt($redis->url(), $this->queue());
        $executor = $this->executor();
        $items = $executor->submit(static function (): \Generator {
            yield 1;
            delay(60);
        })->await();
        $redis->kill();
        $reader = Async::run(static fn(): array => iterator_to_array($items));
        $this->waitForUnansweredCalls('takeItems');
        $executor->kill();
        self::assertEnded($reader);
        $redis->restart();
    }

    public function testCloseSendsCancellationsWhenTheEngineIsBack(): void
    {
        $executor = $this->executorWithUnsentCancellations();
        $closing = Async::run($executor->close(...));
        $this->waitForUnansweredCalls('cancel');
        self::assertFalse($closing->isComplete());
        $this->engine()->restart();
        $closing->await();

        self::assertSame(0, $this->statistics()['waiting']);
    }

    public function testCloseWaitsForAnEngineAtMostForTheRetryTimeout(): void
    {
        $executor = $this->executorWithUnsentCancellations(1.0);
        $start = hrtime(true);
        $executor->close();
        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
        $start = hrtime(true);
        EventLoop::run();

        self::assertLessThan(2.0, (hrtime(true) - $start) / 1e9, 'Nothing keeps the loop running');
    }

    public function testCloseWaitsAtMostASecondUntilReceivedOutcomesAreDropped(): void
    {
        $redis = $this->engine();
        $this->agentAt($redis->url(), $this->queue());
        $executor = $this->executor();
        self::assertSame(7, $executor->submit(static fn(): int => 7)->await());
        posix_kill((int) $redis->pid(), \SIGSTOP);
        $start = hrtime(true);
        $executor->close();
        $seconds = (hrtime(true) - $start) / 1e9;
        posix_kill((int) $redis->pid(), \SIGCONT);
        self::assertLessThan(3.0, $seconds);
        $outcomes = "spindle:{{$this->queue()}}:result:*";
        Eventually::holds(static fn(): bool => $redis->command('KEYS', $outcomes) === [], 'the outcome is dropped');
    }

    public function testAProcessWithManyBrokersEndsInASecond(): void
    {
        $redis = $this->engine();
        $process = Host::start(Callers::class . '::dropOutcomesOfManyBrokers', [$redis->socketUrl(), $redis->pid()]);
        Eventually::holds(static fn(): bool => str_contains($process->getOutput(), 'ends'), 'the process ends', 30.0);
        $start = hrtime(true);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 60.0);
        $seconds = (hrtime(true) - $start) / 1e9;
        posix_kill((int) $redis->pid(), \SIGCONT);

        self::assertLessThan(8.0, $seconds);
    }

    public function testKillEndsTheWaitForAnEngine(): void
    {
        $executor = $this->executorWithUnsentCancellations();
        $closing = Async::run($executor->close(...));
        $this->waitForUnansweredCalls('cancel');
        $executor->kill();
        $start = hrtime(true);
        $closing->await();
        self::assertLessThan(0.2, (hrtime(true) - $start) / 1e9);
    }

    public function testACancellationEndsTheWaitForAnEngine(): void
    {
        $executor = $this->executorWithUnsentCancellations();
        $start = hrtime(true);
        self::thrown(CancelledException::class, static fn() => $executor->close(new TimeoutCancellation(0.1)));
        self::assertLessThan(1.5, (hrtime(true) - $start) / 1e9);
    }

    /** Returns an executor whose loop was cancelled while the engine was not available, and is over. */
    private function executorWithUnsentCancellations(float $brokerRetryTimeout = 2.0): RemoteExecutor
    {
        $redis = $this->engine();
        $executor = $this->executor(brokerRetryTimeout: $brokerRetryTimeout);
        $cancellation = new DeferredCancellation();
        $loop = Async::run(
            static fn(): array => iterator_to_array($executor->map([1, 2], abs(...), $cancellation->getCancellation())),
        );
        Eventually::holds(fn(): bool => $this->statistics()['waiting'] === 2, 'the tasks wait');
        $redis->kill();
        $cancellation->cancel();
        self::thrown(CancelledException::class, static fn() => $loop->await());
        return $executor;
    }

    /** @param Future<mixed> $call */
    private static function assertEnded(Future $call): void
    {
        self::thrown(ExecutorClosedException::class, static fn() => $call->await(new TimeoutCancellation(5.0)));
    }
}
