<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\Before;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\LeakCheck;
use Spindle\Tests\Processes;
use Spindle\Worker\Executor;
use Spindle\Worker\WorkerPool;

use function Amp\delay;
use function Amp\Future\await;

/**
 * Gives the tests of a class one pool with two workers. If a test changes the pool, the pool is killed without
 * remains, and the next test gets a new pool.
 *
 * @phpstan-import-type Resources from LeakCheck
 * @phpstan-require-extends PoolTestCase
 */
trait SharesPool
{
    private static ?WorkerPool $shared = null;

    /** @var array<int> ids of its workers' processes or threads */
    private static array $workers = [];

    /** @var Resources those before the shared pool was started */
    private static array $beforePool = LeakCheck::NO_RESOURCES;

    #[AfterClass]
    public static function killSharedPool(): void
    {
        [$pool, self::$shared] = [self::$shared, null];
        $pool?->kill();
    }

    /** Starts both workers before the first test. */
    #[Before(20)]
    protected function startSharedPool(): void
    {
        if (self::$shared !== null) {
            return;
        }
        gc_collect_cycles();
        self::$beforePool = $this->surroundings();
        $pool = $this->make(null);
        \assert($pool instanceof WorkerPool);
        $gate = $this->gate('workers');
        $tasks = [];
        foreach (['one', 'other'] as $name) {
            $tasks[] = $pool->submit(static function () use ($gate, $name): int {
                $gate->pass($name);

                return WorkerTasks::worker();
            });
        }
        $gate->awaitTasks(2);
        $gate->open();
        self::$workers = await($tasks);
        self::$shared = $pool;
    }

    /** Whether {@see isPoolAsBefore()} has found no more watchers than the idle pool may have. */
    private bool $hasCheckedWatchers = false;

    protected function executor(?\Closure $onReport = null): Executor
    {
        return $onReport === null
            ? self::$shared ?? self::fail('The shared pool is gone')
            : $this->ownExecutor($onReport);
    }

    /** Drops the pool after a failure, because its event loop may be unusable. */
    #[After(-4)]
    protected function dropSharedPoolAfterFailure(): void
    {
        if ($this->status()->isFailure() || $this->status()->isError()) {
            self::$shared = null;
        }
    }

    #[After(-10)]
    protected function findNothingLeft(): void
    {
        if ($this->status()->isSuccess() && !$this->isPoolAsBefore()) {
            self::killSharedPool();
            $this->before = self::$beforePool;
        } else {
            $this->hasCheckedWatchers = true; // the pool may replace its timers at any time
        }
        parent::findNothingLeft();
    }

    protected function surroundings(): array
    {
        return $this->hasCheckedWatchers ? ['watchers' => []] + parent::surroundings() : parent::surroundings();
    }

    private function isPoolAsBefore(): bool
    {
        delay(0.005);
        // A replacement worker may be starting, and must not be reported as a remainder. The pool may start it before
        // the replaced worker has ended.
        $isReplaced = self::$shared?->statistics()['workers'] !== \count(self::$workers);
        if ($isReplaced || array_filter(self::$workers, Processes::isAlive(...)) !== self::$workers) {
            return false;
        }
        gc_collect_cycles();
        $now = $this->surroundings();
        foreach ($now as $kind => $things) {
            // An idle pool has a timer, and another one for 3 s after a task.
            $isMore = $kind === 'watchers'
                ? \count($things) > \count($this->before[$kind]) + 1
                : array_diff($things, $this->before[$kind]) !== [];
            if ($isMore) {
                return false;
            }
        }

        return $this->leftProcesses() === [];
    }
}
