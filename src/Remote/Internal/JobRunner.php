<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Amp\Future;
use Revolt\EventLoop;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Clock;
use Spindle\LauncherException;
use Spindle\Remote\Delivery;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\Job;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\Settlement;
use Spindle\Worker\WorkerCrashedException;

/** Runs the jobs of an agent's lease. Keeps some in reserve, so that the pool gets a job as soon as it can run one. */
final class JobRunner
{
    /**
     * The agent claims as many jobs as its workers finish within CLAIM_SECONDS, but at least one per worker. The pool
     * gets as many of these jobs as the workers finish within POOL_SECONDS, but also at least one per worker.
     */
    private const CLAIM_SECONDS = 0.1;
    private const POOL_SECONDS = 0.02;
    private const MAX_CLAIMED_JOBS = 2000;

    /** The agent stops after this number of claims if it could verify none of the claimed jobs. */
    private const MAX_REFUSED_CLAIMS = 5;

    /** Pause after the first claim without a verifiable job, in seconds. Each further pause is twice as long. */
    private const REFUSAL_PAUSE_SECONDS = 1.0;

    public readonly JobExchange $exchange;

    /** @var array<string, ClaimedJob> all claimed jobs, by id */
    private array $jobs = [];

    /** @var array<string, ClaimedJob> claimed jobs that the pool does not have yet, by id */
    private array $waiting = [];

    /** @var array<string, int> claim numbers of jobs whose cancellation arrived before the job itself, by id */
    private array $cancelled = [];

    /** @var array<string, int> entries of $cancelled at the last heartbeat; the next heartbeat drops them */
    private array $cancelledBefore = [];

    private int $frameBytes = 0;
    private int $claimCapacity;
    private int $extraClaims = 0;
    private bool $isStopping = false;

    /** Highest sequence number of a job that the pool got; after {@see addRecovered()}, the last reserved number. */
    private int $lastPooledNumber = 0;

    /** Whether the signature of any job was valid, which shows that the agent has a key of the queue. */
    private bool $hasVerified = false;

    private int $refusedClaimCount = 0;
    private float $claimsPausedUntil = 0.0;

    public function __construct(private readonly AgentRun $run, private readonly SettlementFactory $settlements)
    {
        $this->exchange = new JobExchange($run, $this);
        $this->claimCapacity = $run->workers;
    }

    public function count(): int
    {
        return \count($this->jobs);
    }

    public function hasWaiting(): bool
    {
        return $this->waiting !== [];
    }

    public function isStopped(): bool
    {
        return $this->isStopping && $this->jobs === [];
    }

    /** @return array<string, int> claim numbers of the claimed jobs, by id */
    public function claimNumbers(): array
    {
        return array_map(static fn(ClaimedJob $job): int => $job->delivery->claimNumber, $this->jobs);
    }

    public function wantedCount(): int
    {
        $mayClaim = !$this->isStopping
            && $this->frameBytes < $this->run->pools->budget->maxBytes
            && Clock::now() >= $this->claimsPausedUntil;

        return $mayClaim ? max(0, $this->claimCapacity + $this->extraClaims - \count($this->jobs)) : 0;
    }

    /** @return int highest sequence number of a job that the pool can receive before the next request */
    public function lastStartableNumber(int $lastReserved): int
    {
        return $this->waiting === []
            ? max($this->lastPooledNumber, $lastReserved + $this->poolCapacity() - \count($this->jobs))
            : $this->lastPooledNumber;
    }

    public function raiseClaimCapacity(): void
    {
        $this->claimCapacity = min(self::MAX_CLAIMED_JOBS, $this->claimCapacity + $this->run->workers);
    }

