<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Revolt\EventLoop;
use Revolt\EventLoop\CallbackType;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Worker\TaskException;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerCrashedException;

final class ForkWorkerFaultsTest extends ContextDependentFaultsTestCase
{
    public function testASuspendedHostDoesNotKeepTasksFromBeingEnded(): void
    {
        $pool = $this->pool(1, timeout: 0.5, gracePeriod: 0.2);
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

    public function testTheDeathOfAHostDuringASuspensionOfItsLauncherIsNoticed(): void
    {
        $pool = $this->pool(1, timeout: 0.5, gracePeriod: 0.2);
        $host = self::outcome($pool->submit('posix_getppid'));
        self::assertIsInt($host);
        $isChecked = static fn(string $id): bool
            => EventLoop::isEnabled($id) && EventLoop::getType($id) === CallbackType::Repeat;
        Eventually::holds(
            static fn(): bool => array_filter(EventLoop::getIdentifiers(), $isChecked) === [],
            'the pool is idle and does not check its launcher',
        );
        $launchers = Processes::launchers();
        array_map(static fn(int $launcher): bool => posix_kill($launcher, \SIGSTOP), $launchers);
        posix_kill($host, \SIGKILL);
        $outcome = self::outcome($pool->submit(new Call('sleep', $this->path('begun'))));

        self::assertInstanceOf(TaskException::class, $outcome);
        self::assertUsable($pool);
    }

    public function testADeathIsReportedAlthoughTheHostHasMissedItsSignal(): void
    {
        $bootstrap = $this->path('bootstrap.php');
        file_put_contents($bootstrap, <<<'PHP'
            <?php
            namespace Spindle\Worker\Internal\Process;

            /** Replaces PHP's function in the host. No SIGCHLD ends its wait, as if each arrived just before it. */
            function stream_select(?array &$reads, ?array &$writes, ?array &$others, ?int $seconds): int|false
            {
                pcntl_sigprocmask(SIG_BLOCK, [SIGCHLD]);

                return \stream_select($reads, $writes, $others, $seconds);
            }
            PHP);
        $pool = $this->pool(1, bootstrap: $bootstrap);
        // The task leaves a fork that has all descriptors of the worker, so no closed descriptor shows the death.
        $future = $pool->submit(static function (): never {
            TaskFunctions::forkThatLivesOn();
            ProcessEnding::Kill->happens();
        });

        self::assertInstanceOf(WorkerCrashedException::class, self::outcome($future));
        self::assertUsable($pool);
    }

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}
