<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Amp\DeferredFuture;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Internal\JobOutbox;
use Spindle\Remote\Internal\QueueClient;
use Spindle\Remote\Internal\ReceivedOutcomes;
use Spindle\Remote\Job;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Remote\AgentProgram;

final class ReceivedOutcomesTest extends TestCase
{
    /** @var list<list<string>> ids of each request */
    private array $requests = [];

    /** Number of requests that find no engine. */
    private int $failures = 0;

    /** @var DeferredFuture<null> completed when the engine answers submissions */
    private DeferredFuture $answered;

    protected function setUp(): void
    {
        $this->answered = new DeferredFuture();
    }

    public function testOutcomesAreDroppedTogetherAndSoon(): void
    {
        $outcomes = new ReceivedOutcomes($broker = $this->broker(), 'queue', new JobOutbox($broker, 'queue', 'client'));
        foreach (range(1, 3) as $id) {
            $outcomes->add("job-{$id}", 100);
        }
        unset($outcomes);
        self::assertSame([], $this->requests);
        Eventually::holds(fn(): bool => $this->requestCount() > 0, 'they are dropped');

        self::assertSame([['job-1', 'job-2', 'job-3']], $this->requests);
    }

    public function testManyOrLargeOutcomesAreDroppedAtOnce(): void
    {
        $outcomes = new ReceivedOutcomes($broker = $this->broker(), 'queue', new JobOutbox($broker, 'queue', 'client'));
        foreach (range(1, 1001) as $id) {
            $outcomes->add("job-{$id}", 100);
        }
        $outcomes->add('large', 5 << 20);
        $outcomes->awaitDropped(1.0, null);

        self::assertSame([500, 500, 2], array_map(\count(...), $this->requests));
    }

    public function testOutcomesThatTheEngineHasNotDroppedAreDroppedLater(): void
    {
        $outcomes = new ReceivedOutcomes($broker = $this->broker(), 'queue', new JobOutbox($broker, 'queue', 'client'));
        $this->failures = 2;
        $outcomes->add('job', 100);
        $outcomes->awaitDropped(1.0, null);
        self::assertSame([['job']], $this->requests);
        Eventually::holds(fn(): bool => $this->requestCount() === 3, 'it is dropped');
        $outcomes->awaitDropped(1.0, null);

        self::assertSame([['job'], ['job'], ['job']], $this->requests);
    }

    public function testItemsThatTheEngineHasNotDroppedAreDroppedLater(): void
    {
        $outcomes = new ReceivedOutcomes($broker = $this->broker(), 'queue', new JobOutbox($broker, 'queue', 'client'));
        $this->failures = 2;
        $outcomes->stopTakingItems('stream');
        $outcomes->awaitDropped(1.0, null);
        self::assertSame([['stream']], $this->requests);
        Eventually::holds(fn(): bool => $this->requestCount() === 3, 'they are dropped');
        $outcomes->awaitDropped(1.0, null);

        self::assertSame([['stream'], ['stream'], ['stream']], $this->requests);
    }

    /** If the answer is lost, the submission is repeated. Without the outcome, the engine would run the job again. */
    public function testTheOutcomeOfAJobWhoseSubmissionIsUnansweredStays(): void
    {
        $outbox = new JobOutbox($broker = $this->broker(), 'queue', 'client');
        $outcomes = new ReceivedOutcomes($broker, 'queue', $outbox);
        $keys = new SigningKeys([AgentProgram::KEY]);
        $sender = new QueueClient($broker, 'queue', $keys, new JobRetryPolicy(), new RemoteOptions());
        $sending = Async::run(static fn(): int => $outbox->send($sender, [new Job('pending', 'frame')], false));
        Eventually::holds(static fn(): bool => $outbox->isPending('pending'), 'it is sent');
        $outcomes->add('pending', 100);
        $outcomes->add('other', 100);
        $outcomes->awaitDropped(1.0, null);
        self::assertSame([['other']], $this->requests);
        $this->answered->complete();
        $sending->await();
        $outcomes->awaitDropped(1.0, null);

        self::assertSame([['other'], ['pending']], $this->requests);
    }

    public function testAForkSendsNothing(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $outcomes = new ReceivedOutcomes($broker = $this->broker(), 'queue', new JobOutbox($broker, 'queue', 'client'));
        $outcomes->add('job', 100);
        $pid = pcntl_fork();
        if ($pid === 0) {
            $outcomes->awaitDropped(1.0, null);
            posix_kill((int) getmypid(), $this->requests === [] ? \SIGKILL : \SIGTERM);
        }
        pcntl_waitpid($pid, $status);
        self::assertIsInt($status);
        self::assertSame(\SIGKILL, pcntl_wtermsig($status));
        $outcomes->awaitDropped(1.0, null);

        self::assertSame([['job']], $this->requests);
    }

    private function requestCount(): int
    {
        return \count($this->requests);
    }

    private function broker(): Broker
    {
        $broker = self::createStub(Broker::class);
        $request = function (string $queue, array|string $ids): void {
            /** @var list<string>|string $ids */
            $this->requests[] = (array) $ids;
            if ($this->failures > 0) {
                --$this->failures;

                throw BrokerUnavailableException::at('redis://localhost', 'the connection broke');
            }
        };
        $broker->method('dropOutcomes')->willReturnCallback($request);
        $broker->method('stopTakingItems')->willReturnCallback($request);
        $broker->method('submit')->willReturnCallback(function (): SubmitResult {
            $this->answered->getFuture()->await();

            return new SubmitResult(1);
        });

        return $broker;
    }
}
