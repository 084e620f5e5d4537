<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Worker\Executor;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

/** What an agent has tasks and commands run by, through all its leases, and what was counted. */
final class Workshop
{
    /** @var array<string, int> */
    public array $counters = ['done_total' => 0, 'retried_total' => 0, 'dead_total' => 0, 'cancelled_total' => 0, 'released_total' => 0, 'stale_total' => 0, 'crashed_total' => 0];

    /** @var array<string, int> of the queue, as {@see \Spindle\Remote\Broker::figures()} has them; none before the first look */
    public array $queue = [];

    /** @var (\Closure(mixed): void)|null gets what tasks tell */
    public ?\Closure $onReport = null;

    private readonly LeaseGuard $guard;
    private ?Executor $pool = null;
    private ?CommandPool $commands = null;

    /**
     * @param \Closure(\Closure(mixed): void): Executor $make
     * @param int                                        $workers commands at once
     * @param float                                      $grace   seconds that a command has to end
     * @param ResultBudget                               $budget  of results, until the engine has them
     * @param bool                                       $guarded whether what is started here ends with the lease in any case
     */
    public function __construct(
        private readonly \Closure $make,
        private readonly int $workers,
        private readonly float $grace,
        public readonly ResultBudget $budget,
        private readonly bool $guarded,
    ) {
        $this->guard = new LeaseGuard();
    }

    /** @param float $until when what runs here is killed unless this is called again, in seconds of a clock that is never set; INF for never */
    public function permit(float $until): void
    {
        $this->guard->permit($until);
    }

    public function pool(): Executor
    {
        $this->watch();

        return $this->pool ??= ($this->make)(function (mixed $report): void {
            if ($this->onReport !== null) {
                ($this->onReport)($report);
            }
        });
    }

    /** A launcher is started with the first command. */
    public function commands(): CommandPool
    {
        $this->watch();

        return $this->commands ??= new CommandPool($this->workers, 0, new CommandPoolOptions(grace: $this->grace, redispatch: true));
    }

    /** The next task gets a new pool; the old one ends when its tasks have. */
    public function renew(): void
    {
        $this->pool = null;
    }

    public function close(): void
    {
        $this->commands?->close();
        $this->commands = null;
        $pool = $this->pool;
        $this->pool = null;
        if ($pool instanceof WorkerPool) {
            $pool->close();
        }
        $this->guard->close();
    }

    private function watch(): void
    {
        if ($this->guarded) {
            $this->guard->start();
        }
    }
}