    /** @param int $finished number of jobs that have finished since the last heartbeat */
    public function onHeartbeat(int $finished): void
    {
        $this->cancelled = $this->cancelledBefore = array_diff_key($this->cancelled, $this->cancelledBefore);
        $claims = $finished / $this->run->options->heartbeat * self::CLAIM_SECONDS;
        $this->claimCapacity = (int) max($this->run->workers, min(self::MAX_CLAIMED_JOBS, $claims));
        $pooled = \count($this->jobs) - \count($this->waiting);
        // Gives back the waiting jobs beyond the new capacity, because idle agents could run them.
        $surplus = \array_slice($this->waiting, max(0, $this->claimCapacity - $pooled), null, true);
        foreach ($surplus as $job) {
            $this->settle($job, $this->settlements->released($job->delivery));
        }
        if ($pooled > max($this->run->workers, $finished)) {
            $this->run->pools->cancelWaiting(); // takes back jobs that wait in the pool behind slow jobs
        }
        // Perhaps the reader waits for a generator whose agent was lost. No worker is needed to settle that generator.
        // After other jobs were given back, this agent leaves them to idle agents until the next heartbeat.
        $awaiting = $surplus === [] ? array_filter($this->jobs, ClaimedJob::isAwaitingReader(...)) : [];
        $this->extraClaims = min(1, \count($awaiting));
    }

    /**
     * Handles a message of a worker. [id, string] is a report of a task, which the broker forwards. [id] announces the
     * start of a task, and [id, item number or null] a large item or outcome: these affect the time limit of the task.
     */
    public function onReport(mixed $report): void
    {
        if (!\is_array($report)) {
            return;
        }
        $id = $report[0] ?? null;
        $job = \is_string($id) ? $this->jobs[Job::storedId($id)] ?? null : null;
        if ($job === null) {
            return;
        }
        $bytes = $report[1] ?? null;
        match (true) {
            \is_string($bytes) => $this->run->broker->report(
                $this->run->queue,
                $this->run->owner,
                $job->delivery->id,
                $job->delivery->claimNumber,
                $this->settlements->report($job->delivery, $bytes),
            ),
            \count($report) > 1 => $job->pauseForAnnounced(\is_int($bytes) ? $bytes : null),
            default => $job->startTimeLimit(),
        };
    }

    public function notify(string $id): void
    {
        ($this->jobs[$id] ?? null)?->notifyItemsTaken();
    }

    /** Ends a job that was cancelled, if $claimNumber is the number of the job's current claim. */
    public function cancel(string $id, int $claimNumber): void
    {
        $job = $this->jobs[$id] ?? null;
        if ($job === null) {
            $this->cancelled[$id] = $claimNumber; // perhaps the cancellation has arrived before the job
        } elseif ($job->delivery->claimNumber === $claimNumber) {
            isset($this->waiting[$id])
                ? $this->settle($job, $this->settlements->cancelled($job->delivery))
                : $job->cancel();
        }
    }

    /** Returns the waiting jobs to the queue. After that, no more jobs are claimed. */
    public function stop(): void
    {
        $this->isStopping = true;
        foreach (array_splice($this->waiting, 0) as $job) { // empties $waiting, so that settle() starts no job
            $this->settle($job, $this->settlements->released($job->delivery));
        }
    }

    public function giveBack(): void
    {
        foreach ($this->jobs as $job) {
            $job->giveBack();
        }
    }

    /** Ends the running jobs, and drops the waiting jobs without a settlement. */
    public function cancelAll(): void
    {
        $this->jobs = array_diff_key($this->jobs, $this->waiting);
        $this->waiting = [];
        foreach ($this->jobs as $job) {
            $job->cancel();
        }
    }

    /** @param list<Delivery> $deliveries jobs that were in a lost answer */
    public function addRecovered(array $deliveries, int $lastReserved): void
    {
        // The sequence numbers of these jobs are unknown. So jobs with any reserved number count as possibly started.
        $this->lastPooledNumber = $lastReserved;
        $this->add($deliveries, 0);
    }

