<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Internal\FrameKind;
use Spindle\Remote\Internal\JobBody;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\Job;
use Spindle\Remote\JobConflictException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\Unit\Remote\RecordedLog;
use Spindle\Worker\RetryLaterException;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerPoolOptions;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

/** Tasks that outlive the process that dispatched them. */
final class DispatchedTasksTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;
    use RunsAgents;

    private string $queue = '';

    public function testAnotherProcessHasTheOutcomeByTheId(): void
    {
        $id = $this->executor()->dispatch(static fn(): int => 42);
        $this->agent($this->queue);

        self::assertSame(42, $this->executor()->attach($id)->await());
        self::assertSame(42, $this->executor()->attach($id)->await(), 'it is kept');
    }

    public function testSeveralMayWaitForOneTask(): void
    {
        $executor = $this->executor();
        $id = $executor->dispatch(static fn(): int => 42);
        $futures = [$executor->attach($id), $executor->attach($id), $this->executor()->attach($id)];
        $this->agent($this->queue);

        self::assertEquals([42, 42, 42], await($futures));
    }

    public function testTheSameTaskOfAnIdIsAcceptedAndRunsOnce(): void
    {
        $gate = new Gate($this->path('gate'));
        $task = static fn(): string => $gate->say(uniqid('', true));
        $file = $this->path('keys');
        file_put_contents($file, 'the next key of tests, the next key' . "\n" . AgentProgram::KEY);
        chmod($file, 0o600);
        $executor = $this->executor();
        $rotated = new RemoteExecutor(
            new RedisBroker(Redis::shared()->url()),
            $this->queue,
            SigningKeys::fromFile($file),
        );
        foreach ([$executor, $rotated, $this->executor()] as $executor) {
            self::assertSame('order-7', $executor->dispatch($task, id: 'order-7'));
        }
        $this->agent($this->queue);
        $this->executor()->attach('order-7')->await();
        foreach ([$this->executor(), $rotated] as $executor) {
            $id = $executor->dispatch($task, id: 'order-7', exclusiveKey: 'customer 7', delay: 60.0);
            self::assertSame('order-7', $id);
        }
        $this->executor()->submit(static fn(): int => 1)->await();

        self::assertCount(1, $gate->names());
    }

    public function testADifferentTaskWithAKnownIdIsRefusedInAnyStateOfTheFirst(): void
    {
        $executor = $this->executor(JobRetryPolicy::none());
        $executor->dispatch(static fn(): int => 1, id: '7');
        $executor->dispatch(static fn() => throw new \DomainException('bad'), id: '8');
        $refused = static function () use ($executor): array {
            $ids = [];
            foreach (['7', '8'] as $id) {
                try {
                    $executor->dispatch(static fn(): int => 2, id: $id);
                } catch (JobConflictException $conflict) {
                    self::assertStringContainsString("a different task with the id {$id},", $conflict->getMessage());
                    $ids[] = $conflict->id;
                }
            }

            return $ids;
        };
        $other = async($executor->dispatch(...), static fn(): int => 3, 'another');
        self::assertSame(['7', '8'], $refused());
        self::assertSame('another', $other->await(), 'it went with them');
        $this->agent($this->queue);
        self::assertSame(1, $executor->attach('7')->await());
        $executor->attach('8')->ignore();
        Eventually::holds(static fn(): bool => $executor->status('8') === JobStatus::Dead, 'it is dead', 20.0);

        self::assertSame(['7', '8'], $refused());
        self::assertSame(3, $executor->attach('another')->await());
    }

    public function testARefusedClosureIsExplainedByAChangeOfItsFile(): void
    {
        $executor = $this->executor();
        $executor->dispatch(static fn(): int => 1, 'order-7');
        $executor->dispatch('getmypid', 'order-8');
        $messages = [];
        $line = __LINE__ + 1;
        foreach (['order-7' => static fn(): int => 1, 'order-8' => 'time'] as $id => $task) {
            try {
                $executor->dispatch($task, $id);
            } catch (JobConflictException $conflict) {
                $messages[] = $conflict->getMessage();
                self::assertSame($id, $conflict->id);
            }
        }

        self::assertCount(2, $messages);
        self::assertStringEndsWith(
            'The task is a closure at ' . __FILE__ . ":{$line}. A closure is a different task when its "
                . 'file has changed, for example by a deployment. '
                . 'To dispatch a task with the same id after a deployment, use a function, a static '
                . 'method or an invokable object.',
            $messages[0],
        );
        self::assertStringNotContainsString('closure', $messages[1]);
    }

    public function testOneIdInTwoQueuesIsTwoTasks(): void
    {
        $gate = new Gate($this->path('gate'));
        $broker = new RedisBroker(Redis::shared()->url());
        $reports = [];
        $options = new RemoteOptions(onReport: static function (mixed $report) use (&$reports): void {
            $reports[] = $report;
        });
        [$mailQueue, $billQueue] = [self::newQueue(), self::newQueue()];
        $mails = new RemoteExecutor($broker, $mailQueue, self::keys());
        $bills = new RemoteExecutor($broker, $billQueue, self::keys(), options: $options);
        foreach (['order-7', 'order-8'] as $id) {
            $bills->dispatch(static fn(): string => $gate->pass("bill of {$id}"), $id);
        }
        $mails->dispatch(static function (): string {
            TaskContext::current()->report('mail');

            return 'mail';
        }, 'order-7');
        $mails->dispatch(static function (): \Generator {
            yield 'mail';
        }, 'order-8');
        $bill = array_map($bills->attach(...), ['order-7', 'order-8']);
        $mail = array_map($mails->attach(...), ['order-7', 'order-8']);
        $this->agent($billQueue);
        $this->agent($mailQueue);
        $gate->awaitTasks(2);
        self::assertSame('mail', $mail[0]->await());
        $items = $mail[1]->await();
        self::assertInstanceOf(\Generator::class, $items);
        self::assertSame(['mail'], iterator_to_array($items));
        $gate->open();

        self::assertEquals(['bill of order-7', 'bill of order-8'], await($bill));
        self::assertSame([], $reports);
    }

    public function testATaskReadsItsAttemptAndAKeyThatIsTheSameForEachAttempt(): void
    {
        $gate = new Gate($this->path('gate'));
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 3, delay: 0.01));
        $this->agent($this->queue);
        $id = $executor->dispatch(static function () use ($gate): string {
            $context = TaskContext::current();
            $gate->say("{$context->attempt} {$context->idempotencyKey}");

            return $context->attempt === 3 ? 'done' : throw new \DomainException('not yet');
        });

        self::assertSame('done', $executor->attach($id)->await());
        self::assertSame(["1 {$id}", "2 {$id}", "3 {$id}"], $gate->names());
    }

    public function testATaskThatAsksForItRunsAgainLaterWithoutUsingAnAttempt(): void
    {
        $gate = new Gate($this->path('gate'));
        $executor = $this->executor(JobRetryPolicy::none());
        $this->agent($this->queue);
        $id = $executor->dispatch(static function () use ($gate): string {
            $gate->say(hrtime(true) . ' ' . TaskContext::current()->attempt);

            return \count($gate->names()) === 3 ? 'done' : throw new RetryLaterException(0.1, 'the lock is taken');
        }, exclusiveKey: 'customer 5');

        self::assertSame('done', $executor->attach($id)->await());
        $runs = array_map(static fn(string $run): array => explode(' ', $run), $gate->names());
        self::assertSame(['1', '1', '1'], array_column($runs, 1));
        self::assertGreaterThan(0.1, ((int) $runs[1][0] - (int) $runs[0][0]) / 1e9);
        $statistics = (new RedisBroker(Redis::shared()->url()))->statistics($this->queue);
        self::assertSame([2, 0, 1], [
            $statistics['postponed_total'],
            $statistics['retried_total'],
            $statistics['done_total'],
        ]);
    }

    public function testAGeneratorThatHasYieldedIsNotRunAgainLater(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue);
        $items = $executor->submit(static function (): \Generator {
            yield 'item';

            throw new RetryLaterException(0.0);
        })->await();

        $this->expectException(TaskFailedException::class);
        $this->expectExceptionMessage('The task asked to run again in 0 s');
        iterator_to_array($items);
    }

    public function testARetryWithoutADelayRunsAfterTheJobsThatWait(): void
    {
        $gate = new Gate($this->path('gate'));
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 2, delay: 0.0));
        $executor->dispatch(static function () use ($gate): never {
            $gate->say(hrtime(true) . ' bad');

            throw new \DomainException('never');
        });
        $ids = [];
        for ($i = 0; $i < 20; ++$i) {
            $ids[] = $executor->dispatch(static function () use ($gate): void {
                usleep(10_000);
                $gate->say(hrtime(true) . ' good');
            });
        }
        $this->agent($this->queue, 1);
        await(array_map($executor->attach(...), $ids));
        Eventually::holds(static fn(): bool => \count($gate->names()) === 22, 'all have run', 20.0);

        $names = array_map(static fn(string $name): string => explode(' ', $name)[1], $gate->names());
        self::assertSame(['bad', ...array_fill(0, 20, 'good'), 'bad'], $names);
    }

    public function testTasksOfOneKeyNeverRunAtTheSameTime(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue, 3);
        $directory = $this->path('key');
        mkdir($directory);
        $ids = [];
        for ($i = 0; $i < 6; ++$i) {
            $ids[] = $executor->dispatch(static function () use ($directory): bool {
                $isAlone = mkdir("{$directory}/busy");
                usleep(20_000);

                return $isAlone && rmdir("{$directory}/busy");
            }, exclusiveKey: 'customer 5');
        }

        self::assertSame(array_fill(0, 6, true), await(array_map($executor->attach(...), $ids)));
    }

    public function testADelayIsWaitedForByTheEnginesClock(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue);
        $before = microtime(true);
        $at = $executor->attach($executor->dispatch(static fn(): float => microtime(true), delay: 0.5))->await();

        self::assertIsFloat($at);
        self::assertGreaterThan($before + 0.45, $at);
    }

    public function testAnUnknownIdIsReported(): void
    {
        $this->expectException(JobLostException::class);
        $this->expectExceptionMessageMatches(
            '/does not have the job nobody .+ If the job has failed, spindle queue show \S+ nobody shows /',
        );
        $this->executor()->attach('nobody')->await();
    }

    public function testAnInvalidIdIsRefusedAndDisturbsNoOtherCall(): void
    {
        $executor = $this->executor();
        $other = $executor->attach($executor->dispatch(static fn(): int => 1));
        $refused = 0;
        foreach (['', 'two words', str_repeat('x', 300)] as $id) {
            try {
                $executor->attach($id);
            } catch (\ValueError $error) {
                self::assertStringContainsString('The id of a job must have', $error->getMessage());
                ++$refused;
            }
        }
        $this->agent($this->queue);

        self::assertSame([3, 1], [$refused, $other->await()]);
    }

    public function testAFailureReachesEachCallerThatAttaches(): void
    {
        $executor = $this->executor(JobRetryPolicy::none());
        $id = $executor->dispatch(static fn() => throw new \DomainException('bad'));
        $this->agent($this->queue);

        $this->expectException(TaskFailedException::class);
        $this->expectExceptionMessage('bad');
        $executor->attach($id)->await();
    }

    public function testAQueueRefusesTheNewestWhenItIsFull(): void
    {
        $executor = $this->executor(options: new RemoteOptions(maxJobs: 2));
        $executor->dispatch(static fn(): int => 1);
        $executor->dispatch(static fn(): int => 2);
        $refused = 0;
        foreach ([$executor->dispatch(...), $executor->submit(...)] as $another) {
            try {
                $another([Number::class, 'answer']);
            } catch (QueueFullException $full) {
                self::assertStringContainsString("{$this->queue} was full: it had 2 jobs", $full->getMessage());
                ++$refused;
            }
        }

        self::assertSame(2, $refused);
    }

    public function testALoopWaitsForRoomInAQueueThatIsFull(): void
    {
        $executor = $this->executor(options: new RemoteOptions(maxJobs: 5));
        $this->agent($this->queue);

        self::assertSame(5050, array_sum(iterator_to_array($executor->map(range(1, 100), abs(...)), false)));
    }

    public function testALoopThatIsCancelledWhileTheQueueIsFullEnds(): void
    {
        $executor = $this->executor(options: new RemoteOptions(maxJobs: 1));
        $cancellation = new DeferredCancellation();
        EventLoop::delay(0.3, static fn() => $cancellation->cancel());
        $more = new DeferredFuture();
        $input = (static function () use ($more): \Generator {
            yield from [1, 2, 3];
            $more->getFuture()->await();
        })();
        $cancelled = null;
        try {
            iterator_to_array($executor->map($input, abs(...), $cancellation->getCancellation()));
        } catch (CancelledException $cancelled) {
        }
        $more->complete();
        delay(0); // the input ends

        self::assertNotNull($cancelled);
    }

    public function testJobsThatAStoppingAgentReceivesAreGivenBack(): void
    {
        $executor = $this->executor();
        $file = $this->path('ran');
        for ($i = 0; $i < 3; ++$i) {
            $executor->dispatch(static fn(): bool => touch($file));
        }
        /** @var Agent|null $agent */
        $agent = null;
        $logger = self::createStub(LoggerInterface::class);
        $logger->method('log')->willReturnCallback(static function () use (&$agent): void {
            EventLoop::defer(static fn() => $agent?->close()); // the first claim is under way
        });
        $broker = new RedisBroker(Redis::shared()->url());
        $agent = new Agent($broker, $this->queue, 2, self::keys(), logger: $logger);
        $agent->run();

        $statistics = $broker->statistics($this->queue);
        self::assertSame([3, 2, 0], [$statistics['waiting'], $statistics['released_total'], $statistics['done_total']]);
        self::assertFileDoesNotExist($file);
    }

    public function testASignedFrameThatCanNotBeReadIsADeadLetterAndTheAgentGoesOn(): void
    {
        $executor = $this->executor();
        $broker = new RedisBroker(Redis::shared()->url());
        foreach (['short', JobBody::head(JobRetryPolicy::none(), null, 'code')] as $i => $body) {
            $broker->submit(
                $this->queue,
                [new Job("odd-{$i}", self::keys()->seal(FrameKind::Job, $this->queue, "odd-{$i}", 0, $body))],
                100,
                '',
                false,
            );
        }
        $this->agent($this->queue);

        self::assertSame(1, $executor->submit(static fn(): int => 1)->await());
        Eventually::holds(
            fn(): bool => $broker->statistics($this->queue)['dead'] === 2,
            'no other agent can read them',
            20.0,
        );
        $this->expectException(InvalidSignatureException::class);
        $this->expectExceptionMessage('Was it submitted by another version of Spindle?');
        $executor->attach('odd-1')->await();
    }

    public function testTheNumberOfAnOrderIsAnIdAndItsTaskIsFoundByIt(): void
    {
        $executor = $this->executor();
        self::assertNull($executor->status('20260112'));
        self::assertSame(
            '20260112',
            $executor->dispatch(static fn(): ?string => TaskContext::current()->idempotencyKey, id: '20260112'),
        );
        self::assertSame(JobStatus::Waiting, $executor->status('20260112'));
        $this->agent($this->queue);

        self::assertSame('20260112', $executor->attach('20260112')->await());
        self::assertSame(JobStatus::Done, $executor->status('20260112'));
    }

    public function testAProcessThatEndsWhileItSubmitsEndsAsItShould(): void
    {
        self::assertTrue(Host::call(self::class . '::endWhileItSubmits'));
    }

    /** @internal */
    public static function endWhileItSubmits(): bool
    {
        $redis = TemporaryRedis::start();
        $executor = new RemoteExecutor(new RedisBroker($redis->url()), 'queue', self::keys());
        $executor->dispatch(static fn(): int => 1);
        posix_kill((int) $redis->pid(), \SIGSTOP);
        $future = Async::run(static fn(): Future => $executor->submit([Number::class, 'answer']));
        // with unread bytes
        $received = \sprintf('/:%04X [0-9A-F]+:[0-9A-F]{4} 01 [0-9A-F]{8}:0*[1-9A-F]/', $redis->port);
        $isSent = static fn(): bool => preg_match($received, (string) file_get_contents('/proc/net/tcp')) === 1;
        Eventually::holds($isSent, 'the engine has received the task');
        posix_kill((int) $redis->pid(), \SIGCONT);

        return !$future->isComplete();
    }

    public function testAResultThatIsTooLargeIsNotCutButRefused(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue);
        $result = $executor->submit(static fn(): string => str_repeat('x', 16 << 20))->await();
        self::assertTrue($result === str_repeat('x', 16 << 20), 'a result may have as many bytes as the limit');
        $this->expectException(ResultTooLargeException::class);
        $this->expectExceptionMessage('has 16777217 bytes. The limit of its agent is 16777216');
        $executor->submit(static fn(): string => str_repeat('x', (16 << 20) + 1))->await();
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testMapOutcomesContinueAfterAResultThatIsTooLarge(bool $inOrder): void
    {
        $executor = $this->executor();
        $options = new AgentOptions(maxResultBytes: 1000);
        $agent = new Agent(new RedisBroker(Redis::shared()->url()), $this->queue, 1, self::keys(), $options);
        $running = async($agent->run(...));
        $task = static fn(int $bytes): string => str_repeat('x', $bytes);
        try {
            $outcomes = $inOrder
                ? $executor->mapOutcomes([1000, 1001, 0, 100_000], $task, new TimeoutCancellation(10))
                : $executor->mapOutcomesUnordered([1000, 1001, 0, 100_000], $task, new TimeoutCancellation(10));
            $seen = [];
            foreach ($outcomes as $key => $outcome) {
                $seen[$key] = $outcome->succeeded() ? \strlen($outcome->value()) : $outcome->failure;
            }
        } finally {
            $agent->close();
            $running->await();
        }
        ksort($seen);
        self::assertSame([0, 1, 2, 3], array_keys($seen));
        self::assertSame([1000, 0], [$seen[0], $seen[2]]);
        self::assertInstanceOf(ResultTooLargeException::class, $seen[1]);
        self::assertInstanceOf(ResultTooLargeException::class, $seen[3]);
    }

    public function testAResultThatIsTooLargeForTheAgentsPoolIsTheTasksOutcome(): void
    {
        $executor = $this->executor();
        $options = new AgentOptions(pool: new WorkerPoolOptions(maxResultBytes: 100_000));
        $agent = new Agent(new RedisBroker(Redis::shared()->url()), $this->queue, 1, self::keys(), $options);
        $running = async($agent->run(...));
        try {
            $executor->submit(static fn(): string => str_repeat('x', 1 << 20))->await(new TimeoutCancellation(10));
            self::fail('It arrived');
        } catch (ResultTooLargeException $refused) {
            self::assertStringContainsString('The limit of its agent is 100000', $refused->getMessage());
        } finally {
            $agent->close();
            $running->await();
        }
    }

    #[TestWith([1])]
    #[TestWith([100_000])]
    public function testAnExceptionThatIsLargerThanAResultIsShortenedAndRetried(int $maxResultBytes): void
    {
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 2, delay: 0.01));
        $options = new AgentOptions(maxResultBytes: $maxResultBytes);
        $agent = new Agent(new RedisBroker(Redis::shared()->url()), $this->queue, 1, self::keys(), $options);
        $running = async($agent->run(...));
        $id = $executor->dispatch(static function (): never {
            $attempt = TaskContext::current()->attempt;

            throw new \DomainException("no disk at attempt {$attempt}: " . str_repeat('x', 1 << 20), 7);
        });
        $line = __LINE__ - 2;
        try {
            $executor->attach($id)->await(new TimeoutCancellation(10));
            self::fail('It failed');
        } catch (TaskFailedException $failed) {
            $thrown = $failed->thrown;
            self::assertSame(
                [\DomainException::class, 7, __FILE__, $line, 2],
                [$thrown->class, $thrown->code, $thrown->file, $thrown->line, $failed->attempts],
            );
            self::assertStringStartsWith('no disk at attempt 2: xxx', $thrown->message);
        } finally {
            $agent->close();
            $running->await();
        }
        $dead = (new RedisBroker(Redis::shared()->url()))->listJobs($this->queue, JobStatus::Dead, 1, $id)[$id];
        $name = 'closure at ' . __FILE__ . ':' . $line - 3;
        self::assertStringStartsWith("{$name}: DomainException: no disk at attempt 2: xxx", (string) $dead['reason']);
    }

    #[TestWith(["no\nstock", 'no'])]
    #[TestWith(['no stock.', 'no stock.'])]
    #[TestWith(['', 'no message'])]
    public function testTheLogOfTheAgentHasThePlaceOfAnException(string $message, string $logged): void
    {
        $executor = $this->executor(new JobRetryPolicy(maxAttempts: 2, delay: 0.01));
        $log = new RecordedLog();
        $agent = new Agent(new RedisBroker(Redis::shared()->url()), $this->queue, 1, self::keys(), logger: $log);
        $running = async($agent->run(...));
        $id = $executor->dispatch(static fn(): never => throw new \DomainException($message));
        $place = __FILE__ . ':' . __LINE__ - 1;
        $executor->attach($id)->catch(static fn(\Throwable $failure): null => null)->await(new TimeoutCancellation(10));
        $agent->close();
        $running->await();
        $lines = $log->lines('warning');

        self::assertCount(2, $lines);
        $reason = "closure at {$place}: DomainException: {$logged} ({$place})";
        self::assertStringContainsString("failed: {$reason}. The job is tried", $lines[0]);
        self::assertStringContainsString("{$reason}. The job is a dead letter now", $lines[1]);
    }

    public function testADeadLetterHasThePlaceOfTheExceptionAndItsCauses(): void
    {
        $executor = $this->executor(JobRetryPolicy::none());
        $this->agent($this->queue);
        $task = static fn(): never => throw new \DomainException(
            str_repeat('m', 100_000),
            0,
            new class ("no disk\nat all", 0, new \LogicException()) extends \RuntimeException {},
        );
        $line = __LINE__ - 5;
        $id = $executor->dispatch($task);
        $executor->attach($id)->catch(static fn(\Throwable $failure): null => null)->await(new TimeoutCancellation(10));
        $dead = (new RedisBroker(Redis::shared()->url()))->listJobs($this->queue, JobStatus::Dead, 1, $id)[$id];
        $place = static fn(int $line): string => '(' . __FILE__ . ":{$line})";

        self::assertSame(
            [
                'closure at ' . __FILE__ . ":{$line}: DomainException: " . str_repeat('m', 8192) . "… {$place($line)}",
                'caused by RuntimeException@anonymous: no disk',
                "at all {$place($line + 3)}",
                "caused by LogicException: no message {$place($line + 3)}",
            ],
            \array_slice(explode("\n", (string) $dead['reason']), 0, 4),
        );
        self::assertStringContainsString("\n#0 ", (string) $dead['reason']);
    }

    public function testADeadLetterOfALongChainOfExceptionsHasTheTrace(): void
    {
        $executor = $this->executor(JobRetryPolicy::none());
        $this->agent($this->queue);
        $id = $executor->dispatch(static function (): never {
            $thrown = new \DomainException('the first');
            for ($i = 1; $i <= 20; ++$i) {
                $thrown = new \DomainException("exception {$i}: " . str_repeat('m', 10_000), 0, $thrown);
            }

            throw $thrown;
        });
        $executor->attach($id)->catch(static fn(\Throwable $failure): null => null)->await(new TimeoutCancellation(10));
        $dead = (new RedisBroker(Redis::shared()->url()))->listJobs($this->queue, JobStatus::Dead, 1, $id)[$id];

        self::assertStringContainsString('caused by DomainException: the first (', (string) $dead['reason']);
        self::assertStringContainsString("\n#0 ", (string) $dead['reason']);
    }

    public function testAnItemThatIsTooLargeComesAfterThoseBeforeIt(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue);
        $items = $executor->submit(static function (): \Generator {
            $bytesAround = \strlen(serialize([0, str_repeat('x', 16 << 20)])) - (16 << 20);
            yield str_repeat('x', (16 << 20) - $bytesAround); // an item with its key has as many bytes as the limit
            yield str_repeat('x', (16 << 20) - $bytesAround + 1);
        })->await();
        self::assertGreaterThan(16_000_000, \strlen($items->current()));
        $this->expectException(ResultTooLargeException::class);
        $this->expectExceptionMessage('has 16777217 bytes. The limit of its agent is 16777216');
        $items->next();
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testALaterReaderHasTheItemsBeforeAnItemOrAReturnValueThatIsTooLarge(bool $isItem): void
    {
        $executor = $this->executor();
        $id = $executor->dispatch(static function () use ($isItem): \Generator {
            yield 'a' => 1;
            yield 'b' => 2;
            $large = str_repeat('x', (16 << 20) + 1);
            if ($isItem) {
                yield $large;
            }

            return $large;
        });
        $this->agent($this->queue);
        Eventually::holds(fn(): bool => $this->statistic('died_total') === 1, 'it is over');
        $items = $this->executor()->attach($id)->await();
        self::assertInstanceOf(\Generator::class, $items);
        $seen = [];
        try {
            foreach ($items as $key => $item) {
                $seen[] = [$key, $item];
            }
            self::fail('The items end with an exception');
        } catch (ResultTooLargeException $tooLarge) {
            self::assertStringContainsString('The limit of its agent is 16777216', $tooLarge->getMessage());
        }
        self::assertEquals([['a', 1], ['b', 2]], $seen);
    }

    /** @return int bytes of all items */
    public static function readLargeItems(string $address, string $queue, string $id): int
    {
        ini_set('memory_limit', '64M');
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, self::keys());
        $items = $executor->attach($id)->await();
        self::assertInstanceOf(\Generator::class, $items);
        $bytes = 0;
        foreach ($items as $item) {
            $bytes += \is_string($item) ? \strlen($item) : 0;
        }

        return $bytes;
    }

    public function testManyLargeItemsFitIntoTheMemoryOfASlowReader(): void
    {
        $id = $this->executor()->dispatch(static function (): \Generator {
            for ($i = 0; $i < 30; ++$i) {
                yield str_repeat('x', 3 << 20);
            }
        });
        $this->agent($this->queue);
        $key = "spindle:{{$this->queue}}:items:{$id}";
        $stored = static function () use ($key): int {
            $length = Redis::shared()->command('XLEN', $key);

            return \is_int($length) ? $length : -1;
        };
        Eventually::holds(static fn(): bool => $stored() === 11, '32 MiB are stored', 20.0);
        Eventually::standsStill($stored, 'the task waits');
        self::assertSame(11, $stored());
        $arguments = [Redis::shared()->url(), $this->queue, $id];

        self::assertSame(30 * (3 << 20), Host::call(self::class . '::readLargeItems', $arguments));
    }

    public function testTheItemsOfAFinishedGeneratorAreKeptForALaterReader(): void
    {
        $executor = $this->executor();
        $id = $executor->dispatch(static function (): \Generator {
            yield 'a' => 1;
            yield 'b' => 2;

            return 'end';
        });
        $this->agent($this->queue);
        Eventually::holds(fn(): bool => $this->statistic('done_total') === 1, 'it is over');
        $items = $this->executor()->attach($id)->await();
        self::assertInstanceOf(\Generator::class, $items);

        self::assertSame(['a' => 1, 'b' => 2], iterator_to_array($items));
        self::assertSame('end', $items->getReturn());
    }

    public function testACallerThatDropsTheItemsDoesNotDisturbTheReader(): void
    {
        $executor = $this->executor();
        $id = $executor->dispatch(static fn(): \Generator => yield from range(1, 100));
        $future = $executor->attach($id);
        $this->agent($this->queue);
        $items = $future->await();
        self::assertInstanceOf(\Generator::class, $items);
        self::assertSame(1, $items->current());
        $other = $this->executor();
        self::assertInstanceOf(\Generator::class, $other->attach($id)->await());
        self::assertSame(3, $other->submit(static fn(): int => 3)->await()); // earlier requests are answered

        self::assertSame(range(1, 100), iterator_to_array($items, false));
    }

    /** @param 'throws'|'dies' $how */
    #[TestWith(['throws'])]
    #[TestWith(['dies'])]
    public function testAGeneratorThatFailsBeforeItsFirstItemIsTriedAgain(string $how): void
    {
        $future = $this->executor(new JobRetryPolicy(delay: 0.05))->submit(static function () use ($how): \Generator {
            $attempt = TaskContext::current()->attempt;
            if ($attempt === 1) {
                usleep(100_000); // the caller learns that the task is a generator
                $how === 'throws' ? throw new \RuntimeException('first') : posix_kill((int) getmypid(), \SIGKILL);
            }
            yield $attempt;
        });
        $this->agent($this->queue);

        self::assertSame([2], iterator_to_array($future->await()));
    }

    public function testOnlyOneReaderGetsTheItemsAndTheOthersFail(): void
    {
        $executor = $this->executor();
        $id = $executor->dispatch(static fn(): \Generator => yield from range(1, 100));
        $first = $executor->attach($id);
        $second = $executor->attach($id);
        $this->agent($this->queue);
        $items = $first->await();
        self::assertInstanceOf(\Generator::class, $items);
        for ($i = 0; $i < 40; ++$i) {
            $items->next();
        }
        self::assertItemsAreGone($this->executor()->attach($id)->await());
        $rest = [];
        for (; $items->valid(); $items->next()) {
            $rest[] = $items->current();
        }
        self::assertSame(range(41, 100), $rest);

        self::assertItemsAreGone($second->await());
    }

    public function testLostItemsAreReported(): void
    {
        $gate = new Gate($this->path('gate'));
        $executor = $this->executor();
        $future = $executor->submit(static function () use ($gate): \Generator {
            yield 1;
            $gate->pass(); // until the first item was read alone
            yield from range(2, 30);
        });
        $this->agent($this->queue);
        $items = $future->await();
        self::assertSame(1, $items->current());
        $gate->open();
        Eventually::holds(fn(): bool => $this->statistic('done_total') === 1, 'it is over');
        foreach ((array) Redis::shared()->command('KEYS', "spindle:{{$this->queue}}:items:*") as $key) {
            Redis::shared()->command('DEL', \is_string($key) ? $key : '');
        }

        self::assertItemsAreGone($items);
    }

    public function testAGeneratorWithoutAReaderEndsAndFreesItsWorker(): void
    {
        $executor = $this->executor();
        $id = $executor->dispatch(static fn(): \Generator => yield from range(1, 100));
        $after = $executor->dispatch(static fn(): int => 42);
        $options = new AgentOptions(outcomeRetention: 1.0);
        $agent = new Agent(new RedisBroker(Redis::shared()->url()), $this->queue, 1, self::keys(), $options);
        $running = async($agent->run(...));

        self::assertSame(42, $executor->attach($after)->await());
        self::assertSame([1, 1], [$this->statistic('cancelled_total'), $this->statistic('done_total')]);
        $agent->close();
        $running->await();
        $this->expectException(CancelledException::class);
        $executor->attach($id)->await();
    }

    public function testALargePayloadIsRefusedBeforeItIsSent(): void
    {
        $executor = $this->executor(options: new RemoteOptions(maxPayloadBytes: 1000));
        $text = str_repeat('x', 1000);
        $tooLarge = self::thrown(
            PayloadTooLargeException::class,
            static fn() => $executor->dispatch(static fn(): int => \strlen($text)),
        );
        self::assertStringContainsString('The limit is 1000 ', $tooLarge->getMessage());
        Eventually::holds(
            fn(): bool => (new RedisBroker(Redis::shared()->url()))->statistics($this->queue)['waiting'] === 0,
            'nothing is there',
        );
    }

    /** @param array<string> $input where x stands for a large value */
    #[TestWith([['a' => '', 'größe' => 'x'], 'for "größe" with'])]
    #[TestWith([['', 'x'], 'for 1 with'])]
    public function testALargePayloadOfAMapIsNamedByItsKey(array $input, string $named): void
    {
        $executor = $this->executor(options: new RemoteOptions(maxPayloadBytes: 1000));
        $input = array_map(static fn(string $text): string => str_repeat($text, 1000), $input);
        $this->expectException(PayloadTooLargeException::class);
        $this->expectExceptionMessage("The task {$named} its argument");
        $this->agent($this->queue);

        iterator_to_array($executor->map($input, strlen(...), new TimeoutCancellation(10)));
    }

    private function statistic(string $name): int
    {
        return (new RedisBroker(Redis::shared()->url()))->statistics($this->queue)[$name];
    }

    private static function assertItemsAreGone(mixed $items): void
    {
        self::assertInstanceOf(\Generator::class, $items);
        $lost = self::thrown(JobLostException::class, static fn() => iterator_to_array($items, false));
        self::assertStringContainsString('are missing', $lost->getMessage());
    }

    private function executor(
        JobRetryPolicy $retries = new JobRetryPolicy(),
        RemoteOptions $options = new RemoteOptions(),
    ): RemoteExecutor {
        $this->queue = $this->queue === '' ? self::newQueue() : $this->queue;

        return new RemoteExecutor(
            new RedisBroker(Redis::shared()->url()),
            $this->queue,
            self::keys(),
            $retries,
            $options,
        );
    }
}
