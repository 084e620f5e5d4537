<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerContext;

final class ForkWorkerFaultsTest extends ContextDependentFaultsTestCase
{
    public function testASuspendedHostDoesNotKeepTasksFromBeingEnded(): void
    {
        $pool = $this->pool(1, timeout: 0.5, grace: 0.2);
        $host = self::outcome($pool->submit('posix_getppid'));
        self::assertIsInt($host);
        posix_kill($host, \SIGSTOP);
        Eventually::holds(static fn(): bool => Processes::state($host) === 'T', 'it has stopped');

        self::assertInstanceOf(
            TaskTimeoutException::class,
            self::outcome($pool->submit(new Call('sleep', $this->path('begun')))),
        );
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($host), 'its process has ended');
        self::assertUsable($pool);
    }

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
