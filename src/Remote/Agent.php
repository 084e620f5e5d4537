<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\NullCancellation;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Spindle\Internal\Backoff;
use Spindle\Remote\Internal\AgentLease;
use Spindle\Remote\Internal\JobRunner;
use Spindle\Remote\Internal\QueueName;
use Spindle\Statistics;
use Spindle\Worker\Executor;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

/**
 * Claims the jobs of a queue, runs them and settles them. A pool of workers runs tasks, and a launcher runs commands.
 * The agent itself runs no task and decodes neither tasks nor results, so no task delays the renewal of its lease.
 */
final class Agent implements Statistics
{
    /**
     * Longest grace of a command in seconds. Commands and tasks get at most a third of the margin, so that they end
     * before the guard kills all processes of this agent, including those of other queues.
     */
    private const MAX_GRACE_SECONDS = 2.0;
    private const MARGIN_DIVISOR = 3;

    /** All results together may have memory_limit divided by this, because they are copied several times. */
    private const MEMORY_DIVISOR = 8;

    /** Bytes that all results together may have without a memory_limit. */
    private const DEFAULT_RESULTS_BYTES = 128 << 20;

    /** Bytes of overhead in a result. */
    private const RESULT_OVERHEAD_BYTES = 1024;

    private readonly JobRunner $runner;
    private readonly LoggerInterface $logger;

    /** Largest result in bytes. */
    private readonly int $maxResult;

    private ?AgentLease $lease = null;
    private bool $hasServed = false;

