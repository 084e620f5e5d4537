<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\MockObject\Stub;
use Psr\Log\NullLogger;
use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;
use Spindle\LauncherException;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentClosedException;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\ClaimResult;
use Spindle\Remote\Delivery;
use Spindle\Remote\Internal\AgentPools;
use Spindle\Remote\Internal\ClaimedJob;
use Spindle\Remote\Internal\EngineState;
use Spindle\Remote\Internal\FailedJobLog;
use Spindle\Remote\Internal\JobBody;
use Spindle\Remote\Internal\SettlementFactory;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\Job;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Eventually;
use Spindle\Tests\ReadsErrorLog;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\VirtualTime;
use Spindle\Worker\Executor;
use Spindle\Worker\PortableOutcome;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\RetryLaterException;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerCrashedException;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

/** An agent in virtual time, with an in-memory broker whose answers may be late and a pool whose tasks only wait. */
final class AgentTest extends TidyTestCase
{
    use CatchesThrown;
    use ReadsErrorLog;
    use VirtualTime;

    private int $started = 0;

    /** Seconds that each task takes. */
    private float $duration = 5.0;

    /** Seconds that each repair of the queue takes. */
    private float $repairDuration = 0.0;

    /** Seconds until the answer to the next renewal of the lease arrives. */
    private float $renewalDuration = 0.0;

    /** Seconds that the engine needs to store an item of {@see serveItems()}. */
    private float $putDuration = 0.0;

    /** Whether the engine's memory is full, so that it stores no items. */
    private bool $isFull = false;

    /** Whether the engine refuses requests. */
    private bool $isRefused = false;

    private bool $isUnavailable = false;

    /** The engine's answer to the next question of {@see serveItems()} whether a reader wants items after an item. */
    private ?\Throwable $checkFailure = null;

    public function testAnAgentKeepsAJobThatTakesLongerThanItsLease(): void
    {
        $this->duration = 600.0;
        $begin = $this->now();
        $this->serve(static function (): void {}, static function (RemoteExecutor $executor): void {
            $executor->submit(static fn(): int => 1)->await();
        });

        self::assertSame(1, $this->started);
        self::assertEqualsWithDelta(600.0, $this->now() - $begin, 5.0);
    }

    public function testAnAgentRenewsItsLeaseDuringALongRepairOfTheQueue(): void
    {
        $this->duration = 100.0;
        $this->repairDuration = 30.0;
        $this->serve(static function (): void {}, function (RemoteExecutor $executor): void {
            $executor->submit(static fn(): int => 1)->await();
            $this->repairDuration = 0.0;
            delay(30.0); // until the last repair has ended
        });

        self::assertSame(1, $this->started);
    }

    public function testAnAgentThatIsStoppedUntilItsLeaseIsNearlyOverStartsNothingMore(): void
    {
        $stops = 0;
        $this->serve(function (ClaimResult $claim) use (&$stops): void {
            if ($claim->deliveries !== [] && ++$stops === 1) {
                $this->freeze(8.0); // the lease has 10 s, the last 3 s of which are the lease margin
            }
        }, function (RemoteExecutor $executor): void {
            $executor->submit(static fn(): int => 1)->await();
        });

        self::assertSame([2, 1], [$stops, $this->started], 'the job starts under the second lease only');
    }

    public function testJobsThatArriveWhenTheLeaseIsNearlyOverStartSoonAfterItsRenewal(): void
    {
        $this->renewalDuration = 6.2; // sent after 0.9 s. The margin of the first lease begins after 7 s
        $begin = $this->now();
        $this->serve(static function (ClaimResult $claim): void {
            if ($claim->deliveries !== []) {
                delay(7.05);
            }
        }, static function (RemoteExecutor $executor): void {
            // Two jobs are as many as the agent claims.
            $jobs = $executor->mapUnordered([1, 2], static fn(int $number): int => $number);
            iterator_to_array($jobs, false);
        }, options: new AgentOptions(heartbeat: 0.9));

        self::assertSame(2, $this->started);
        self::assertEqualsWithDelta(7.2 + 5.0, $this->now() - $begin, 0.5, 'at the first heartbeat after the renewal');
    }

    public function testAnExecutorThatWaitsBeforeItTakesAJobDoesNotDelayTheRenewalOfTheLease(): void
    {
        $this->renewalDuration = 0.01;
        $fast = $this->pool();
        $slow = self::createStub(Executor::class);
        $submit = static function (callable $task, Cancellation $cancellation) use ($fast): Future {
            delay(4.0);

            return $fast->submit($task, $cancellation);
        };
        $slow->method('submit')->willReturnCallback($submit);
        $isRenewed = false;
        $this->serve(static function (): void {}, function (RemoteExecutor $executor) use (&$isRenewed): void {
            EventLoop::delay(1.5, function () use (&$isRenewed): void {
                $isRenewed = $this->renewalDuration === 0.0;
            });
            iterator_to_array($executor->mapUnordered([1, 2], static fn(int $number): int => $number), false);
        }, $slow, new AgentOptions(heartbeat: 0.9));

        self::assertTrue($isRenewed, 'at the first heartbeat');
    }

    public function testJobsOfALostLeaseAreNotCountedAsCancelled(): void
    {
        $engine = new MemoryEngine();
        $memory = new MemoryBroker($engine);
        $owner = '';
        $broker = self::brokerLike($memory, 'openMailbox');
        $broker->method('openMailbox')->willReturnCallback(
            static function (string $name, \Closure $onMessage, \Closure $onOpen) use ($memory, &$owner): \Closure {
                $owner = $name;

                return $memory->openMailbox($name, $onMessage, $onOpen);
            },
        );
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 2, $keys, createPool: fn(): Executor => $this->pool());
        (new RemoteExecutor($memory, 'queue', $keys))->dispatch(static fn(): int => 1);
        $ended = async($agent->run(...));
        delay(1.5);
        $memory->releaseLease('queue', $owner);
        delay(30.0);
        $counts = array_map(
            static fn(array $statistics): array => [$statistics['cancelled_total'], $statistics['done_total']],
            [$agent->statistics(), $engine->queue('queue')->statistics()],
        );
        $agent->close();
        $ended->await();

