<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use Spindle\Lifecycle;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentClosedException;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Worker\Executor;
use Spindle\Worker\PortableOutcome;

/** A unit of work is a job in a queue in memory. A job that an agent has ended waits in the queue again. */
final class AgentLifecycleTest extends LifecycleContract
{
    use EndsInTime;

    private const QUEUE = 'queue';

    private MemoryEngine $engine;

    /** @var Future<void>|null of the call of run() */
    private ?Future $run = null;

    /** @var DeferredFuture<string> the result of the task that the agent runs */
    private DeferredFuture $result;

    protected function setUp(): void
    {
        $this->engine = new MemoryEngine();
        $this->result = new DeferredFuture();
    }

    protected function create(): Lifecycle
    {
        $agent = new Agent($this->broker(), self::QUEUE, 1, self::keys(), createPool: fn(): Executor => $this->pool());
        $this->run = Async::run($agent->run(...));
        Eventually::holds(fn(): bool => $this->statistic('agents') === 1, 'the agent serves the queue');

        return $agent;
    }

    protected function begin(Lifecycle $object): Future
    {
        $executor = new RemoteExecutor($this->broker(), self::QUEUE, self::keys());
        $executor->dispatch(static fn(): int => 1);
        $executor->dispatch(static fn(): int => 1); // waits, because the agent has one worker
        \assert($object instanceof Agent);
        Eventually::holds(fn(): bool => $this->statistic('running') === 1, 'the first job is running');

        return Async::run(function (): bool {
            Eventually::holds(fn(): bool => $this->statistic('running') === 0, 'the job has ended');

            return $this->statistic('done_total') === 1;
        });
    }

    protected function finish(): void
    {
        $this->result->complete(PortableOutcome::returned(1));
    }

    protected function giveMore(Lifecycle $object): void
    {
        \assert($object instanceof Agent);
        $object->run();
    }

    protected function refusal(): string
    {
        return AgentClosedException::class;
    }

    #[After(5)]
    protected function checkQueue(): void
    {
        if (!$this->status()->isSuccess()) {
            return;
        }
        $this->run?->await(); // throws what run() threw
        $waiting = $this->statistic('waiting');
        $this->broker()->renewLease(self::QUEUE, 'another', 10.0, true, '{}');
        $claim = $this->broker()->settleAndClaim(self::QUEUE, 'another', [], 2, 1.0);

        self::assertCount($waiting, $claim->deliveries, 'the jobs can be claimed');
        self::assertSame(0, array_sum(array_column($claim->deliveries, 'crashes')), 'the end of a job is no crash');
        self::assertSame(0, array_sum(array_column($claim->deliveries, 'failures')), 'and no attempt');
    }

    private function broker(): MemoryBroker
    {
        return new MemoryBroker($this->engine);
    }

    private static function keys(): SigningKeys
    {
        return new SigningKeys([AgentProgram::KEY]);
    }

    private function statistic(string $name): int
    {
        return $this->engine->queue(self::QUEUE)->statistics()[$name];
    }

    /** Returns an executor whose tasks end when the test says so, or when they are cancelled. */
    private function pool(): Executor
    {
        $pool = self::createStub(Executor::class);
        $pool->method('submit')->willReturnCallback(
            fn(callable $task, Cancellation $cancellation): Future
                => Async::run(fn(): string => $this->result->getFuture()->await($cancellation)),
        );

        return $pool;
    }
}
