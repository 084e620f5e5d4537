<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use Revolt\EventLoop;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Tests\Conformance\Worker\ExecutorContract;
use Spindle\Tests\Eventually;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Worker\Executor;

final class RemoteExecutorTest extends ExecutorContract
{
    use RunsAgents;

    protected function make(?\Closure $onReport): Executor
    {
        $queue = self::newQueue();
        $this->agent($queue);

        return new RemoteExecutor(new RedisBroker(Redis::shared()->address()), $queue, self::keys(), JobRetryPolicy::none(), new RemoteOptions(maxPayload: 64 << 20, onReport: $onReport));
    }

    /** Nobody tells when it has ended there. */
    public function testAGeneratorWhoseFutureNobodyHoldsEnds(): void
    {
        $gate = $this->gate();
        $executor = $this->executor();
        $executor->submit(self::endless($gate));
        EventLoop::run(); // goes on until the outcome is there

        Eventually::holds(static fn(): bool => \in_array($gate->names(), [[], ['begun', 'ended']], true), 'it has ended');
        self::assertUsable($executor);
    }

    /** It ends at its next item, in the worker that goes on with other tasks. */
    public function testAGeneratorThatIsLeftCostsNoWorker(): void
    {
        $executor = $this->executor();
        $workers = [];
        for ($i = 0; $i < 10; ++$i) {
            $workers[] = $executor->submit(static fn(): int => (int) getmypid())->await();
            $executor->submit(static function (): \Generator {
                while (true) {
                    yield;
                }
            });
            EventLoop::run();
        }

        self::assertLessThanOrEqual(2, \count(array_unique($workers)));
    }

    /** Those that wait in the pool, in the engine and here. */
    protected function itemsAhead(): int
    {
        return 64 + 32 + 32;
    }
}
