<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Clock;
use Spindle\Internal\Histogram;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Worker\Executor;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

/** The pools that run an agent's tasks and commands, and the agent's counters. All leases use the same pools. */
final class AgentPools
{
    /** Upper bounds of the histograms, in seconds. */
    private const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0, \INF];

    /** @var array<string, int> totals since the start of the agent */
    public array $counters = [
        'done_total' => 0,
        'retried_total' => 0,
        'postponed_total' => 0,
        'dead_total' => 0,
        'cancelled_total' => 0,
        'released_total' => 0,
        'stale_total' => 0,
        'crashed_total' => 0,
    ];

    /** @var array<string, int> last answer of {@see \Spindle\Remote\Broker::statistics()} in this lease; [] for none */
    public array $queueStatistics = [];

    /** @var (\Closure(mixed): void)|null receives the reports of tasks */
    public ?\Closure $onReport = null;

    /** Seconds from the start of an attempt to its end, for each job that has run. */
    private readonly Histogram $durations;

    /** Seconds from the moment when a job became claimable to its claim. */
    private readonly Histogram $waits;

    /** Helper that kills the agent's processes shortly before the lease ends; started only if `$isGuarded`. */
    public readonly LeaseGuard $guard;
    private ?Executor $pool = null;
    private ?CommandPool $commands = null;

    /**
     * @param \Closure(\Closure(mixed): void): Executor $createPool creates the executor, which must pass the reports of
     *                                                              tasks to the closure that $createPool receives
     * @param int                                       $maxCommands maximum number of concurrent commands
     * @param float                                     $gracePeriod seconds between SIGTERM and SIGKILL for a command
     * @param ResultBudget                              $budget     memory budget of results that are not settled yet
     * @param bool                                      $isGuarded  whether a {@see LeaseGuard} kills processes that
     *                                                              still run shortly before the lease ends
     * @param string|null                               $php        PHP binary of launchers and the LeaseGuard; null to
     *                                                              search for one
     */
    public function __construct(
        private readonly \Closure $createPool,
        private readonly int $maxCommands,
        private readonly float $gracePeriod,
        public readonly ResultBudget $budget,
        private readonly bool $isGuarded,
        private readonly ?string $php,
    ) {
        $this->guard = new LeaseGuard($php);
        $this->durations = new Histogram(self::BOUNDS);
        $this->waits = new Histogram(self::BOUNDS);
    }

    /** Adds the times of an ended attempt to the histograms, unless the job was given back. */
    public function measure(ClaimedJob $job, Settlement $settlement): void
    {
        if ($job->startedAt !== null && $settlement->kind !== SettlementKind::Release) {
            $this->durations->add(Clock::now() - $job->startedAt);
            $this->waits->add($job->delivery->waitedSeconds);
        }
    }

    /** @return array<string, int|float> as {@see \Spindle\Statistics} describes */
    public function statistics(): array
    {
        return [
            ...$this->counters,
            ...$this->durations->statistics('job_duration_seconds'),
            ...$this->waits->statistics('job_wait_seconds'),
        ];
    }

    /** Returns the executor of tasks. The first call, and the first call after {@see replacePool()}, creates it. */
    public function pool(): Executor
    {
        $this->startGuard();

        return $this->pool ??= ($this->createPool)(function (mixed $report): void {
            if ($this->onReport !== null) {
                ($this->onReport)($report);
            }
        });
    }

    public function commands(): CommandPool
    {
        $this->startGuard();

        return $this->commands ??= new CommandPool(
            $this->maxCommands,
            0,
            new CommandPoolOptions(gracePeriod: $this->gracePeriod, rerunAfterCrash: true, php: $this->php),
        );
    }

    /** Cancels the waiting commands. Also cancels the waiting tasks if their executor is a {@see WorkerPool}. */
    public function cancelWaiting(): void
    {
        $this->commands?->cancelWaiting();
        if ($this->pool instanceof WorkerPool) {
            $this->pool->cancelWaiting();
        }
    }

    /** Makes the next call of {@see pool()} create a new pool. The old pool ends when its started tasks have ended. */
    public function replacePool(): void
    {
        $pool = $this->pool;
        $this->pool = null;
        if ($pool instanceof WorkerPool) {
            $pool->cancelWaiting(); // the agent hands these tasks to the new pool
        }
    }

    public function close(): void
    {
        $this->commands?->kill();
        $this->commands = null;
        $pool = $this->pool;
        $this->pool = null;
        try {
            $pool?->close();
        } catch (CannotWaitException) { // @phpstan-ignore catch.neverThrown (a wait of the pool may throw it)
            $pool->kill(); // PHP is destroying the agent's fiber at the end of the script, so no wait is possible
        }
        $this->guard->close();
    }

    private function startGuard(): void
    {
        if ($this->isGuarded) {
            $this->guard->start();
        }
    }
}
