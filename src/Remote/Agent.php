<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\NullCancellation;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Spindle\Internal\Backoff;
use Spindle\Remote\Internal\QueueName;
use Spindle\Remote\Internal\Tenure;
use Spindle\Remote\Internal\Workshop;
use Spindle\Statistics;
use Spindle\Worker\Executor;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

/**
 * One machine's share of a queue: claims jobs, has tasks run by a pool of workers and commands by a launcher, and settles them. It
 * runs no task itself and reads nothing of what a task is or gives, so that no task holds up its lease.
 */
final class Agent implements Statistics
{
    /**
     * Seconds that a command has to end, at most. It is a third of the margin, as it is for a task: then what ends with a lease does so before
     * the guard kills all that runs here, that of other queues included.
     */
    private const GRACE = 2.0;
    private const SHARE_OF_MARGIN = 3;

    /** Part of PHP's memory_limit that results may have at once, for each is copied several times; bytes where there is no limit. */
    private const SHARE_OF_MEMORY = 8;
    private const MAX_RESULTS = 128 << 20;

    /** Bytes of a result besides what the task has returned. */
    private const BESIDE_RESULT = 1024;

    private readonly Workshop $workshop;
    private readonly LoggerInterface $logger;

    /** Bytes that a result may have here. */
    private readonly int $maxResult;

    private ?Tenure $tenure = null;
    private bool $hasServed = false;

    /**
     * @param int                                        $workers at once, and so many commands
     * @param (\Closure(\Closure(mixed): void): Executor)|null $pool  makes what runs the tasks, which is given what tasks tell by
     *                                                            {@see \Spindle\Worker\TaskContext::report()}; null for a {@see WorkerPool}
     *
     * @throws \ValueError when the queue can't be called so
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
        $grace = $options->margin / self::SHARE_OF_MARGIN;
        $ofPool = ['maxResult' => $this->maxResult + self::BESIDE_RESULT, 'budget' => $budget, 'grace' => min($options->pool->grace, $grace)];
        $this->workshop = new Workshop(
            $pool ?? static fn(\Closure $report): WorkerPool => new WorkerPool($workers, 0, $options->pool->with(...$ofPool, onReport: $report)),
            $workers,
            min(self::GRACE, $grace),
            $budget,
            $options->guard && $pool === null,
        );
    }

    /** Forbidden: a copy would share what the original owns. */
    private function __clone() {}

    /**
     * Returns what all results together may need here. Agents of one process share it when each has it in the options of its pool.
     *
     * @internal
     */
    public static function budget(AgentOptions $options): ResultBudget
    {
        $memory = ini_parse_quantity(\ini_get('memory_limit'));

        return new ResultBudget($memory > 0 ? intdiv($memory, self::SHARE_OF_MEMORY) : max(self::MAX_RESULTS, $options->maxResult));
    }

    /**
     * Serves the queue until it is told to stop, and then until what it runs is done; what it has not started is given back. When the engine is
     * not available, it waits for it; when its lease has ended, it ends what it runs and takes another one.
     *
     * @param Cancellation|null $end ends what runs, after $stop, without waiting for the stop timeout: it is given back
     *
     * @throws BrokerRefusedException when the engine can't be used as it is, unless that is after the agent has served: then it waits
     * @throws TamperedFrameException when it could verify none of the jobs that it was given
     */
    public function run(Cancellation $stop, ?Cancellation $end = null): void
    {
        if ($this->maxResult < min($this->options->maxResult, $this->options->pool->maxResult ?? \PHP_INT_MAX)) {
            $this->logger->warning('A result may have {bytes} bytes here, because of PHP\'s memory_limit of {limit}', ['bytes' => $this->maxResult, 'limit' => \ini_get('memory_limit')]);
        }
        try {
            $this->serve($stop, $end ?? new NullCancellation());
        } finally {
            $this->workshop->close();
        }
    }

    /** New tasks run in new workers, which load the code as it is then; those that run go on in the old ones. */
    public function reload(): void
    {
        $this->workshop->renew();
    }

    /**
     * The agent's own figures, and, while it has a lease, of the queue as a whole, some seconds old: what waits, is delayed, blocked by another job of its key,
     * or dead, and for how long the oldest job has waited.
     */
    public function statistics(): array
    {
        $queue = $this->workshop->queue;
        $ofQueue = $queue === [] ? [] : [
            ...array_intersect_key($queue, ['waiting' => 0, 'delayed' => 0, 'blocked' => 0, 'dead' => 0, 'agents' => 0]),
            'oldest_seconds' => ($queue['oldest_ms'] ?? 0) / 1000,
        ];

        return [
            ...$ofQueue,
            'workers' => $this->workers, 'in_hand' => $this->tenure?->inHand() ?? 0, ...$this->workshop->counters];
    }

    /**
     * @throws BrokerRefusedException
     * @throws TamperedFrameException
     */
    private function serve(Cancellation $stop, Cancellation $end): void
    {
        $backoff = new Backoff(0.1, 2.0, 5.0, 0.5);
        $former = null;
        for ($failures = 0; !$stop->isRequested();) {
            $tenure = new Tenure($this->broker, $this->queue, $this->workers, $this->workshop, $this->keys, $this->options, $this->maxResult, $this->logger);
            try {
                if ($former !== null) {
                    $this->broker->leave($this->queue, $former); // others may have what it has ended, which did not crash
                    $former = null;
                }
                $tenure->begin();
                $failures = 0;
                $this->tenure = $tenure;
                $tenure->serve($stop, $end);
            } catch (BrokerUnavailableException|LeaseLostException|BrokerRefusedException $failure) {
                $this->hasServed = $this->hasServed || $tenure->hasServed();
                if ($failure instanceof BrokerRefusedException && !$this->hasServed) {
                    throw $failure; // it has never served: somebody has to change something
                }
                $failure instanceof BrokerRefusedException ? $this->logger->error($failure->getMessage()) : $this->logger->warning($failure->getMessage());
                $this->workshop->queue = [];
                $former ??= $tenure->ended();
                if ($former !== null) {
                    $this->workshop->permit(\INF); // nothing runs
                }
                self::pause($backoff->after(++$failures), $stop);
            } catch (\Throwable $failure) { // such as that no worker can be started here: what it had has not crashed
                $this->leave($tenure->ended());

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
            $this->logger->warning($failure->getMessage()); // its lease ends by itself
        }
    }

    private static function pause(float $seconds, Cancellation $stop): void
    {
        try {
            \Amp\delay($seconds, true, $stop);
        } catch (CancelledException) {
            // It stops.
        }
    }
}
