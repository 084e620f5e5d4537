<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\Future;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\LauncherException;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Delivery;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\TamperedFrameException;
use Spindle\Worker\WorkerCrashedException;

/**
 * An agent's work under one lease and one owner name: renews the lease, claims jobs, runs them and settles them.
 *
 * The work ends when the agent is asked to stop, or when it fails, such as when the lease is lost. A failure cancels
 * the running jobs, because other agents can claim them soon.
 */
final class AgentLease
{
    /**
     * The agent holds as many jobs as finish within CLAIM_SECONDS, at least one per worker. The pool gets as many of
     * them as finish within POOL_SECONDS, also at least one per worker.
     */
    private const CLAIM_SECONDS = 0.1;
    private const POOL_SECONDS = 0.02;

    private const MAX_CLAIMED_JOBS = 2000;

    /** Seconds that are added to the time until a delay is over, because the engine rounds to milliseconds. */
    private const ROUNDING_SECONDS = 0.002;

    /** Maximum size of all outcomes in one request, in bytes. A single outcome may be larger. */
    private const MAX_REQUEST_BYTES = 4 << 20;

    /** An agent that has never verified any job stops after this number of claims. */
    private const MAX_REFUSED_CLAIMS = 5;

    /** Pause of such an agent after its first claim, in seconds. Each further pause is twice as long. */
    private const REFUSAL_PAUSE_SECONDS = 1.0;

    /** Number of heartbeats between two checks for jobs that no agent could claim. */
    private const HEARTBEATS_PER_REPAIR = 5;

    /** Memory that reading a frame needs, as a multiple of the frame's size: the frame is copied several times. */
    private const MEMORY_PER_FRAME = 6;

    private readonly string $owner;
    private readonly SettlementFactory $settlements;
    private readonly Backoff $backoff;

    /** Size of the largest job frame that this process has the memory to read. */
    private readonly int $maxFrameBytes;

    /** @var array<string, ClaimedJob> all claimed jobs, by id */
    private array $jobs = [];

    /** @var array<string, ClaimedJob> claimed jobs that the pool does not have yet, by id */
    private array $waiting = [];

    /** @var array<string, int> claim numbers of withdrawn jobs, by id, whose withdrawal arrived before the job */
    private array $withdrawn = [];

    /** @var array<string, int> entries of $withdrawn at the last heartbeat; the next heartbeat drops them */
    private array $withdrawnBefore = [];

    /** @var list<Settlement> */
    private array $pendingSettlements = [];

    /** Bytes of the frames of all settlements that the engine has not confirmed. */
    private int $settlementBytes = 0;

    /** Bytes of the frames of all claimed jobs. */
    private int $jobBytes = 0;

    /** Number of jobs that the agent wants to hold. */
    private int $capacity;
    private bool $isExchanging = false;
    private bool $isExchangeRequested = false;
    private bool $isStopping = false;
    private bool $isRenewing = false;

    /** Time until which requests are retried while the engine is not available. Finite once jobs are given back. */
    private float $retryDeadline = \INF;

    /** Whether the signature of any job was valid, which shows that the agent has a key of the queue. */
    private bool $hasVerified = false;

    /** Number of claims so far without any verifiable job. */
    private int $refusedClaimCount = 0;

    private float $claimsPausedUntil = 0.0;

    /** Why the last job was refused, if the agent stops for this reason. */
    private ?TamperedFrameException $refusal = null;

    private ?string $stopTimer = null;

    /** Timer that claims again when the delay of the next job is over. */
    private ?string $dueTimer = null;

    private float $dueAt = 0.0;

    /** Last sequence number that was reserved. This lease numbers its jobs in the order in which it claims them. */
    private int $lastReservedNumber = 0;

    /** The pool has received no job with a higher sequence number than this. */
    private int $lastPooledNumber = 0;

    /** The last sequence number from {@see lastStartableSequenceNumber()} that the broker has received. */
    private int $lastReportedNumber = 0;

