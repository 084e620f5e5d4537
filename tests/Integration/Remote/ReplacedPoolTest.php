<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\CancelledException;
use Spindle\Remote\Internal\AgentPools;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

/** The pool of an agent is replaced at a reload. */
final class ReplacedPoolTest extends TidyTestCase
{
    use OwnDirectory;

    public function testATaskBehindASlowOneDoesNotStayInTheOldPool(): void
    {
        $gate = new Gate($this->path('gate'));
        $pools = new AgentPools(static fn(): WorkerPool => new WorkerPool(1), 1, 1.0, new ResultBudget(1), false, null);
        $slow = $pools->pool()->submit(static fn(): string => $gate->pass());
        $gate->awaitTasks(1);
        $waiting = $pools->pool()->submit(static fn(): string => 'old pool');

        $pools->replacePool();

        Eventually::holds($waiting->isComplete(...), 'the old pool returns the task');
        self::assertSame('new pool', $pools->pool()->submit(static fn(): string => 'new pool')->await());
        $gate->open();
        self::assertSame('task', $slow->await());
        $pools->close();
        $this->expectException(CancelledException::class);
        $waiting->await();
    }
}
