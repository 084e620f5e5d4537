<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

use function Amp\async;
use function Amp\delay;

final class WorkerPoolLifecycleTest extends ExecutorLifecycleContract
{
    protected function create(): WorkerPool
    {
        return new WorkerPool(1, options: new WorkerPoolOptions(context: WorkerContext::Process));
    }

    public function testKillAlsoEndsWorkersThatAreStopping(): void
    {
        $pool = $this->create();
        $pool->submit(static function (): void {
            register_shutdown_function(static fn() => sleep(60));
        })->await();
        $closing = async($pool->close(...));
        delay(0);
        $pool->kill();
        $closing->await();
        $start = hrtime(true);
        EventLoop::run();

        self::assertLessThan(1.0, (hrtime(true) - $start) / 1e9, 'A timer of the pool keeps the event loop running');
    }

    public function testACancellationInAForkDoesNotEndThePool(): void
    {
        $pool = $this->create();
        $work = $this->begin($pool);
        $cancellation = new DeferredCancellation();
        $closing = async($pool->close(...), $cancellation->getCancellation());
        delay(0);
        $thrown = $this->path('thrown');
        $pid = pcntl_fork();
        if ($pid === 0) {
            $cancellation->cancel();
            try {
                $closing->await();
            } catch (ExecutorClosedException $forked) {
                file_put_contents($thrown, $forked->getMessage());
            }
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($pid, $status);
        self::assertStringContainsString('Create another pool after the fork', (string) file_get_contents($thrown));
        $this->finish();
        self::assertTrue($work->await());
        $closing->await();
    }
}
