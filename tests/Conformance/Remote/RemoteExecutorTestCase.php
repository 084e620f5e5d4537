<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Remote\SharesAnAgent;
use Spindle\Worker\Executor;

/** An executor for a queue that one agent serves. */
abstract class RemoteExecutorTestCase extends ExecutorTestCase
{
    use RunsAgents;
    use SharesAnAgent;

    protected function make(?\Closure $onReport): RemoteExecutor
    {
        return $this->on(self::$sharedQueue, $onReport);
    }

    protected function executor(?\Closure $onReport = null): Executor
    {
        return $this->held($this->make($onReport));
    }

    /** Returns an executor with a separate queue and agent. */
    protected function ownExecutor(?\Closure $onReport = null): Executor
    {
        $queue = self::newQueue();
        $this->agent($queue);

        return $this->held($this->on($queue, $onReport));
    }

    private function on(string $queue, ?\Closure $onReport): RemoteExecutor
    {
        $options = new RemoteOptions(maxPayloadBytes: 64 << 20, onReport: $onReport);
        $broker = new RedisBroker(Redis::shared()->url());

        return new RemoteExecutor($broker, $queue, self::keys(), JobRetryPolicy::none(), $options);
    }

    /** Number of jobs that can wait in the pool, in the engine and in this process. */
    protected function itemsAhead(): int
    {
        return 64 + 32 + 32;
    }
}
