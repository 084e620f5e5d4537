<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\SafeLogger;
use Spindle\LauncherException;
use Spindle\Lifecycle;
use Spindle\Remote\Internal\AgentPools;
use Spindle\Remote\Internal\AgentRun;
use Spindle\Remote\Internal\EngineState;
use Spindle\Remote\Internal\QueueName;
use Spindle\Statistics;
use Spindle\Worker\Executor;
use Spindle\Worker\PortableTask;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

/**
 * Consumes a queue (see `spindle work`): claims its jobs, runs them and reports their outcomes. A job is a task or a
 * command in the queue. A pool of worker processes runs tasks, and helper processes start commands. The agent's own
 * process neither runs tasks nor decodes tasks or results. So no task can delay the renewal of the lease: the agent's
 * time-limited right to its jobs.
 *
 * The queue is in the engine: the Redis or Valkey server of a {@see RedisBroker}.
 */
final class Agent implements Lifecycle, Statistics
{
    use NotCopyable;

    /** Maximum grace period of a command in seconds: the time between SIGTERM and SIGKILL. */
    private const MAX_GRACE_SECONDS = 2.0;

    /**
     * The grace period of jobs is at most AgentOptions::$leaseMargin divided by this number. If jobs needed longer to
     * end, the lease guard (a helper process) would kill all descendants of this process, even those of other agents.
     */
    private const MARGIN_DIVISOR = 3;

    /** All results together may use memory_limit divided by this number: the agent copies each result several times. */
    private const MEMORY_DIVISOR = 8;

    /** Limit in bytes of all results if PHP has no memory_limit. AgentOptions::$maxResultBytes can raise it. */
    private const DEFAULT_RESULTS_BYTES = 128 << 20;

    /** Maximum seconds of a pause between two leases. If the earlier lease was served longer, the pause is short. */
    private const MAX_RETRY_PAUSE = 5.0;

    private readonly AgentPools $pools;
    private readonly LoggerInterface $logger;
    private readonly int $maxResultBytes;

    private bool $isClosed = false;

    /** Id of the process in which {@see run()} runs, or 0. In a fork, the copy of the agent counts as not running. */
    private int $runningPid = 0;

    /** Cancelled by {@see close()} and {@see kill()} while the agent runs. The agent then claims no more jobs. */
    private readonly DeferredCancellation $closing;

    /** Cancelled by {@see kill()} while the agent runs. The agent then ends its jobs, and gives them back. */
    private readonly DeferredCancellation $killing;

    private readonly FiberQueue $closeWaiters;

    private ?AgentRun $run = null;

    /** Whether the engine has answered any claim. Before the first answer, {@see run()} throws on a refused request. */
    private bool $hasClaimed = false;

