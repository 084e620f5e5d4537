<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Future;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\Future\await;

/** An overloaded agent beside an idle one. */
final class IdleAgentsTest extends TidyTestCase
{
    use OwnDirectory;
    use RunsAgents;

    /** Seconds: lease, heartbeat and lease margin. */
    private const LEASE = [10.0, 0.5, 2.0];

    /** Jobs that may stay with the busy agent: a pool of short tasks gets what it runs in 20 ms. */
    public function testShortTasksDoNotWaitForLongOnesWhereAnotherAgentIsIdle(): void
    {
        $queue = self::newQueue();
        $log = $this->path('log');
        $open = $this->path('open');
        $executor = new RemoteExecutor(new RedisBroker(Redis::shared()->url()), $queue, self::keys());
        [$long, $short] = [[], []];
        for ($i = 1; $i <= 200; ++$i) {
            if ($i === 120 || $i === 121) {
                $task = static fn(): int => LoggedTasks::runUntil($log, $i, $open);
                $long[] = async(self::outcome(...), $executor, $task);
            } else {
                $short[] = async(
                    self::outcome(...),
                    $executor,
                    static fn(): int => LoggedTasks::run($log, 1000 + $i, microseconds: 20_000),
                );
            }
        }
        $this->agent($queue, 2, ...self::LEASE);
        Eventually::holds(
            static fn(): bool => \count(array_intersect_key(LoggedTasks::started($log), [120 => 1, 121 => 1])) === 2,
            'the long ones run',
            20.0,
        );
        $this->agent($queue, 2, ...self::LEASE);
        try {
            Eventually::holds(
                static fn(): bool
                    => \count(array_filter($short, static fn(Future $future): bool => !$future->isComplete())) === 0,
                'the short ones are done meanwhile',
                10.0,
            );
        } finally {
            touch($open);
        }

        self::assertCount(2, await($long));
    }

    private static function outcome(RemoteExecutor $executor, \Closure $task): mixed
    {
        return $executor->submit($task)->await();
    }
}