    /**
     * Adds claimed jobs. Settles jobs that must not run, such as cancelled jobs and jobs that can't be verified.
     *
     * @param list<Delivery> $deliveries
     * @param int            $first      sequence number of the first delivery; 0 when unknown
     */
    public function add(array $deliveries, int $first): void
    {
        if ($this->run->hasFailed()) {
            return; // no job runs under this lease any more; other agents can claim the jobs when the lease has ended
        }
        $refusals = [];
        foreach ($deliveries as $i => $delivery) {
            try {
                $job = $this->open($delivery, $first + $i);
            } catch (PayloadTooLargeException $tooLarge) {
                $this->run->logger->error($tooLarge->getMessage());
                $this->exchange->settle($this->settlements->refused($delivery, $tooLarge));

                continue;
            } catch (InvalidSignatureException $refused) {
                $this->run->logger->error($refused->getMessage());
                $refusals[] = [$delivery, $refused];

                continue;
            }
            $isCancelled = ($this->cancelled[$delivery->id] ?? 0) === $delivery->claimNumber;
            $settlement = match (true) {
                $isCancelled => $this->settlements->cancelled($delivery),
                $this->isStopping => $this->settlements->released($delivery),
                default => $this->settlements->withoutRun($job),
            };
            if ($settlement !== null) {
                $this->exchange->settle($settlement);
            } else {
                $this->jobs[$delivery->id] = $this->waiting[$delivery->id] = $job;
                $this->frameBytes += \strlen($delivery->frame);
            }
        }
        $this->handleRefusals($refusals);
        $this->fillPool();
    }

    /** Fills the pool with waiting jobs, unless the lease is nearly over or the memory for results is full. */
    public function fillPool(): void
    {
        if ($this->run->isExpiring() || !$this->exchange->hasRoom()) {
            return;
        }
        foreach ($this->waiting as $id => $job) {
            if (\count($this->jobs) - \count($this->waiting) >= $this->poolCapacity()) {
                return;
            }
            if (!isset($this->waiting[$id])) { // @phpstan-ignore isset.offset (startJob() may wait for a pool)
                continue;
            }
            unset($this->waiting[$id]);
            $this->lastPooledNumber = max($this->lastPooledNumber, $job->sequenceNumber);
            try {
                $this->startJob($job)->catch(fn(\Throwable $failure) => $this->jobFailed($job, $failure))->ignore();
            } catch (\Throwable $failure) { // the pool could not be created, or refused the job
                $this->jobFailed($job, $failure);

                return;
            }
        }
    }

    /** @throws PayloadTooLargeException|InvalidSignatureException */
    private function open(Delivery $delivery, int $sequenceNumber): ClaimedJob
    {
        if ($delivery->oversizeBytes > 0) {
            throw PayloadTooLargeException::forAgent(
                $delivery->id,
                $delivery->oversizeBytes,
                $this->exchange->maxFrameBytes,
            );
        }
        $job = $this->settlements->open($delivery, $sequenceNumber);
        $this->hasVerified = true;

        return $job;
    }

    /**
     * Refuses jobs that can't be verified. But an agent that has never verified any job may have a wrong key. Such an
     * agent returns these jobs to the queue with a delay, so that its next claim gets other jobs. Before that claim,
     * the agent pauses, each time twice as long as before. After MAX_REFUSED_CLAIMS such claims, the agent stops.
     *
     * @param list<array{Delivery, InvalidSignatureException}> $refusals
     */
    private function handleRefusals(array $refusals): void
    {
        $pause = self::REFUSAL_PAUSE_SECONDS * 2 ** $this->refusedClaimCount;
        foreach ($refusals as [$delivery, $refused]) {
            $this->exchange->settle(
                $this->hasVerified
                    ? $this->settlements->refused($delivery, $refused)
                    : $this->settlements->released($delivery, 2 * $pause),
            );
        }
        if ($refusals === [] || $this->hasVerified || $this->isStopping) {
            return;
        }
        if (++$this->refusedClaimCount >= self::MAX_REFUSED_CLAIMS) {
            $this->run->stopUnverified($refusals[0][1]);

            return;
        }
        $this->run->logger->error(
            'None of the claimed jobs could be verified. The agent claims no jobs for {pause} s. '
                . 'Does the key file have the key that signs the jobs?',
            ['pause' => $pause],
        );
        $this->claimsPausedUntil = Clock::now() + $pause;
        EventLoop::unreference(EventLoop::delay($pause, $this->exchange->request(...)));
    }