    /**
     * @param int $workers maximum number of concurrent tasks. In addition, the same number of commands can run
     * @param (\Closure(\Closure(mixed): void): Executor)|null $createPool creates the executor of tasks, and receives a
     *     closure. The executor must pass each report of a task ({@see \Spindle\Worker\TaskContext::report()}) to this
     *     closure. With `$createPool`, no lease guard runs. Null to create a {@see WorkerPool}
     *
     * @throws \ValueError when the queue name is not valid
     */
    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly int $workers,
        private readonly SigningKeys $keys,
        private readonly AgentOptions $options = new AgentOptions(),
        ?LoggerInterface $logger = null,
        ?\Closure $createPool = null,
    ) {
        QueueName::check($queue);
        $this->closing = new DeferredCancellation();
        $this->killing = new DeferredCancellation();
        $this->closeWaiters = new FiberQueue();
        $this->logger = new SafeLogger($logger ?? new NullLogger());
        $budget = $options->pool->resultBudget ?? self::budget($options);
        $this->maxResultBytes = min(self::configuredMaxResultBytes($options), $budget->maxBytes);
        $gracePeriod = $options->leaseMargin / self::MARGIN_DIVISOR;
        $poolLimits = [
            'maxResultBytes' => max($this->maxResultBytes, PortableTask::MIN_EXCEPTION_BYTES)
                + AgentRun::RESULT_OVERHEAD_BYTES,
            'resultBudget' => $budget,
            'gracePeriod' => min($options->pool->gracePeriod, $gracePeriod),
        ];
        $this->pools = new AgentPools(
            $createPool ?? static fn(\Closure $report): WorkerPool
                => new WorkerPool($workers, 0, $options->pool->with(...$poolLimits, onReport: $report)),
            $workers,
            min(self::MAX_GRACE_SECONDS, $gracePeriod),
            $budget,
            $options->leaseGuard && $createPool === null,
            $options->pool->php,
        );
    }

    /**
     * Creates a memory limit for results. Agents share it if their pools have the same object in `$resultBudget`.
     *
     * @internal
     */
    public static function budget(AgentOptions $options): ResultBudget
    {
        $memory = ini_parse_quantity(\ini_get('memory_limit'));

        return new ResultBudget(
            $memory > 0
                ? intdiv($memory, self::MEMORY_DIVISOR)
                : max(self::DEFAULT_RESULTS_BYTES, $options->maxResultBytes),
        );
    }

    private static function configuredMaxResultBytes(AgentOptions $options): int
    {
        return min($options->maxResultBytes, $options->pool->maxResultBytes ?? \PHP_INT_MAX);
    }

    /**
     * Serves the queue until {@see close()} or {@see kill()} is called, and returns when no job is running any more.
     *
     * While the engine is not available, the agent retries. When the agent has lost its lease, it ends its running jobs
     * and takes a new lease. If no worker can be started, the agent returns its jobs to the queue, and run() throws.
     *
     * @throws AgentClosedException
     * @throws BrokerRefusedException when the engine refuses a request before it has answered the first claim. Later,
     *                                the agent logs a refusal and retries
     * @throws InvalidSignatureException when the agent could verify none of the jobs that it has claimed
     * @throws LauncherException when no worker can be started
     * @throws \LogicException when the agent is running already
     */
    public function run(): void
    {
        if ($this->isClosed) {
            throw AgentClosedException::of($this->queue);
        }
        if ($this->isRunning()) {
            throw new \LogicException("The agent of the queue {$this->queue} is running already");
        }
        $this->runningPid = (int) getmypid();
        try {
            $this->warnAboutLowMemory();
            $this->serve($this->closing->getCancellation(), $this->killing->getCancellation());
        } finally {
            try {
                $this->pools->close();
            } finally {
                $this->runningPid = 0;
                $this->closeWaiters->wakeAll();
            }
        }
    }

    /**
     * Claims no more jobs, and waits until {@see run()} has returned. Finishes the jobs that were handed to a worker,
     * even if that worker is still starting. Returns the other claimed jobs to the queue. After
     * {@see AgentOptions::$stopTimeout}, ends the running jobs as {@see kill()} does.
     *
     * Has no effect in a fork of the process that runs the agent.
     *
     * Cancellation: ends the running jobs as {@see kill()} does. They may still be ending when this method throws.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->isClosed = true;
        if (!$this->isRunning()) {
            return;
        }
        $this->closing->cancel();
        $this->closeWaiters->waitOrKill($cancellation, $this->kill(...));
    }

    /**
     * Ends the running jobs and returns all claimed jobs to the queue, without counting an attempt or a crash. But a
     * generator task becomes a dead letter if its caller may have received items, because another attempt would yield
     * these items again. Does not wait until {@see run()} returns.
     *
     * Has no effect in a fork of the process that runs the agent.
     */
    public function kill(): void
    {
        $this->isClosed = true;
        if ($this->isRunning()) {
            $this->closing->cancel();
            $this->killing->cancel();
        }
    }

    /**
     * Replaces the workers, so that new tasks run with the current code. Running tasks finish in the old workers.
     *
     * Has no effect in a fork of the process that runs the agent.
     */
    public function reload(): void
    {
        if ($this->isRunning()) {
            $this->pools->replacePool();
        }
    }

    /**
     * Returns numbers of the agent and of its queue.
     *
     * - `workers`: maximum number of concurrent tasks; `claimed`: claimed jobs that have not ended
     * - `done_total`: jobs with a result; `dead_total`: jobs that this agent has made dead letters. `spindle queue
     *   show` reports the dead letters of all agents as `died`, or as `died_total` with `--json`
     * - `retried_total`: failed or crashed attempts after which the job is tried again
     * - `postponed_total`: runs of tasks that threw a `RetryLaterException`, and run again later
     * - `job_duration_seconds_total`: total duration of all ended attempts, from the moment when the pool got the job;
     *   `job_duration_seconds_le_0.01_total`, and the same with 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800 and `inf`:
     *   number of attempts of up to that many seconds. The metric is the histogram `spindle_pool_job_duration_seconds`
     * - `job_wait_seconds_total`, `job_wait_seconds_le_0.01_total` and so on: the same for the time in which a job
     *   waited for an agent. Delays and waits for an exclusive key are not included
     * - `crashed_total`: attempts whose worker or launcher crashed; most of them also count as retried or dead
     * - `cancelled_total`: jobs that were cancelled after this agent had claimed them
     * - `released_total`: jobs that were given back without an attempt, for example because the agent stops, has more
     *   jobs than it can soon run, or can't verify the job
     * - `stale_total`: outcomes that the engine ignored, because the claim had ended, for example after a lost lease
     * - numbers of the whole queue: `waiting`; `delayed`: jobs that wait for a delay or a retry; `blocked`: jobs that
     *   wait for another job with their exclusive key; `dead`: dead letters; `agents`; `oldest_waiting_seconds`: for
     *   how long the oldest claimable job has been waiting
     *
     * The agent requests the queue's numbers at every fifth heartbeat of a lease. The queue's numbers are absent until
     * the engine's first answer, also after each loss of the lease.
     */
    public function statistics(): array
    {
        $queue = $this->pools->queueStatistics;
        $queueStatistics = $queue === [] ? [] : [
            ...array_intersect_key(
                $queue,
                ['waiting' => 0, 'delayed' => 0, 'blocked' => 0, 'dead' => 0, 'agents' => 0],
            ),
            'oldest_waiting_seconds' => ($queue['oldest_ms'] ?? 0) / 1000,
        ];

        return [
            ...$queueStatistics,
            'workers' => $this->workers,
            'claimed' => $this->run?->jobCount() ?? 0,
            ...$this->pools->statistics(),
        ];
    }

    private function isRunning(): bool
    {
        return $this->runningPid === getmypid();
    }

    private function warnAboutLowMemory(): void
    {
        if ($this->maxResultBytes < self::configuredMaxResultBytes($this->options)) {
            $this->logger->warning(
                'Results are limited to {bytes} bytes, because PHP\'s memory_limit is {limit}',
                ['bytes' => $this->maxResultBytes, 'limit' => \ini_get('memory_limit')],
            );
        }
    }

    private function serve(Cancellation $stop, Cancellation $kill): void
    {
        $backoff = new Backoff(0.1, factor: 2.0, maxDelay: self::MAX_RETRY_PAUSE, jitter: 0.5);
        [$failures, $formerOwner, $failure, $engine] = [0, null, null, new EngineState($this->logger, $this->queue)];
        while (!$stop->isRequested()) {
            $run = $this->createRun($engine);
            $servingSince = \INF;
            try {
                if ($formerOwner !== null) {
                    // The jobs of the previous lease have ended. Without this release, they could count as crashed.
                    $this->broker->releaseLease($this->queue, $formerOwner);
                    $formerOwner = null;
                }
                $run->start();
                $servingSince = Clock::now();
                $this->run = $run;
                $run->serve($stop, $kill);
            } catch (BrokerUnavailableException|LeaseLostException|BrokerRefusedException $failure) {
                $this->hasClaimed = $this->hasClaimed || $run->hasClaimed();
                $failures = Clock::now() - $servingSince > self::MAX_RETRY_PAUSE ? 0 : $failures;
                if ($failure instanceof BrokerRefusedException && !$this->hasClaimed) {
                    throw $failure; // an operator has to change the configuration
                }
                $engine->failed($failure);
                $this->pools->queueStatistics = [];
                $formerOwner ??= $run->idleOwner();
                if ($formerOwner !== null) {
                    $this->pools->guard->extend(\INF); // no job is running, so the guard has nothing to kill
                }
                self::pause($backoff->after(++$failures), $stop);
            } catch (\Throwable $failure) { // for example, no worker can be started
                $this->releaseLease($run->idleOwner(), $engine);

                throw $failure;
            }
        }
        // During an outage, a release would probably get no answer, and only delay the end of the agent.
        if ($failures <= 1 && (!$failure instanceof LeaseLostException || $engine->isAvailable())) {
            $this->releaseLease($formerOwner, $engine);
        }
    }

    private function createRun(EngineState $engine): AgentRun
    {
        return new AgentRun(
            $this->broker,
            $this->queue,
            $this->workers,
            $this->pools,
            $this->keys,
            $this->options,
            $this->maxResultBytes,
            $this->logger,
            $engine,
        );
    }

    private function releaseLease(?string $owner, EngineState $engine): void
    {
        try {
            if ($owner !== null) {
                $this->broker->releaseLease($this->queue, $owner);
            }
        } catch (BrokerUnavailableException|BrokerRefusedException $failure) {
            $engine->failed($failure); // without a release, the lease expires
        }
    }

    private static function pause(float $seconds, Cancellation $stop): void
    {
        try {
            (new Condition())->waitFor($seconds, $stop);
        } catch (CancelledException) {
            // The caller checks $stop.
        }
    }
}
