<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\CancelledException;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Internal\AgentPools;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

use function Amp\async;

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

    #[RequiresPhpExtension('pcntl')]
    public function testAForkCanNotReloadTheAgentOfItsParent(): void
    {
        $gate = new Gate($this->path('gate'));
        $broker = new MemoryBroker(new MemoryEngine());
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 1, $keys, new AgentOptions(leaseGuard: false));
        $ended = async($agent->run(...));
        $executor = new RemoteExecutor($broker, 'queue', $keys);
        $task = $executor->submit(static fn(): string => $gate->pass());
        $gate->awaitTasks(1);
        $fork = pcntl_fork();
        if ($fork === 0) {
            $signal = \SIGTERM;
            try {
                $agent->reload();
                $signal = \SIGKILL;
            } finally {
                posix_kill((int) getmypid(), $signal);
            }
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        $gate->open();
        self::assertSame('task', $task->await());
        $agent->close();
        $ended->await();
        self::assertSame(\SIGKILL, pcntl_wtermsig($status));
    }
}