    private function poolCapacity(): int
    {
        return max($this->run->workers, (int) ($this->claimCapacity * self::POOL_SECONDS / self::CLAIM_SECONDS));
    }

    /** @return Future<mixed> */
    private function startJob(ClaimedJob $job): Future
    {
        $pools = $this->run->pools;
        if ($job->body->isCommand) {
            $runCommand = static fn(): CommandResult => $job->body->asCommand()->runOn($pools->commands(), $job);

            return \Amp\async(fn() => $this->commandEnded($job, $runCommand()));
        }

        return $pools
            ->pool()
            ->submit($job->body->task($job->attempt(), $job->delivery->id, $this->run->maxResultBytes), $job)
            ->map(fn(mixed $outcome) => $this->taskReturned($job, $outcome));
    }

    private function commandEnded(ClaimedJob $job, CommandResult $result): void
    {
        $budget = $this->run->pools->budget;
        $size = min($this->run->maxResultBytes, PortableCommand::outputSize($result));
        $budget->acquire($size);
        $this->settle($job, $this->settlements->ofCommand($job, $result));
        $budget->release($size);
    }

    private function taskReturned(ClaimedJob $job, mixed $outcome): void
    {
        if ($outcome instanceof \Generator) {
            $store = new ItemStore($outcome, $this->run, $job, $this->settlements);
            EventLoop::queue(function () use ($job, $store): void {
                try {
                    $this->settle($job, $this->settlements->ofTask($job, $store->send()));
                } catch (\Throwable $failure) {
                    $this->jobFailed($job, $failure);
                }
            });

            return;
        }
        $this->settle($job, $this->settlements->ofTask($job, \is_string($outcome) ? $outcome : ''));
    }

    private function jobFailed(ClaimedJob $job, \Throwable $failure): void
    {
        if ($this->run->isExpiring()) { // the lease guard may have killed the worker, so this failure is no crash
            $this->run->abandon(LeaseLostException::of($this->run->owner));
            unset($this->jobs[$job->delivery->id]);

            return;
        }
        if ($failure instanceof CancelledException && !$job->isRequested() && $job->itemCount === null) {
            $this->addUnstarted($job);

            return;
        }
        $isCrash = $failure instanceof WorkerCrashedException || $failure instanceof LauncherException;
        $this->run->pools->counters['crashed_total'] += (int) $isCrash;
        $settlement = $this->settlements->ofFailure($job, $failure);
        $this->settle($job, $settlement ?? $this->settlements->released($job->delivery));
        if ($settlement === null) {
            $this->run->abandon($failure); // the job is not the cause: for example, no worker can be started here
        }
    }

    /** Keeps a job that the pool has not started. Gives it back after a stop, or if the agent has too many jobs. */
    private function addUnstarted(ClaimedJob $job): void
    {
        if ($this->isStopping || \count($this->jobs) > $this->claimCapacity) {
            $this->settle($job, $this->settlements->released($job->delivery));
        } else {
            $job->startedAt = null;
            $this->waiting[$job->delivery->id] = $job;
            $this->fillPool();
        }
    }

    private function settle(ClaimedJob $job, Settlement $settlement): void
    {
        $job->stopTimeLimit();
        $this->run->pools->measure($job, $settlement);
        $this->frameBytes -= isset($this->jobs[$job->delivery->id]) ? \strlen($job->delivery->frame) : 0;
        unset($this->jobs[$job->delivery->id], $this->waiting[$job->delivery->id]);
        $this->exchange->settle($settlement);
        $this->fillPool();
    }
}