        self::assertSame([2, [0, 1], [0, 1]], [$this->started, ...$counts]);
    }

    public function testDurationsAndWaitsOfJobsAreHistograms(): void
    {
        $this->duration = 0.2;
        $engine = new MemoryEngine();
        $keys = new SigningKeys([AgentProgram::KEY]);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys);
        $executor->dispatch(static fn(): int => 1);
        $executor->dispatch(static fn(): int => 2);
        delay(7.0);
        $agent = new Agent(new MemoryBroker($engine), 'queue', 2, $keys, createPool: fn(): Executor => $this->pool());
        $ended = async($agent->run(...));
        delay(1.0);
        $statistics = $agent->statistics();
        $agent->close();
        $ended->await();

        self::assertEqualsWithDelta(0.4, $statistics['job_duration_seconds_total'], 0.01);
        self::assertEqualsWithDelta(14.0, $statistics['job_wait_seconds_total'], 0.1);
        $counts = array_map(
            static fn(string $name): int|float => $statistics["job_{$name}_total"],
            ['duration_seconds_le_0.1', 'duration_seconds_le_0.5', 'wait_seconds_le_5', 'wait_seconds_le_10'],
        );
        self::assertSame([0, 2, 0, 2], $counts);
        self::assertSame(2, $statistics['job_wait_seconds_le_inf_total']);
    }

    public function testAnAgentThatIsStoppedStartsNoneOfTheJobsThatItGivesBack(): void
    {
        $this->duration = 0.01;
        for ($last = 1; $last <= 12; ++$last) {
            $answers = 0;
            $stop = static function (): void {};
            $engine = $this->serve(static function (ClaimResult $claim) use (&$answers, &$stop, $last): void {
                delay(0.1); // all claimed jobs finish, so the agent raises the number of jobs that it claims
                $answers += (int) ($claim->deliveries !== []);
                if ($answers === $last) {
                    async($stop);
                }
            }, static function (RemoteExecutor $executor, Agent $agent) use (&$stop): void {
                $stop = $agent->close(...);
                for ($i = 0; $i < 200; ++$i) {
                    $executor->dispatch(static fn(): int => 1, delay: 1.0); // so that all can be claimed at once
                }
                delay(20.0);
            }, $this->batchPool());

            self::assertGreaterThanOrEqual($last, $answers);
            self::assertSame(200, $this->started + $engine->queue('queue')->statistics()['waiting'], "answer {$last}");
        }
    }

    public function testAnAgentThatIsStoppedWhileItsPoolIsBeingCreatedStartsNoneOfTheJobsThatItGivesBack(): void
    {
        $engine = new MemoryEngine();
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', new SigningKeys([AgentProgram::KEY]));
        $executor->dispatch(static fn(): int => 1);
        $executor->dispatch(static fn(): int => 1);
        $agent = $this->agent($engine, function () use (&$agent): Executor {
            async(static fn() => $agent?->close());
            delay(1.0);

            return $this->pool();
        });
        $agent->run();

        self::assertSame([1, 1], [$this->started, $engine->queue('queue')->statistics()['waiting']]);
    }

    public function testAnAgentThatIsStoppedGivesBackWhatItsPoolReturnsUnstarted(): void
    {
        $engine = new MemoryEngine();
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', new SigningKeys([AgentProgram::KEY]));
        $executor->dispatch(static fn(): int => 1);
        $submitted = 0;
        $stop = static function (): void {};
        $pool = self::createStub(Executor::class);
        $pool->method('submit')->willReturnCallback(static function () use (&$stop, &$submitted): Future {
            ++$submitted;
            async($stop);

            return async(static function (): never {
                delay(1.0);
                throw new CancelledException();
            });
        });
        $agent = $this->agent($engine, static fn(): Executor => $pool);
        $stop = $agent->close(...);
        async(static function () use ($agent): void {
            delay(5.0);
            $agent->kill(); // ends the test if the job is started again and again
        });
        $agent->run();

        self::assertSame([1, 1], [$submitted, $engine->queue('queue')->statistics()['waiting']]);
    }

    public function testAResultUsesNoMemoryAfterItsAnswerHasArrivedTooLate(): void
    {
        $this->duration = 0.1;
        $isSettled = false;
        $this->serve(function (ClaimResult $claim, MemoryBroker $memory) use (&$isSettled): void {
            if ($this->started === 1 && $claim->deliveries === [] && !$isSettled) {
                $isSettled = true;
                $memory->cut();
                delay(9.0); // the lease has 10 s, the last 3 s of which are the lease margin
                $memory->restore();
            }
        }, static function (RemoteExecutor $executor, Agent $agent): void {
            $executor->submit(static fn(): int => 1)->await();
            delay(20.0);
            $pools = (new \ReflectionProperty(Agent::class, 'pools'))->getValue($agent);
            self::assertInstanceOf(AgentPools::class, $pools);
            $used = (new \ReflectionProperty(ResultBudget::class, 'used'))->getValue($pools->budget);
            self::assertSame(0, $used);
        });

        self::assertTrue($isSettled);
    }

    public function testAJobThatIsCancelledWhileItIsOnItsWayToTheAgentIsNotStarted(): void
    {
        $cancellation = new DeferredCancellation();
        $this->serve(static function (ClaimResult $claim) use ($cancellation): void {
            if ($claim->deliveries !== []) {
                $cancellation->cancel();
                delay(0.5); // the cancellation overtakes the answer
            }
        }, static function (RemoteExecutor $executor) use ($cancellation): void {
            self::thrown(
                CancelledException::class,
                static fn() => $executor->submit(static fn(): int => 1, $cancellation->getCancellation())->await(),
            );
        });

        self::assertSame(0, $this->started);
    }

    public function testAnAgentThatCanVerifyNothingGivesAllBackAndStops(): void
    {
        $engine = new MemoryEngine();
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', new SigningKeys([AgentProgram::KEY]));
        for ($i = 0; $i < 100; ++$i) {
            $executor->dispatch(static fn(): int => 1);
        }
        $begin = $this->now();
        $agent = new Agent(
            new MemoryBroker($engine),
            'queue',
            2,
            new SigningKeys([str_repeat('another', 6)]),
            createPool: fn(): Executor => $this->pool(),
        );
        $failure = self::thrown(InvalidSignatureException::class, static fn() => $agent->run());
        self::assertStringContainsString('could verify none', $failure->getMessage());

        $statistics = $engine->queue('queue')->statistics();
        self::assertSame(
            [100, 0, 0],
            [$statistics['waiting'] + $statistics['delayed'], $statistics['dead'], $statistics['running']],
        );
        self::assertEqualsWithDelta(15.0, $this->now() - $begin, 1.0, 'it claims less and less often');
        self::assertSame(0, $this->started);
    }

    /** @param bool $afterJobs whether the engine refuses only the requests after an answer with jobs */
    #[TestWith([false])]
    #[TestWith([true])]
    public function testAnAgentWhoseRequestsAreRefusedRetriesLessAndLessOften(bool $afterJobs): void
    {
        $this->duration = 0.01;
        $refusals = [];
        $hasJobs = false;
        $this->serve(function (ClaimResult $claim) use ($afterJobs, &$refusals, &$hasJobs): void {
            $hadJobs = $hasJobs;
            $hasJobs = $claim->deliveries !== [];
            if ($this->isRefused && ($hadJobs || !$afterJobs)) {
                $hasJobs = false;
                $refusals[] = $this->now();

                throw BrokerRefusedException::at('memory', 'the user may not do this', 'give it the permission');
            }
        }, function (RemoteExecutor $executor) use (&$refusals): void {
            delay(1.0);
            $submit = static function () use ($executor): void {
                for ($i = 0; $i < 500; ++$i) {
                    $executor->dispatch(static fn(): int => 1);
                }
            };
            $this->isRefused = true;
            $submit();
            delay(100.0);
            self::assertGreaterThan(10, \count($refusals));
            self::assertLessThan(50, \count($refusals), 'the last pauses have 2.5 s to 5 s');
            $this->isRefused = false;
            delay(100.0);
            [$refusals, $this->isRefused] = [[], true];
            $submit();
            delay(1.0);
            self::assertGreaterThan(2, \count($refusals), 'the pauses begin with 0.1 s again');
            $this->isRefused = false;
        });
    }

    public function testFiguresOfAQueueThatCanNotBeReachedAreNotKept(): void
    {
        $engine = new MemoryEngine();
        $broker = new MemoryBroker($engine);
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 2, $keys, createPool: fn(): Executor => $this->pool());
        $ended = async($agent->run(...));
        (new RemoteExecutor(new MemoryBroker($engine), 'queue', new SigningKeys([AgentProgram::KEY])))->dispatch(
            static fn(): int => 1,
            delay: 3600.0,
        );
        $names = ['waiting', 'delayed', 'blocked', 'dead', 'agents', 'oldest_waiting_seconds'];
        $statistics = static fn(): array => array_intersect_key($agent->statistics(), array_flip($names));
        delay(10.0);
        self::assertSame(array_combine($names, [0, 1, 0, 0, 1, 0]), $statistics());
        $broker->cut();
        delay(20.0);
        self::assertSame([], $statistics(), 'they would be as they were when the engine was last there');
        $broker->restore();
        delay(20.0);
        self::assertSame(1, $statistics()['delayed'] ?? null);
        $agent->close();
        $ended->await();
    }

    public function testAJobThatTwoAgentsRefuseWhichVerifyOthersIsDead(): void
    {
        $this->duration = 0.01;
        $engine = new MemoryEngine();
        $broker = new MemoryBroker($engine);
        [$agents, $ended] = [[], []];
        foreach ([1, 2] as $_) {
            $agents[] = $agent = new Agent(
                new MemoryBroker($engine),
                'queue',
                2,
                new SigningKeys([AgentProgram::KEY]),
                createPool: fn(): Executor => $this->pool(),
            );
            $ended[] = async($agent->run(...));
        }
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $futures = [];
        for ($i = 0; $i < 20; ++$i) {
            $futures[] = $executor->submit(static fn(): int => 1);
        }
        $tampered = (new RemoteExecutor(
            $broker,
            'queue',
            new SigningKeys([str_repeat('another', 6)]),
        ))->dispatch(static fn(): int => 1);
        $refused = self::thrown(InvalidSignatureException::class, static fn() => $executor->attach($tampered)->await());
        self::assertStringContainsString($tampered, $refused->getMessage());
        await($futures);
        self::assertSame(1, $engine->queue('queue')->statistics()['dead']);
        $dead = array_map(static fn(Agent $agent): int|float => $agent->statistics()['dead_total'], $agents);
        self::assertSame(1, array_sum($dead));
        foreach ($agents as $agent) {
            $agent->close();
        }
        await($ended);
    }

    public function testATaskThatRunsAgainLaterForADayHasFailed(): void
    {
        $keys = new SigningKeys([AgentProgram::KEY]);
        $settlements = new SettlementFactory($keys, 'queue', 'owner', 100, new FailedJobLog(new NullLogger(), 'queue'));
        $body = JobBody::read(JobBody::ofTask(JobBody::head(new JobRetryPolicy(2), null, 'code'), null));
        $settle = static function (int $failures, int $postponedSeconds) use ($settlements, $body): Settlement {
            $delivery = new Delivery('id', 9, 2, $failures, false, false, false, '', 0, 0, $postponedSeconds);
            $outcome = PortableOutcome::threw(new RetryLaterException(30.0, 'HTTP 429'));

            return $settlements->ofTask(new ClaimedJob($delivery, $body, 1), $outcome);
        };

        $postponed = $settle(1, 86_399);
        self::assertSame(
            [SettlementKind::Postpone, 2, 1, 30.0],
            [$postponed->kind, $postponed->crashes, $postponed->failures, $postponed->delay],
        );
        $retried = $settle(0, 86_400);
        self::assertSame(
            [SettlementKind::Retry, 2, 1, 30.0],
            [$retried->kind, $retried->crashes, $retried->failures, $retried->delay],
        );
        $dead = $settle(1, 86_400);
        self::assertSame(SettlementKind::Dead, $dead->kind);
        self::assertStringContainsString('The task asked to run again in 30 s: HTTP 429', $dead->reason);
    }

    public function testAGeneratorWhoseAgentHasReleasedItsLeaseHasHadOneAttempt(): void
    {
        $keys = new SigningKeys([AgentProgram::KEY]);
        $log = new RecordedLog();
        $settlements = new SettlementFactory($keys, 'queue', 'owner', 100, new FailedJobLog($log, 'queue'));
        $body = JobBody::read(JobBody::ofTask(JobBody::head(new JobRetryPolicy(2), null, 'code'), null));
        $delivery = new Delivery('id', 2, 0, 0, false, true, true, 'frame');
        $settlement = $settlements->withoutRun(new ClaimedJob($delivery, $body, 1));

        self::assertSame(SettlementKind::Dead, $settlement?->kind);
        self::assertStringContainsString('"attempts":1', $settlement->reason);
        self::assertStringStartsWith('warning: Attempt 1 of the job id ', $log->lines('warning')[0]);
    }

    public function testARefusalIsNoFailedAttempt(): void
    {
        $keys = new SigningKeys([AgentProgram::KEY]);
        $settlements = new SettlementFactory($keys, 'queue', 'owner', 100, new FailedJobLog(new NullLogger(), 'queue'));
        $kinds = [];
        for ($refusals = 0; $refusals <= Delivery::MAX_REFUSALS; ++$refusals) {
            $delivery = new Delivery('id', 9, 2, 6, false, false, false, 'frame', 0, $refusals);
            $settlement = $settlements->refused($delivery, InvalidSignatureException::of('id', 'it has no signature'));
            self::assertSame([2, 6], [$settlement->crashes, $settlement->failures]);
            $kinds[] = $settlement->kind;
        }
        $refused = SettlementKind::Refused;

        self::assertSame([$refused, $refused, $refused, SettlementKind::Dead], $kinds);
    }

    /** @param list<string> $expected patterns of the lines */
    #[TestWith([
        4.0,
        [
            '/^warning: .* is not available: away$/',
            '/^info: The engine is available again after [3-7](\.\d)? s/',
        ],
    ])]
    #[TestWith([
        60.0,
        [
            '/^warning: .* is not available: away$/',
            '/^warning: The lease of the agent .* has ended/',
            '/^warning: .* is not available: away$/',
            '/^info: The engine is available again after [56]\d(\.\d)? s/',
        ],
    ])]
    public function testAnOutageOfTheEngineIsLoggedOnceAndItsEndToo(float $seconds, array $expected): void
    {
        $memory = new MemoryBroker(new MemoryEngine());
        $broker = self::createStub(Broker::class);
        foreach (get_class_methods(Broker::class) as $method) {
            $real = (new \ReflectionMethod($memory, $method))->getClosure($memory);
            $broker->method($method)->willReturnCallback(fn(mixed ...$given): mixed => $this->isUnavailable
                ? throw BrokerUnavailableException::at('engine', 'away')
                : $real(...$given));
        }
        $log = new RecordedLog();
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 2, $keys, logger: $log, createPool: fn(): Executor => $this->pool());
        $ended = async($agent->run(...));
        delay(5.0);
        $this->isUnavailable = true;
        delay($seconds);
        $this->isUnavailable = false;
        delay(10.0);
        $agent->close();
        $ended->await();

        $isAboutServing = static fn(string $line): bool => str_starts_with($line, 'info: Serving the queue');
        $lines = array_values(array_filter(
            $log->lines('warning', 'info'),
            static fn(string $line): bool => !$isAboutServing($line),
        ));
        self::assertCount(\count($expected), $lines, implode("\n", $lines));
        foreach ($expected as $i => $pattern) {
            self::assertMatchesRegularExpression($pattern, $lines[$i]);
        }
    }

    public function testALoggerThatThrowsDoesNotEndTheAgent(): void
    {
        $lines = $this->errorLogOf(function (): void {
            $log = new ThrowingLog();
            $engine = new MemoryEngine();
            $keys = new SigningKeys([AgentProgram::KEY]);
            $create = fn(): Executor => $this->pool();
            $agent = new Agent(new MemoryBroker($engine), 'queue', 2, $keys, logger: $log, createPool: $create);
            $ended = async($agent->run(...));
            (new MemoryBroker($engine))->submit('queue', [new Job('unsigned', 'frame')], 10, 'client', false);
            $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys);
            self::assertSame('done', $executor->submit(static fn(): string => 'done')->await());
            $agent->close();
            $ended->await();
        });

        self::assertCount(1, $lines);
        self::assertStringContainsString('The disk is full', $lines[0]);
    }

    public function testALostAgentIsLogged(): void
    {
        $engine = new MemoryEngine();
        $broker = new MemoryBroker($engine);
        $keys = new SigningKeys([AgentProgram::KEY]);
        (new RemoteExecutor($broker, 'queue', $keys))->dispatch(static fn(): int => 1);
        $broker->settleAndClaim('queue', self::joined($engine), [], 1, 60.0);
        $log = new RecordedLog();
        $agent = new Agent($broker, 'queue', 2, $keys, logger: $log, createPool: fn(): Executor => $this->pool());
        $ended = async($agent->run(...));
        delay(30.0);
        $agent->close();
        $ended->await();

        self::assertSame(
            [
                'warning: The agent another of the queue queue was lost: its lease ended without a renewal.'
                    . ' Number of its jobs that were requeued: 1',
            ],
            $log->lines('warning'),
        );
    }

    public function testAJobThatIsTooLargeForTheAgentsMemoryIsADeadLetterAndTheAgentGoesOn(): void
    {
        $engine = new MemoryEngine();
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent(new MemoryBroker($engine), 'queue', 2, $keys, createPool: fn(): Executor => $this->pool());
        $ended = async($agent->run(...));
        $limit = (string) ini_set('memory_limit', '96M'); // the agent reads it when it starts
        try {
            delay(0.1);
        } finally {
            ini_set('memory_limit', $limit);
        }
        $options = new RemoteOptions(maxPayloadBytes: 1 << 30);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys, options: $options);
        $ballast = str_repeat('x', 17 << 20);
        $tooLarge = self::thrown(
            PayloadTooLargeException::class,
            static fn() => $executor->submit(static fn(): int => \strlen($ballast))->await(),
        );
        self::assertStringContainsString('jobs of at most 16777216 bytes', $tooLarge->getMessage());
        self::assertSame([1, 0], [$engine->queue('queue')->statistics()['dead'], $this->started]);
        $executor->submit(static fn(): int => 1)->await();
        self::assertSame(1, $this->started);
        $agent->close();
        $ended->await();
    }

    public function testAJobAndAnotherWhoseIdHasOneMoreSignAreNotConfused(): void
    {
        $engine = new MemoryEngine();
        $keys = new SigningKeys([AgentProgram::KEY]);
        $pool = $this->pool();
        $create = static function (\Closure $report) use ($pool): Executor {
            EventLoop::delay(0.5, static function () use ($report): void { // after both tasks have started
                $report(['5']);
                $report(['#5']);
            });

            return $pool;
        };
        $agent = new Agent(new MemoryBroker($engine), 'queue', 2, $keys, createPool: $create);
        $options = new RemoteOptions(timeout: 1.0);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys, JobRetryPolicy::none(), $options);
        foreach (['5', '#5'] as $id) {
            $executor->dispatch(static fn(): int => 1, id: $id);
        }
        $ended = async($agent->run(...));
        foreach (['5', '#5'] as $id) {
            $late = self::thrown(TaskTimeoutException::class, static fn() => $executor->attach($id)->await());
            self::assertStringContainsString('more than 1 seconds', $late->getMessage());
        }
        $agent->close();
        $ended->await();
    }

    /**
     * @param float $seconds time of the cancellation after the start of the task, whose time limit is one second
     * @param class-string<\Throwable> $failure
     */
    #[TestWith([0.8, JobCancelledException::class, JobStatus::Cancelled])]
    #[TestWith([1.2, TaskTimeoutException::class, JobStatus::Dead])]
    public function testTheOutcomeOfATaskThatNeedsTimeToEndNamesTheFirstCause(
        float $seconds,
        string $failure,
        JobStatus $status,
    ): void {
        $pool = $this->pool(2.0);
        $create = static function (\Closure $report) use ($pool): Executor {
            EventLoop::delay(0.5, static function () use ($report): void {
                $report(['id']);
            });

            return $pool;
        };
        $engine = new MemoryEngine();
        $agent = $this->agent($engine, $create);
        $ended = async($agent->run(...));
        $keys = new SigningKeys([AgentProgram::KEY]);
        $options = new RemoteOptions(timeout: 1.0);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys, JobRetryPolicy::none(), $options);
        $executor->dispatch(static fn(): int => 1, id: 'id');
        delay(0.5 + $seconds);
        self::assertTrue($executor->cancel('id'));
        $outcome = (new Collected((static fn(): \Generator => yield $executor->attach('id')->await())()))->thrown;
        self::assertInstanceOf($failure, $outcome);
        self::assertSame($status, $executor->status('id'));
        $agent->close();
        $ended->await();
    }

    public function testAGeneratorWhoseReaderLeavesIsCancelledAlthoughItsTimeLimitEndsLater(): void
    {
        $pool = self::createStub(Executor::class);
        $submit = static function (callable $task, Cancellation $cancellation): Future {
            $cancellation->subscribe(static function () use ($cancellation): void {
                $cancellation->unsubscribe(''); // the pool has ended the task
            });

            return Future::complete((static function (): \Generator {
                yield serialize([0, 'item']);
                delay(0.5);
                yield serialize([1, 'item']);
            })());
        };
        $pool->method('submit')->willReturnCallback($submit);
        $create = static function (\Closure $report) use ($pool): Executor {
            EventLoop::queue($report, ['id']);

            return $pool;
        };
        $engine = new MemoryEngine();
        $agent = $this->agent($engine, $create);
        $ended = async($agent->run(...));
        $keys = new SigningKeys([AgentProgram::KEY]);
        $options = new RemoteOptions(timeout: 1.0);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys, JobRetryPolicy::none(), $options);
        $executor->dispatch(static fn(): int => 1, id: 'id');
        $items = $executor->attach('id')->await();
        self::assertInstanceOf(\Generator::class, $items);
        self::assertSame('item', $items->current());
        unset($items);
        delay(3.0);
        self::assertSame(JobStatus::Cancelled, $executor->status('id'));
        $agent->close();
        $ended->await();
    }

    /** @param bool $isDropped whether the reader drops the generator; otherwise, the reader's process disconnects */
    #[TestWith([true])]
    #[TestWith([false])]
    public function testAGeneratorWithoutAnItemEndsSoonAfterItsReaderHasLeft(bool $isDropped): void
    {
        $pool = self::createStub(Executor::class);
        $submit = static fn(callable $task, Cancellation $cancellation): Future => Future::complete(
            (static function () use ($cancellation): \Generator {
                yield serialize([0, 'item']);
                delay(3600.0, cancellation: $cancellation);
            })(),
        );
        $pool->method('submit')->willReturnCallback($submit);
        $engine = new MemoryEngine();
        $agent = $this->agent($engine, static fn(): Executor => $pool);
        $ended = async($agent->run(...));
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', new SigningKeys([AgentProgram::KEY]));
        $executor->dispatch(static fn(): int => 1, id: 'id');
        $items = $executor->attach('id')->await();
        self::assertInstanceOf(\Generator::class, $items);
        self::assertSame('item', $items->current());
        delay(60.0);
        self::assertSame(JobStatus::Running, $executor->status('id'));
        if (!$isDropped) {
            $executor->kill();
        }
        unset($items);
        $other = new RemoteExecutor(new MemoryBroker($engine), 'queue', new SigningKeys([AgentProgram::KEY]));
        delay(20.0);
        self::assertSame(JobStatus::Cancelled, $other->status('id'));
        $agent->close();
        $ended->await();
    }

    public function testAGeneratorWhoseCallerHasGoneBeforeTheFirstItemEndsSoon(): void
    {
        $engine = new MemoryEngine();
        $broker = new MemoryBroker($engine);
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $executor->submit(static fn(): \Generator => yield 1)->ignore();
        $broker->cut();
        $agent = $this->agent($engine, static fn(): Executor => self::runningGenerators());
        $ended = async($agent->run(...));
        $other = new MemoryBroker($engine);
        delay(5.0);
        self::assertSame(1, $other->statistics('queue')['running']);
        delay(15.0);
        self::assertSame(0, $other->statistics('queue')['running']);
        $broker->restore();
        $executor->kill();
        $agent->close();
        $ended->await();
    }

    public function testALostGeneratorEndsAlthoughAnotherOneOccupiesAllWorkers(): void
    {
        $engine = new MemoryEngine();
        $memory = new MemoryBroker($engine);
        $keys = new SigningKeys([AgentProgram::KEY]);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys);
        $task = static fn(): \Generator => yield 1;
        $lost = $executor->submit($task);
        $owner = self::joined($engine);
        [$delivery] = $memory->settleAndClaim('queue', $owner, [], 1, 60.0)->deliveries;
        $settlements = new SettlementFactory($keys, 'queue', $owner, 100, new FailedJobLog(new NullLogger(), 'queue'));
        $memory->putItems('queue', $owner, $delivery->id, 1, 0, [
            $settlements->item($delivery, 0, serialize([0, 'item'])),
        ]);
        $pool = self::runningGenerators();
        $agent = new Agent(new MemoryBroker($engine), 'queue', 1, $keys, createPool: static fn(): Executor => $pool);
        $ended = async($agent->run(...));
        $unread = $executor->submit($task);
        $executor->submit($task)->ignore(); // a job that the agent gives back
        $items = $lost->await(new TimeoutCancellation(60.0));
        $read = new Collected((static function () use ($items): \Generator {
            yield from $items;
        })());

        self::assertSame(['item'], $read->values);
        self::assertInstanceOf(WorkerCrashedException::class, $read->thrown);
        $second = $unread->await();
        self::assertCount(100, iterator_to_array($second));
        $executor->kill();
        $agent->kill();
        $ended->await();
    }

    public function testAJobThatAnAgentGivesBackIsLeftToOtherAgents(): void
    {
        $engine = new MemoryEngine();
        $memory = new MemoryBroker($engine);
        $keys = new SigningKeys([AgentProgram::KEY]);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys);
        $pool = self::runningGenerators();
        $agent = new Agent(new MemoryBroker($engine), 'queue', 1, $keys, createPool: static fn(): Executor => $pool);
        $ended = async($agent->run(...));
        $unread = $executor->dispatch(static fn(): \Generator => yield 1);
        $id = $executor->dispatch(static fn(): int => 1);
        $isClaimed = static fn(): bool => $executor->status($id) === JobStatus::Running;
        Eventually::holds($isClaimed, 'The agent has the job', 30);
        $owner = self::joined($engine);
        $claim = static fn(): array => $memory->settleAndClaim('queue', $owner, [], 1, 60.0)->deliveries;
        Eventually::holds(static fn(): bool => $claim() !== [], 'Another agent gets the job', 30);

        self::assertSame(JobStatus::Running, $executor->status($unread));
        $executor->kill();
        $agent->kill();
        $ended->await();
    }

    /** Creates an executor that runs each task as a generator with more items than may be unread. */
    private static function runningGenerators(): Executor
    {
        $pool = self::createStub(Executor::class);
        $pool->method('submit')->willReturnCallback(static fn(): Future => Future::complete((static function () {
            for ($i = 0; $i < 100; ++$i) {
                yield serialize([$i, 'item']);
            }

            return PortableOutcome::returned('end');
        })()));

        return $pool;
    }

    public function testTheTimeLimitDoesNotIncludeTheTimeUntilALargeOutcomeIsRead(): void
    {
        $this->duration = 5.0;
        $pool = $this->pool();
        $create = static function (\Closure $report) use ($pool): Executor {
            async(static function () use ($report): void {
                delay(0.5);
                $report(['id']);
                delay(0.5);
                $report(['id', null]);
            });

            return $pool;
        };
        $engine = new MemoryEngine();
        $agent = $this->agent($engine, $create);
        $ended = async($agent->run(...));
        $keys = new SigningKeys([AgentProgram::KEY]);
        $options = new RemoteOptions(timeout: 1.0);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys, JobRetryPolicy::none(), $options);
        $executor->dispatch(static fn(): int => 1, id: 'id');
        self::assertSame('done', $executor->attach('id')->await());
        $agent->close();
        $ended->await();
    }

    public function testTheTimeLimitOfAGeneratorDoesNotIncludeTheTimeOfItsReader(): void
    {
        $pauses = 0;
        $this->serveItems(0.0, function (\Generator $items) use (&$pauses): void {
            foreach ($items as $item) {
                self::assertSame('item', $item);
                if ($pauses++ < 3) {
                    delay(10.0);
                }
            }
            self::assertSame('end', $items->getReturn());
        });

        self::assertSame(200, $pauses);
    }

    public function testTheTimeLimitOfAGeneratorDoesNotIncludeTheTimeUntilALargeItemIsRead(): void
    {
        $task = static function (\Closure $report): \Generator {
            $report(['generator']);
            for ($i = 0; $i < 4; ++$i) {
                yield serialize([$i, 'item']);
                delay(0.1);
                $report(['generator', 2 * $i + 1]);
                delay(10.0);
                yield serialize([$i, 'large item']);
                delay(0.1);
            }

            return PortableOutcome::returned('end');
        };
        $this->serveItems(0.0, static function (\Generator $items): void {
            self::assertCount(8, iterator_to_array($items, false));
            self::assertSame('end', $items->getReturn());
        }, $task);
    }

    public function testTheTimeOfAGeneratorBetweenLargeItemsCounts(): void
    {
        $task = static function (\Closure $report): \Generator {
            $report(['generator']);
            for ($i = 0;; ++$i) {
                $report(['generator', $i]);
                delay(10.0);
                yield serialize([$i, 'item']);
                delay(0.6);
            }
        };
        $this->serveItems(0.0, static function (\Generator $items): void {
            $collected = new Collected($items);
            self::assertInstanceOf(TaskTimeoutException::class, $collected->thrown);
            self::assertSame(['item', 'item'], $collected->values);
        }, $task);
    }

    public function testTheTimeLimitOfAGeneratorDoesNotIncludeAnOutageOfTheEngine(): void
    {
        $count = 0;
        $this->serveItems(0.0, static function (\Generator $items, MemoryBroker $broker) use (&$count): void {
            foreach ($items as $_) {
                if (++$count === 1) {
                    $broker->cut();
                    delay(4.0);
                    $broker->restore();
                }
            }
        });

        self::assertSame(200, $count);
    }

    public function testAnItemThatTheEngineDoesNotStoreIsLoggedOnce(): void
    {
        $log = new RecordedLog();
        $count = 0;
        $this->serveItems(0.0, function (\Generator $items) use (&$count): void {
            foreach ($items as $_) {
                if (++$count === 1) {
                    $this->isFull = true;
                    delay(30.0);
                    $this->isFull = false;
                }
            }
        }, log: $log);

        self::assertSame(200, $count);
        self::assertSame(
            ['warning: An item of the job generator could not be stored, and the agent retries: '
                . 'The engine at localhost is not available: its memory is full'],
            $log->lines('warning'),
        );
    }

    public function testALeaseThatEndsBeforeAReaderIsCheckedDoesNotEndTheAgent(): void
    {
        $task = function (): \Generator {
            yield serialize([0, 'item']);
            $this->checkFailure = LeaseLostException::of('agent');
            delay(20.0);

            return PortableOutcome::returned('end');
        };
        $log = new RecordedLog();
        $this->serveItems(0.0, static function (\Generator $items): void {
            self::assertSame(['item'], (new Collected($items))->values);
        }, $task, $log);

        $warnings = implode("\n", $log->lines('warning'));
        self::assertStringContainsString('The lease of the agent agent has ended', $warnings);
    }

    public function testTheTimeLimitOfAGeneratorContinuesAfterAFailedCheckOfItsReader(): void
    {
        $task = function (\Closure $report, Cancellation $cancellation): \Generator {
            $report(['generator']);
            yield serialize([0, 'item']);
            $this->checkFailure = BrokerRefusedException::at('localhost', 'it has no permission', '');
            delay(100.0, cancellation: $cancellation);

            return PortableOutcome::returned('end');
        };
        $this->serveItems(0.0, static function (\Generator $items): void {
            self::assertInstanceOf(TaskTimeoutException::class, (new Collected($items))->thrown);
        }, $task, timeout: 20.0);
    }

    public function testALimitForResultsIsLoggedOnce(): void
    {
        $log = new RecordedLog();
        $engine = new EngineState($log, 'queue');
        $engine->resultsLimited(1000);
        $engine->resultsLimited(1000);
        $engine->resultsLimited(2000);

        self::assertCount(2, $log->lines('warning'));
    }

    public function testTheTimeLimitOfAGeneratorIncludesShortRequestsForItsItems(): void
    {
        $this->putDuration = 0.05;
        $this->serveItems(0.0, function (\Generator $items): void {
            $this->expectException(TaskTimeoutException::class);
            iterator_to_array($items);
        });
    }

    public function testTheTimeOfAGeneratorBetweenPausesOfItsReaderCounts(): void
    {
        $count = 0;
        $this->serveItems(0.02, function (\Generator $items) use (&$count): void {
            $this->expectException(TaskTimeoutException::class);
            foreach ($items as $_) {
                if (++$count === 1) {
                    delay(10.0);
                }
            }
        });
    }

    public function testJobsOfAnAgentWithoutWorkersDoNotCountAsCrashed(): void
    {
        $engine = new MemoryEngine();
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', new SigningKeys([AgentProgram::KEY]));
        for ($i = 0; $i < 6; ++$i) {
            $executor->dispatch(static fn(): int => 1);
        }
        $cannotStart = LauncherException::cannotStart('no process is left');
        $pool = self::createStub(Executor::class);
        $pool->method('submit')->willReturn(Future::error($cannotStart));
        foreach ([static fn(): Executor => $pool, static fn(): Executor => throw $cannotStart] as $make) {
            $failure = self::thrown(
                LauncherException::class,
                static fn() => (new Agent(
                    new MemoryBroker($engine),
                    'queue',
                    2,
                    new SigningKeys([AgentProgram::KEY]),
                    createPool: $make,
                ))->run(),
            );
            self::assertSame($cannotStart, $failure);

            $queue = $engine->queue('queue');
            self::assertSame([6, 0], [$queue->statistics()['waiting'], $queue->statistics()['running']]);
            $claim = (new MemoryBroker($engine))->settleAndClaim('queue', self::joined($engine), [], 6, 1.0);
            self::assertSame(array_fill(0, 6, 0), array_column($claim->deliveries, 'crashes'));
            $queue->leave('another');
        }
    }

    public function testAReleaseOfTheLeaseWithoutAnAnswerIsRepeatedWhenTheAgentStops(): void
    {
        $engine = new MemoryEngine();
        $memory = new MemoryBroker($engine);
        $broker = self::brokerLike($memory, 'releaseLease');
        $requests = 0;
        $broker->method('releaseLease')->willReturnCallback(
            static function (string $queue, string $owner) use ($memory, &$requests): void {
                ++$requests === 1
                    ? throw BrokerUnavailableException::at('memory', 'the connection was reset')
                    : $memory->releaseLease($queue, $owner);
            },
        );
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 2, $keys, createPool: fn(): Executor => $this->pool());
        $ended = async($agent->run(...));
        delay(1.0);
        $agent->close();
        $ended->await();

        self::assertSame([2, 0], [$requests, $engine->queue('queue')->statistics()['agents']]);
    }

    public function testAnAgentThatStopsAfterItHasLostItsLeaseReleasesTheLease(): void
    {
        $broker = self::brokerLike(new MemoryBroker(new MemoryEngine()), 'renewLease', 'releaseLease');
        $broker->method('renewLease')->willReturnCallback(static function () use (&$agent): never {
            /** @var Agent $agent */
            $agent->kill();

            throw LeaseLostException::of('agent');
        });
        $requests = 0;
        $broker->method('releaseLease')->willReturnCallback(static function () use (&$requests): void {
            ++$requests;
        });
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 2, $keys, createPool: fn(): Executor => $this->pool());
        $agent->run();

        self::assertSame(1, $requests);
    }

    public function testAnAgentThatStopsDuringAnOutageDoesNotWaitForAFurtherRequest(): void
    {
        $broker = self::brokerLike(new MemoryBroker(new MemoryEngine()), 'renewLease', 'releaseLease');
        $unavailable = BrokerUnavailableException::at('memory', 'no answer');
        $broker->method('renewLease')->willThrowException($unavailable);
        $requests = 0;
        $broker->method('releaseLease')->willReturnCallback(
            static function () use ($unavailable, &$requests, &$agent): never {
                ++$requests;
                /** @var Agent $agent */
                $agent->kill();

                throw $unavailable;
            },
        );
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 2, $keys, createPool: fn(): Executor => $this->pool());
        $agent->run();

        self::assertSame(1, $requests);
    }

    /** @param 'close'|'kill' $end */
    #[DataProvider('ends')]
    public function testAnAgentThatWasEndedBeforeItRanDoesNotRun(string $end): void
    {
        $engine = new MemoryEngine();
        $agent = $this->agent($engine);
        $end === 'close' ? $agent->close() : $agent->kill();
        $refused = self::thrown(AgentClosedException::class, static fn() => $agent->run());
        self::assertStringContainsString('The agent of the queue queue is closed', $refused->getMessage());

        self::assertSame(0, $engine->queue('queue')->statistics()['agents']);
    }

    /** @return iterable<string, array{'close'|'kill'}> */
    public static function ends(): iterable
    {
        yield 'close' => ['close'];
        yield 'kill' => ['kill'];
    }

    public function testAnAgentRunsOnceAtATimeAndCloseWaitsForTheEndOfRun(): void
    {
        $agent = $this->agent(new MemoryEngine());
        $ended = async($agent->run(...));
        delay(1.0);
        $refused = self::thrown(\LogicException::class, static fn() => $agent->run());
        self::assertStringContainsString('is running already', $refused->getMessage());
        $agent->close();

        self::assertTrue($ended->isComplete());
    }

    public function testCloseReturnsWhenRunFails(): void
    {
        $engine = new MemoryEngine();
        $keys = new SigningKeys([AgentProgram::KEY]);
        (new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys))->dispatch(static fn(): int => 1);
        $closing = null;
        $agent = $this->agent($engine, static function () use (&$agent, &$closing): never {
            $closing = async(static fn() => $agent?->close());
            delay(1.0);
            throw LauncherException::cannotStart('no process is left');
        });
        self::thrown(LauncherException::class, static fn() => $agent->run());

        self::assertInstanceOf(Future::class, $closing);
        $closing->await(new TimeoutCancellation(1.0));
    }

    #[RequiresPhpExtension('pcntl')]
    public function testWhereCloseCanNotWaitItClosesTheAgentAndThrows(): void
    {
        $agent = $this->agent(new MemoryEngine());
        $ended = async($agent->run(...));
        delay(1.0);

        self::assertInstanceOf(CannotWaitException::class, Async::inSignalHandler($agent->close(...)));
        $ended->await();
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkCanNotEndTheAgentOfItsParent(): void
    {
        $engine = new MemoryEngine();
        $agent = $this->agent($engine);
        $ended = async($agent->run(...));
        delay(1.0);
        $fork = pcntl_fork();
        if ($fork === 0) {
            $agent->kill();
            $agent->close(); // returns at once
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        self::assertSame(\SIGKILL, pcntl_wtermsig($status));
        delay(1.0);
        self::assertFalse($ended->isComplete());
        $agent->close();
    }

    /** @param \Closure(): AgentOptions $options */
    #[DataProvider('immense')]
    public function testOptionsThatNoEngineCanHoldAreRefused(\Closure $options, string $name): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($name);
        $options();
    }

    /** @return iterable<string, array{\Closure(): AgentOptions, string}> */
    public static function immense(): iterable
    {
        yield 'retention' => [static fn(): AgentOptions => new AgentOptions(outcomeRetention: \INF), 'The retention'];
        yield 'lease' => [static fn(): AgentOptions => new AgentOptions(lease: 1e18), 'The lease'];
        yield 'result' => [
            static fn(): AgentOptions => new AgentOptions(maxResultBytes: \PHP_INT_MAX),
            'The bytes of a result',
        ];
    }

    /** @param (\Closure(\Closure(mixed): void): Executor)|null $createPool */
    private function agent(MemoryEngine $engine, ?\Closure $createPool = null): Agent
    {
        return new Agent(
            new MemoryBroker($engine),
            'queue',
            2,
            new SigningKeys([AgentProgram::KEY]),
            createPool: $createPool ?? fn(): Executor => $this->pool(),
        );
    }

    /**
     * Runs a generator task with a time limit, which yields 200 items.
     *
     * @param float $seconds time that the code needs for each item
     * @param \Closure(\Generator<mixed, mixed, mixed, mixed>, MemoryBroker): void $reader gets the agent's broker, too
     * @param (\Closure(\Closure(mixed): void, Cancellation): \Generator<int, string, mixed, string>)|null $task
     */
    private function serveItems(
        float $seconds,
        \Closure $reader,
        ?\Closure $task = null,
        ?RecordedLog $log = null,
        float $timeout = 1.0,
    ): void {
        $engine = new MemoryEngine();
        $pool = self::createStub(Executor::class);
        $create = static function (\Closure $report) use ($pool, $seconds, $task): Executor {
            $items = static function () use ($report, $seconds): \Generator {
                $report(['generator']);
                for ($i = 0; $i < 200; ++$i) {
                    $seconds > 0.0 ? delay($seconds) : null; // delay(0) would let the loop run
                    yield serialize([$i, 'item']);
                }

                return PortableOutcome::returned('end');
            };
            $pool->method('submit')->willReturnCallback(
                static fn(callable $_, Cancellation $cancellation): Future => Future::complete(
                    $task === null ? $items() : $task($report, $cancellation),
                ),
            );

            return $pool;
        };
        $keys = new SigningKeys([AgentProgram::KEY]);
        $memory = new MemoryBroker($engine);
        $broker = self::brokerLike($memory, 'putItems');
        $broker->method('putItems')->willReturnCallback(
            function (string $queue, string $owner, string $id, int $claim, int $offset, array $frames) use (
                $memory,
            ): ?int {
                delay($this->putDuration);
                if ($this->isFull && $frames !== []) {
                    throw BrokerUnavailableException::at('localhost', 'its memory is full');
                }

                $failure = $this->checkFailure;
                if ($failure !== null && $frames === []) {
                    $this->checkFailure = null;

                    throw $failure;
                }

                /** @var list<string> $frames */
                return $memory->putItems($queue, $owner, $id, $claim, $offset, $frames);
            },
        );
        $agent = new Agent($broker, 'queue', 2, $keys, logger: $log, createPool: $create);
        $ended = async($agent->run(...));
        $options = new RemoteOptions(timeout: $timeout);
        $executor = new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys, JobRetryPolicy::none(), $options);
        $id = $executor->dispatch(static fn(): int => 1, id: 'generator');
        try {
            $items = $executor->attach($id)->await();
            self::assertInstanceOf(\Generator::class, $items);
            $reader($items, $memory);
        } finally {
            $agent->close();
            $ended->await();
        }
    }

    /** Returns a broker that calls the given one, but none of the methods that the test replaces. */
    private static function brokerLike(MemoryBroker $memory, string ...$replaced): Broker&Stub
    {
        $broker = self::createStub(Broker::class);
        foreach (array_diff(get_class_methods(Broker::class), $replaced) as $method) {
            $real = new \ReflectionMethod($memory, $method);
            $broker->method($method)->willReturnCallback($real->getClosure($memory));
        }

        return $broker;
    }

    private static function joined(MemoryEngine $engine): string
    {
        (new MemoryBroker($engine))->renewLease('queue', 'another', 10.0, true, '{}');

        return 'another';
    }

    /**
     * Runs an agent for as long as a caller needs it.
     *
     * @param \Closure(ClaimResult, MemoryBroker): void $onAnswer called before the agent has an answer
     * @param \Closure(RemoteExecutor, Agent): void     $caller
     */
    private function serve(
        \Closure $onAnswer,
        \Closure $caller,
        ?Executor $pool = null,
        AgentOptions $options = new AgentOptions(),
    ): MemoryEngine {
        $this->started = 0;
        $engine = new MemoryEngine();
        $memory = new MemoryBroker($engine);
        $broker = self::brokerLike($memory, 'settleAndClaim', 'repair', 'renewLease');
        $broker->method('renewLease')->willReturnCallback(
            function (string $queue, string $owner, float $lease, bool $isNew, string $description) use (
                $memory,
            ): ?float {
                $dueIn = $memory->renewLease($queue, $owner, $lease, $isNew, $description);
                $duration = $isNew ? 0.0 : $this->renewalDuration;
                if ($duration > 0.0) {
                    $this->renewalDuration = 0.0;
                    delay($duration);
                }

                return $dueIn;
            },
        );
        $broker->method('repair')->willReturnCallback(function (): int {
            if ($this->repairDuration > 0) {
                delay($this->repairDuration);
            }

            return 0;
        });
        $broker->method('settleAndClaim')->willReturnCallback(
            static function (
                string $queue,
                string $owner,
                array $done,
                int $want,
                float $outcomeRetention,
                int $first,
                ?int $begun,
                int $maxFrameBytes,
            ) use ($memory, $onAnswer): ClaimResult {
                /** @var list<Settlement> $done */
                $claim = $memory->settleAndClaim(
                    $queue,
                    $owner,
                    $done,
                    $want,
                    $outcomeRetention,
                    $first,
                    $begun,
                    $maxFrameBytes,
                );
                $onAnswer($claim, $memory);

                return $claim;
            },
        );
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 2, $keys, $options, createPool: fn(): Executor => $pool ?? $this->pool());
        $ended = async($agent->run(...));
        $caller(new RemoteExecutor(new MemoryBroker($engine), 'queue', $keys), $agent);
        $agent->close();
        $ended->await();

        return $engine;
    }

    /** Returns a pool whose tasks end in the same turn of the loop if they have started one after the other. */
    private function batchPool(): Executor
    {
        /** @var \SplQueue<DeferredFuture<string>> $batch */
        $batch = new \SplQueue();
        $pool = self::createStub(Executor::class);
        $pool->method('submit')->willReturnCallback(function () use ($batch): Future {
            ++$this->started;
            if ($batch->isEmpty()) {
                EventLoop::delay($this->duration, static function () use ($batch): void {
                    while (!$batch->isEmpty()) {
                        $batch->dequeue()->complete(PortableOutcome::returned('done'));
                    }
                });
            }
            /** @var DeferredFuture<string> $outcome */
            $outcome = new DeferredFuture();
            $batch->enqueue($outcome);

            return $outcome->getFuture();
        });

        return $pool;
    }

    /** @param float $endDuration seconds that a cancelled task needs to end */
    private function pool(float $endDuration = 0.0): Executor
    {
        $pool = self::createStub(Executor::class);
        $submit = function (callable $task, Cancellation $cancellation) use ($endDuration): Future {
            ++$this->started;
            $outcome = new DeferredFuture();
            $result = PortableOutcome::returned('done');
            $timer = EventLoop::delay($this->duration, static fn() => $outcome->complete($result));
            $end = static function (CancelledException $cancelled) use ($outcome, $timer, $endDuration): void {
                EventLoop::cancel($timer);
                delay($endDuration);
                if (!$outcome->isComplete()) {
                    $outcome->error($cancelled);
                }
            };
            $cancellation->subscribe($end);

            return $outcome->getFuture();
        };
        $pool->method('submit')->willReturnCallback($submit);

        return $pool;
    }
}
