<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\SharesAnAgent;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\WorkerPool;

/** A remote executor that lives in a worker, and is used by one task after the other. */
final class ExecutorsInWorkersTest extends TidyTestCase
{
    use OwnDirectory;
    use SharesAnAgent;

    private static ?RemoteExecutor $executor = null;

    public function testATaskThatAwaitsNoOutcomeLeavesTheExecutorUsable(): void
    {
        $pool = new WorkerPool(1);
        $arguments = [Redis::shared()->url(), self::$sharedQueue];
        $pool->submit(static function () use ($arguments): void {
            self::executor(...$arguments)->submit('time')->ignore();
        })->await();
        foreach ([1, 2] as $number) {
            $result = $pool->submit(static fn(): mixed => self::executor(...$arguments)->submit(
                static fn(): int => $number,
            )->await())->await();
            self::assertSame($number, $result);
        }
        $pool->submit(static fn() => self::executor(...$arguments)->close())->await();
    }

    private static function executor(string $address, string $queue): RemoteExecutor
    {
        return self::$executor ??= new RemoteExecutor(
            new RedisBroker($address),
            $queue,
            new SigningKeys([AgentProgram::KEY]),
        );
    }
}