    /**
     * @param int                                        $workers limit of tasks at once, and of commands at once
     * @param (\Closure(\Closure(mixed): void): Executor)|null $pool creates the executor of tasks; its argument
     *     receives what tasks send with {@see \Spindle\Worker\TaskContext::report()}; null for a {@see WorkerPool}
     *
     * @throws \ValueError when the queue name is not valid
     */
    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly int $workers,
        private readonly Keys $keys,
        private readonly AgentOptions $options = new AgentOptions(),
        ?LoggerInterface $logger = null,
        ?\Closure $pool = null,
    ) {
        QueueName::check($queue);
        $this->logger = $logger ?? new NullLogger();
        $budget = $options->pool->budget ?? self::budget($options);
        $this->maxResult = min($options->maxResult, $options->pool->maxResult ?? \PHP_INT_MAX, $budget->bytes);
        $grace = $options->margin / self::MARGIN_DIVISOR;
        $ofPool = [
            'maxResult' => $this->maxResult + self::RESULT_OVERHEAD_BYTES,
            'budget' => $budget,
            'grace' => min($options->pool->grace, $grace),
        ];
        $this->runner = new JobRunner(
            $pool ?? static fn(\Closure $report): WorkerPool
                => new WorkerPool($workers, 0, $options->pool->with(...$ofPool, onReport: $report)),
            $workers,
            min(self::MAX_GRACE_SECONDS, $grace),
            $budget,
            $options->guard && $pool === null,
        );
    }

    /** Forbids copies, which would share the original's resources. */
    private function __clone() {}

    /**
     * Returns a memory budget for all results. Agents of one process share it when each has it in its pool options.
     *
     * @internal
     */
    public static function budget(AgentOptions $options): ResultBudget
    {
        $memory = ini_parse_quantity(\ini_get('memory_limit'));

        return new ResultBudget(
            $memory > 0 ? intdiv($memory, self::MEMORY_DIVISOR) : max(self::DEFAULT_RESULTS_BYTES, $options->maxResult),
        );
    }

    /**
     * Serves the queue until $stop is requested and the running jobs are done. Claimed jobs that have not started are
     * given back. While the engine is not available, the agent waits. When the agent has lost its lease, it ends its
     * jobs and takes a new lease.
     *
     * @param Cancellation|null $end after $stop, ends running jobs before the stop timeout and gives them back
     *
     * @throws BrokerRefusedException when the engine can't be used and the agent has never served; later it retries
     * @throws TamperedFrameException when the agent could verify none of the jobs that it claimed
     */
    public function run(Cancellation $stop, ?Cancellation $end = null): void
    {
        if ($this->maxResult < min($this->options->maxResult, $this->options->pool->maxResult ?? \PHP_INT_MAX)) {
            $this->logger->warning(
                'Results are limited to {bytes} bytes, because PHP\'s memory_limit is {limit}',
                ['bytes' => $this->maxResult, 'limit' => \ini_get('memory_limit')],
            );
        }
        try {
            $this->serve($stop, $end ?? new NullCancellation());
        } finally {
            $this->runner->close();
        }
    }

    /** Runs new tasks in new workers, which load the current code. Running tasks go on in the old workers. */
    public function reload(): void
    {
        $this->runner->replacePool();
    }

    /**
     * Returns the agent's own counters and, while it has a lease, figures of the queue. These are some seconds old: the
     * numbers of agents and of waiting, delayed, blocked and dead jobs, and the age of the oldest job in seconds.
     */
    public function statistics(): array
    {
        $queue = $this->runner->queueStatistics;
        $ofQueue = $queue === [] ? [] : [
            ...array_intersect_key(
                $queue,
                ['waiting' => 0, 'delayed' => 0, 'blocked' => 0, 'dead' => 0, 'agents' => 0],
            ),
            'oldest_seconds' => ($queue['oldest_ms'] ?? 0) / 1000,
        ];

        return [
            ...$ofQueue,
            'workers' => $this->workers, 'in_hand' => $this->lease?->jobCount() ?? 0, ...$this->runner->counters];
    }

    /**
     * @throws BrokerRefusedException
     * @throws TamperedFrameException
     */
    private function serve(Cancellation $stop, Cancellation $end): void
    {
        $backoff = new Backoff(0.1, 2.0, 5.0, 0.5);
        $formerOwner = null;
        for ($failures = 0; !$stop->isRequested();) {
            $lease = new AgentLease(
                $this->broker,
                $this->queue,
                $this->workers,
                $this->runner,
                $this->keys,
                $this->options,
                $this->maxResult,
                $this->logger,
            );
            try {
                if ($formerOwner !== null) {
                    // the jobs of that lease were ended and did not crash
                    $this->broker->leave($this->queue, $formerOwner);
                    $formerOwner = null;
                }
                $lease->start();
                $failures = 0;
                $this->lease = $lease;
                $lease->serve($stop, $end);
            } catch (BrokerUnavailableException|LeaseLostException|BrokerRefusedException $failure) {
                $this->hasServed = $this->hasServed || $lease->hasServed();
                if ($failure instanceof BrokerRefusedException && !$this->hasServed) {
                    throw $failure; // the agent has never served: an operator must change the setup
                }
                $failure instanceof BrokerRefusedException
                    ? $this->logger->error($failure->getMessage())
                    : $this->logger->warning($failure->getMessage());
                $this->runner->queueStatistics = [];
                $formerOwner ??= $lease->idleOwner();
                if ($formerOwner !== null) {
                    $this->runner->extend(\INF); // nothing runs
                }
                self::pause($backoff->after(++$failures), $stop);
            } catch (\Throwable $failure) { // for example, no worker can be started; the jobs have not crashed
                $this->leave($lease->idleOwner());

                throw $failure;
            }
        }
    }

    private function leave(?string $owner): void
    {
        try {
            if ($owner !== null) {
                $this->broker->leave($this->queue, $owner);
            }
        } catch (BrokerException $failure) {
            $this->logger->warning($failure->getMessage()); // the lease expires
        }
    }

    private static function pause(float $seconds, Cancellation $stop): void
    {
        try {
            \Amp\delay($seconds, true, $stop);
        } catch (CancelledException) {
            // run() ends because $stop was requested.
        }
    }
}