    /** Whether an answer or a message can have been lost, so that a claim or a withdrawal is unknown here. */
    private bool $mayHaveMissedMessages = false;
    private ?\Throwable $failure = null;

    /** Time of {@see Clock::now()} at which the lease ends unless it is renewed. */
    private float $leaseEnd = 0.0;

    private int $settledSinceHeartbeat = 0;
    private int $heartbeatCount = 0;

    /** Suspends {@see serve()} until the work is over. */
    private readonly Condition $finished;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly int $workers,
        private readonly AgentPools $pools,
        SigningKeys $keys,
        private readonly AgentOptions $options,
        private readonly int $maxResult,
        private readonly LoggerInterface $logger,
    ) {
        $host = (string) preg_replace('/[^A-Za-z0-9.-]+/', '-', (string) gethostname());
        // Random bytes make the name unique: machines can have the same host name.
        $this->owner = substr($host, 0, 40) . ':' . getmypid() . ':' . bin2hex(random_bytes(6));
        $this->settlements = new SettlementFactory($keys, $queue, $this->owner, $maxResult);
        $this->finished = new Condition();
        $this->backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $this->capacity = $workers;
        $memory = ini_parse_quantity(\ini_get('memory_limit'));
        $this->maxFrameBytes = $memory > 0 ? max(1, intdiv($memory, self::MEMORY_PER_FRAME)) : \PHP_INT_MAX;
    }

    /** Returns the owner name if this object has no jobs; otherwise null. */
    public function idleOwner(): ?string
    {
        return $this->jobs === [] ? $this->owner : null;
    }

    public function hasServed(): bool
    {
        return $this->lastReportedNumber > 0;
    }

    public function jobCount(): int
    {
        return \count($this->jobs);
    }

    /**
     * Takes the lease.
     *
     * @throws \Spindle\Remote\BrokerException
     */
    public function start(): void
    {
        $durability = $this->broker->durability();
        $this->renew(true);
        $this->logger->info(
            'Serving the queue {queue} as {owner}. The durability of its jobs is {durability}.',
            ['queue' => $this->queue, 'owner' => $this->owner, 'durability' => $durability->value],
        );
    }

    /**
     * Serves the queue until $stop is requested and all claimed jobs are settled.
     *
     * @param Cancellation $end ends the running jobs and gives them back; not requested before $stop
     *
     * @throws LeaseLostException
     * @throws TamperedFrameException when the agent could verify none of the jobs that it has claimed
     * @throws \Spindle\Remote\BrokerException
     */
    public function serve(Cancellation $stop, Cancellation $end): void
    {
        $close = $this->broker->openMailbox($this->owner, $this->onMessage(...), $this->onMailboxOpen(...));
        $heartbeat = EventLoop::repeat($this->options->heartbeat, $this->heartbeat(...));
        $subscription = $stop->subscribe($this->stop(...));
        $ending = $end->subscribe($this->giveBack(...));
        $this->pools->onReport = $this->onReport(...);
        try {
            $this->requestExchange();
            $this->finished->wait();
            $failure = $this->failure;
            if ($failure !== null) {
                $this->awaitRunningJobs();

                throw $failure;
            }
            $this->broker->releaseLease($this->queue, $this->owner);
            if ($this->refusal !== null) {
                throw TamperedFrameException::noJobVerified($this->queue, $this->refusal);
            }
        } finally {
            $stop->unsubscribe($subscription);
            $end->unsubscribe($ending);
            if ($this->stopTimer !== null) {
                EventLoop::cancel($this->stopTimer);
            }
            EventLoop::cancel($heartbeat);
            $this->cancelDueTimer();
            $close();
            $this->releaseBudget($this->settlementBytes);
        }
    }

    private function onMessage(MailboxMessage $message): void
    {
        if ($message->jobsAvailable) {
            $this->requestExchange();
        }
        if ($message->nextDueIn !== null) {
            $this->requestExchangeIn($message->nextDueIn);
        }
        foreach ($message->withdrawn as $id => $number) {
            $this->cancel($id, $number);
        }
        foreach ($message->taken as $id) {
            ($this->jobs[$id] ?? null)?->notify();
        }
    }

    /** Ends a job that was withdrawn, if $claimNumber is that of its current claim. */
    private function cancel(string $id, int $claimNumber): void
    {
        $job = $this->jobs[$id] ?? null;
        if ($job === null) {
            $this->withdrawn[$id] = $claimNumber; // perhaps the message has arrived before the answer with the job
        } elseif ($job->delivery->claimNumber === $claimNumber) {
            isset($this->waiting[$id])
                ? $this->settle($job, $this->settlements->cancelled($job->delivery))
                : $job->cancel();
        }
    }

    /** Requests the owner's jobs from the broker, because messages before the opening of the mailbox are lost. */
    private function onMailboxOpen(): void
    {
        $this->mayHaveMissedMessages = true;
        $this->requestExchange();
    }

    /** Handles a report of a worker: forwards the report of a task, or starts the time limit of a task that starts. */
    private function onReport(mixed $report): void
    {
        if (!\is_array($report)) {
            return;
        }
        $id = $report[0] ?? null;
        $job = \is_string($id) ? $this->jobs[$id] ?? $this->jobs["#{$id}"] ?? null : null;
        if ($job === null) {
            return;
        }
        $bytes = $report[1] ?? null;
        \is_string($bytes)
            ? $this->broker->report(
                $this->queue,
                $this->owner,
                $job->delivery->id,
                $job->delivery->claimNumber,
                $this->settlements->report($job->delivery, $bytes),
            )
            : $job->startTimeLimit();
    }

    private function stop(): void
    {
        $this->isStopping = true;
        foreach ($this->waiting as $job) {
            $this->settle($job, $this->settlements->released($job->delivery));
        }
        if ($this->options->stopTimeout !== null) {
            $this->stopTimer = EventLoop::unreference(EventLoop::delay(
                $this->options->stopTimeout,
                $this->giveBack(...),
            ));
        }
        $this->requestExchange();
    }

    /** After {@see stop()}, ends the running jobs and gives them back. This counts as no attempt and as no crash. */
    private function giveBack(): void
    {
        $this->retryDeadline = min($this->retryDeadline, Clock::now() + $this->options->margin);
        $this->logger->warning('Ending {count} running jobs and giving them back', ['count' => \count($this->jobs)]);
        foreach ($this->jobs as $job) {
            $job->giveBack();
        }
    }

    private function heartbeat(): void
    {
        if ($this->isExpiring()) {
            $this->abandon(LeaseLostException::of($this->owner));

            return;
        }
        if ($this->isRenewing) {
            return;
        }
        $this->withdrawn = array_diff_key($this->withdrawn, $this->withdrawnBefore);
        $this->withdrawnBefore = $this->withdrawn;
        $rate = $this->settledSinceHeartbeat / $this->options->heartbeat;
        $this->settledSinceHeartbeat = 0;
        $this->capacity = (int) max($this->workers, min(self::MAX_CLAIMED_JOBS, $rate * self::CLAIM_SECONDS));
        $running = \count($this->jobs) - \count($this->waiting);
        // Jobs beyond the new capacity are given back, because other agents can be idle.
        foreach (\array_slice($this->waiting, max(0, $this->capacity - $running), null, true) as $job) {
            $this->settle($job, $this->settlements->released($job->delivery));
        }
        $this->isRenewing = true;
        try {
            $this->renewWithRetries();
            if (++$this->heartbeatCount % self::HEARTBEATS_PER_REPAIR === 0) {
                $this->mayHaveMissedMessages = true;
                $this->pools->queueStatistics = $this->broker->statistics($this->queue);
                $repaired = $this->broker->repair($this->queue);
                if ($repaired > 0) {
                    $this->logger->error(
                        'Repaired the queue: {count} jobs could not be claimed. They can be claimed again. '
                            . 'Was the data in the engine changed by hand?',
                        ['count' => $repaired],
                    );
                }
            }
            $this->requestExchange();
        } catch (BrokerUnavailableException $failure) {
            $this->logger->warning($failure->getMessage());
        } catch (\Throwable $failure) {
            $this->abandon($failure);
        } finally {
            $this->isRenewing = false;
        }
    }

    /** Renews the lease. Retries after a failure, without waiting for the next heartbeat. */
    private function renewWithRetries(): void
    {
        for ($failures = 1; $this->finished->isAwaited(); ++$failures) {
            try {
                $this->renew(false);

                return;
            } catch (BrokerUnavailableException $failure) {
                $this->logger->warning(
                    'The lease could not be renewed: {reason}',
                    ['reason' => $failure->getMessage()],
                );
            }
            \Amp\delay($this->backoff->after($failures));
        }
    }

    private function isExpiring(): bool
    {
        return Clock::now() > $this->leaseEnd - $this->options->margin;
    }

    /** @param bool $isNew whether the broker does not know the owner yet */
    private function renew(bool $isNew): void
    {
        $sentAt = Clock::now();
        $dueIn = $this->broker->renewLease(
            $this->queue,
            $this->owner,
            $this->options->lease,
            $isNew,
            json_encode(['workers' => $this->workers, 'claimed' => \count($this->jobs)], \JSON_THROW_ON_ERROR),
            $this->options->maxDeadLetters,
            $this->options->deadLetterRetention,
        );
        $this->leaseEnd = $sentAt + $this->options->lease;
        if ($this->failure === null) {
            $this->pools->extend($this->leaseEnd - $this->options->margin / 2);
        }
        if ($dueIn !== null && $dueIn < $this->options->heartbeat) {
            $this->requestExchangeIn($dueIn);
        }
    }

    /** Claims again in $seconds, when the delay of a job is over. One timer waits for the earliest of these times. */
    private function requestExchangeIn(float $seconds): void
    {
        $time = Clock::now() + $seconds + self::ROUNDING_SECONDS;
        if ($this->dueTimer !== null && $this->dueAt <= $time) {
            return;
        }
        $this->cancelDueTimer();
        $this->dueAt = $time;
        $this->dueTimer = EventLoop::unreference(EventLoop::delay($seconds + self::ROUNDING_SECONDS, function (): void {
            $this->dueTimer = null;
            $this->requestExchange();
        }));
    }

    private function cancelDueTimer(): void
    {
        if ($this->dueTimer !== null) {
            EventLoop::cancel($this->dueTimer);
            $this->dueTimer = null;
        }
    }

    /** Schedules {@see exchange()}, or makes a running exchange() continue: jobs can be settled or claimed. */
    private function requestExchange(): void
    {
        $this->isExchangeRequested = true;
        if (!$this->isExchanging && $this->failure === null) {
            $this->isExchanging = true;
            EventLoop::queue($this->exchange(...));
        }
    }

    /**
     * Settles finished jobs and claims others, until there is nothing to send. At most one request is pending, so
     * settlements that arrive while it is pending go together in the next request.
     */
    private function exchange(): void
    {
        $failures = 0;
        try {
            while ($this->failure === null && $this->isExchangeRequested) {
                $this->isExchangeRequested = false;
                try {
                    if ($this->mayHaveMissedMessages) {
                        $this->isExchangeRequested = true;
                        $this->mayHaveMissedMessages = false;
                        $this->recoverClaims(); // perhaps the lease is lost now
                    } else {
                        $this->settleAndClaim();
                        $failures = 0;
                    }
                } catch (BrokerUnavailableException $failure) {
                    $this->recover($failure, ++$failures);
                }
            }
        } catch (\Throwable $failure) {
            $this->abandon($failure);
        } finally {
            $this->isExchanging = false;
        }
        if ($this->isStopping && $this->jobs === [] && $this->pendingSettlements === []) {
            $this->finished->notify();
        }
    }

    /** Sends the pending settlements, and claims as many jobs as this agent can take, unless there is neither. */
    private function settleAndClaim(): void
    {
        $settlements = $this->takeSettlements();
        $maxClaims = $this->mayClaim() ? max(0, $this->capacity - \count($this->jobs)) : 0;
        $lastStartable = $this->lastStartableSequenceNumber();
        $isReported = $lastStartable === $this->lastReportedNumber;
        if ($settlements === [] && $maxClaims === 0 && $isReported) {
            return;
        }
        $first = $this->lastReservedNumber + 1;
        $this->lastReservedNumber += $maxClaims;
        try {
            $claim = $this->broker->settleAndClaim(
                $this->queue,
                $this->owner,
                $settlements,
                $maxClaims,
                $this->options->retention,
                $first,
                $isReported ? null : $lastStartable,
                $this->maxFrameBytes,
            );
        } catch (BrokerUnavailableException $failure) {
            array_unshift($this->pendingSettlements, ...$settlements);

            throw $failure;
        }
        $this->lastReportedNumber = $lastStartable;
        $sizes = array_map(static fn(Settlement $settlement): int => \strlen($settlement->frame), $settlements);
        $this->releaseBudget(array_sum($sizes));
        $this->settledSinceHeartbeat += \count($settlements);
        $this->pools->counters['stale_total'] += \count($claim->stale);
        $ranOut = $this->waiting === [];
        $this->addClaimed($claim->deliveries, $first);
        if ($maxClaims > 0 && \count($claim->deliveries) === $maxClaims) {
            $this->isExchangeRequested = true;
            if ($ranOut && \count($settlements) >= $this->workers) {
                // Jobs finish faster than the engine answers, so the next request claims more jobs.
                $this->capacity = min(self::MAX_CLAIMED_JOBS, $this->capacity + $this->workers);
            }
        }
    }

    private function mayClaim(): bool
    {
        return !$this->isStopping
            && $this->jobBytes < $this->pools->budget->maxBytes
            && Clock::now() >= $this->claimsPausedUntil;
    }

    /** Returns the highest sequence number of a job that the pool can receive before the next request. */
    private function lastStartableSequenceNumber(): int
    {
        return $this->waiting === []
            ? max($this->lastPooledNumber, $this->lastReservedNumber + $this->poolCapacity() - \count($this->jobs))
            : $this->lastPooledNumber;
    }

    private function poolCapacity(): int
    {
        return max($this->workers, (int) ($this->capacity * self::POOL_SECONDS / self::CLAIM_SECONDS));
    }

    /** @return list<Settlement> the first pending settlements: one, or as many as have MAX_REQUEST_BYTES together */
    private function takeSettlements(): array
    {
        $size = 0;
        foreach ($this->pendingSettlements as $i => $settlement) {
            $size += \strlen($settlement->frame);
            if ($size > self::MAX_REQUEST_BYTES && $i > 0) {
                $this->isExchangeRequested = true;

                return array_splice($this->pendingSettlements, 0, $i);
            }
        }
        [$batch, $this->pendingSettlements] = [$this->pendingSettlements, []];

        return $batch;
    }

    /**
     * Recovers from a request without an answer: requests the jobs that the lost answer possibly contained. Otherwise
     * no agent would run them while this lease is renewed.
     */
    private function recover(BrokerUnavailableException $failure, int $failures): void
    {
        if (Clock::now() > $this->retryDeadline) {
            throw $failure;
        }
        $this->logger->warning($failure->getMessage());
        \Amp\delay($this->backoff->after($failures));
        $this->isExchangeRequested = true;
        try {
            $this->recoverClaims();
        } catch (BrokerUnavailableException $again) {
            if ($this->failure === null) {
                $this->recover($again, $failures + 1);
            }
        }
    }

    /** Adds jobs of lost answers, and ends jobs whose withdrawal was lost. Must not run while a claim is pending. */
    private function recoverClaims(): void
    {
        $known = array_column($this->pendingSettlements, 'claimNumber', 'id');
        foreach ($this->jobs as $id => $job) {
            $known[$id] = $job->delivery->claimNumber; // also if an earlier claim of the same job is not settled yet
        }
        $deliveries = [];
        foreach ($this->broker->claimedJobs($this->queue, $this->owner, $known, $this->maxFrameBytes) as $delivery) {
            if (($known[$delivery->id] ?? 0) === $delivery->claimNumber) {
                $this->cancel($delivery->id, $delivery->claimNumber);
            } else {
                $deliveries[] = $delivery;
            }
        }
        // The sequence numbers of the recovered jobs are unknown, so each reserved number can be that of a started job.
        $this->lastPooledNumber = $this->lastReservedNumber;
        $this->addClaimed($deliveries, 0);
    }

    /**
     * @param list<Delivery> $deliveries
     * @param int            $first      sequence number of the first delivery; 0 when unknown
     */
    private function addClaimed(array $deliveries, int $first): void
    {
        if ($this->failure !== null) {
            return; // other agents can claim these jobs when the lease has ended
        }
        $refusals = [];
        foreach ($deliveries as $i => $delivery) {
            if ($delivery->oversizeBytes > 0) {
                $tooLarge = PayloadTooLargeException::forAgent(
                    $delivery->id,
                    $delivery->oversizeBytes,
                    $this->maxFrameBytes,
                );
                $this->logger->error($tooLarge->getMessage());
                $this->addSettlement($this->settlements->refused($delivery, $tooLarge));

                continue;
            }
            try {
                $job = $this->settlements->open($delivery, $first + $i);
                $this->hasVerified = true;
            } catch (TamperedFrameException $refused) {
                $this->logger->error($refused->getMessage());
                $refusals[] = [$delivery, $refused];

                continue;
            }
            $isWithdrawn = ($this->withdrawn[$delivery->id] ?? 0) === $delivery->claimNumber;
            $settlement = match (true) {
                $isWithdrawn => $this->settlements->cancelled($delivery),
                $this->isStopping => $this->settlements->released($delivery),
                default => $this->settlements->withoutRun($job),
            };
            if ($settlement !== null) {
                $this->addSettlement($settlement);
            } else {
                $this->jobs[$delivery->id] = $this->waiting[$delivery->id] = $job;
                $this->jobBytes += \strlen($delivery->frame);
            }
        }
        $this->handleRefusals($refusals);
        $this->fillPool();
    }

    /**
     * Refuses jobs that can't be verified. An agent that has never verified any job possibly has a wrong key, so it
     * gives the jobs back instead. Then it pauses, longer after each such claim, and finally stops.
     *
     * @param list<array{Delivery, TamperedFrameException}> $refusals
     */
    private function handleRefusals(array $refusals): void
    {
        $pause = self::REFUSAL_PAUSE_SECONDS * 2 ** $this->refusedClaimCount;
        foreach ($refusals as [$delivery, $refused]) { // with a delay, so that the next claim returns other jobs
            $this->addSettlement(
                $this->hasVerified
                    ? $this->settlements->refused($delivery, $refused)
                    : $this->settlements->released($delivery, 2 * $pause),
            );
        }
        if ($refusals === [] || $this->hasVerified || $this->isStopping) {
            return;
        }
        if (++$this->refusedClaimCount >= self::MAX_REFUSED_CLAIMS) {
            $this->refusal = $refusals[0][1];
            $this->stop();

            return;
        }
        $this->logger->error(
            'None of the claimed jobs could be verified. The agent claims no jobs for {pause} s. '
                . 'Does the key file have the key that signs them?',
            ['pause' => $pause],
        );
        $this->claimsPausedUntil = Clock::now() + $pause;
        EventLoop::unreference(EventLoop::delay($pause, $this->requestExchange(...)));
    }

    /** Fills the pool with waiting jobs, unless the lease is nearly over or the budget for results is full. */
    private function fillPool(): void
    {
        if ($this->isExpiring() || ($this->settlementBytes > 0 && $this->pools->budget->isFull())) {
            // The next heartbeat abandons an expiring lease. A full budget has room again when results are settled.
            return;
        }
        $capacity = $this->poolCapacity();
        foreach ($this->waiting as $id => $job) {
            if (\count($this->jobs) - \count($this->waiting) >= $capacity) {
                return;
            }
            unset($this->waiting[$id]);
            $this->lastPooledNumber = max($this->lastPooledNumber, $job->sequenceNumber);
            try {
                $run = $this->startJob($job);
            } catch (\Throwable $failure) { // the pool could not be created, or refused the job
                $this->jobFailed($job, $failure);

                return;
            }
            $run->catch(fn(\Throwable $failure) => $this->jobFailed($job, $failure))->ignore();
        }
    }

    /** @return Future<mixed> */
    private function startJob(ClaimedJob $job): Future
    {
        if ($job->body->isCommand()) {
            $runCommand = fn(): CommandResult => $job->body->asCommand()->runOn($this->pools->commands(), $job);

            return \Amp\async(fn() => $this->commandEnded($job, $runCommand()));
        }

        return $this->pools
            ->pool()
            ->submit($job->body->task($job->attempt(), $job->delivery->id, $this->maxResult), $job)
            ->map(fn(mixed $outcome) => $this->taskReturned($job, $outcome));
    }

    private function commandEnded(ClaimedJob $job, CommandResult $result): void
    {
        $size = min($this->maxResult, PortableCommand::outputSize($result));
        $this->pools->budget->acquire($size);
        $this->settle($job, $this->settlements->ofCommand($job, $result));
        $this->pools->budget->release($size);
    }

    private function taskReturned(ClaimedJob $job, mixed $outcome): void
    {
        if ($outcome instanceof \Generator) {
            $store = new ItemStore(
                $outcome,
                $this->broker,
                $this->queue,
                $this->owner,
                $job,
                $this->settlements,
                $this->options->retention,
                $this->pools->budget,
            );
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
        if ($this->isExpiring()) { // perhaps the guard has killed the worker, so this counts as no crash
            $this->abandon(LeaseLostException::of($this->owner));
            unset($this->jobs[$job->delivery->id]);

            return;
        }
        $this->pools->counters['crashed_total'] += (int) (
            $failure instanceof WorkerCrashedException
            || $failure instanceof LauncherException
        );
        $settlement = $this->settlements->ofFailure($job, $failure);
        if ($settlement !== null) {
            $this->settle($job, $settlement);
        } else {
            $this->settle($job, $this->settlements->released($job->delivery));
            $this->abandon($failure); // the job is not the cause, such as when no worker can be started here
        }
    }

    private function settle(ClaimedJob $job, Settlement $settlement): void
    {
        $job->stopTimeLimit();
        $this->jobBytes -= isset($this->jobs[$job->delivery->id]) ? \strlen($job->delivery->frame) : 0;
        unset($this->jobs[$job->delivery->id], $this->waiting[$job->delivery->id]);
        $this->addSettlement($settlement);
        $this->fillPool();
    }

    private function addSettlement(Settlement $settlement): void
    {
        ++$this->pools->counters[$settlement->kind->counter()];
        $this->pendingSettlements[] = $settlement;
        $this->settlementBytes += \strlen($settlement->frame);
        $this->pools->budget->occupy(\strlen($settlement->frame));
        $this->requestExchange();
    }

    /** Frees $bytes of the result budget: the engine has confirmed those results, or they are dropped. */
    private function releaseBudget(int $bytes): void
    {
        $this->settlementBytes -= $bytes;
        $this->pools->budget->release($bytes);
    }

    /** Ends the work with a failure, and cancels the running jobs, so that they end before another agent runs them. */
    private function abandon(\Throwable $failure): void
    {
        $this->failure ??= $failure;
        $this->jobs = array_diff_key($this->jobs, $this->waiting);
        $this->waiting = [];
        foreach ($this->jobs as $job) {
            $job->cancel();
        }
        $this->finished->notify();
    }

    /** Waits until no job is running, at most for the margin. */
    private function awaitRunningJobs(): void
    {
        for ($end = Clock::now() + $this->options->margin; $this->jobs !== [] && Clock::now() < $end;) {
            \Amp\delay(0.02);
        }
    }
}
