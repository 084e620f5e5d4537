<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\Future;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\LauncherException;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Delivery;
use Spindle\Remote\Keys;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\Settlement;
use Spindle\Remote\TamperedFrameException;
use Spindle\Worker\WorkerCrashedException;

/**
 * An agent's work under one lease and one owner name. Renews the lease, claims jobs, runs them and settles them. It
 * ends when the agent is asked to stop, or when the lease is lost. A lost lease ends its jobs.
 */
final class AgentLease
{
    /** Claim as many jobs as finish in CLAIM_SECONDS. The pool gets those of POOL_SECONDS. At least one per worker. */
    private const CLAIM_SECONDS = 0.1;
    private const POOL_SECONDS = 0.02;

    private const MAX_CLAIMED_JOBS = 2000;

    /** Seconds that are added to delays, because the engine counts milliseconds. */
    private const ROUNDING_SECONDS = 0.002;

    /** Largest size of outcomes in one request in bytes; a single outcome may be larger. */
    private const MAX_REQUEST_BYTES = 4 << 20;

    /** Claims without any verifiable job before the agent stops, and seconds of the first pause after such a claim. */
    private const MAX_REFUSALS = 5;
    private const REFUSAL_PAUSE_SECONDS = 1.0;

    /** Renewals between two checks for jobs that no agent can find. */
    private const BEATS_PER_REPAIR = 5;

    /** Memory that reading a frame needs, as a multiple of the frame, because it is copied several times. */
    private const MEMORY_PER_FRAME = 6;

    private readonly string $owner;
    private readonly JobSettlement $settlements;
    private readonly Backoff $backoff;

    /** Largest frame of a job in bytes that fits into this process's memory. */
    private readonly int $maxFrame;

    /** @var array<string, ClaimedJob> all claimed jobs, by id */
    private array $jobs = [];

    /** @var array<string, ClaimedJob> claimed jobs that the pool does not have yet, by id */
    private array $waiting = [];

    /** @var array<string, int> claim numbers of withdrawn jobs that have not arrived, by job id; kept for two beats */
    private array $withdrawn = [];

    /** @var array<string, int> entries of $withdrawn that existed at the last beat */
    private array $withdrawnBefore = [];

    /** @var list<Settlement> */
    private array $pendingSettlements = [];

    /** Bytes of settlements that the engine has not confirmed, and bytes of the claimed jobs. */
    private int $settlementBytes = 0;
    private int $jobBytes = 0;

    private int $capacity;
    private bool $isExchanging = false;
    private bool $isExchangeRequested = false;
    private bool $isStopping = false;
    private bool $isRenewing = false;

    /** Time until which the agent waits for an engine that is away; shortened when running jobs are given back. */
    private float $retriesUntil = \INF;

    /** Whether a job was verified, which shows that the keys are those of the queue. */
    private bool $hasVerified = false;

    /** Claims in a row without a verifiable job, the end of the pause after them, and the reason for the stop. */
    private int $refusals = 0;
    private float $claimsPausedUntil = 0.0;
    private ?TamperedFrameException $refusal = null;

    private ?string $stopTimer = null;

    /** Timer for the end of the next delay, and the time when it expires. */
    private ?string $dueTimer = null;
    private float $dueAt = 0.0;

    /**
     * Jobs are numbered in the order of their claims. These are the last reserved number, the last one that the pool
     * has, and the last one that the broker knows to have begun.
     */
    private int $lastReserved = 0;
    private int $lastPooled = 0;
    private int $lastReported = 0;

    /** Whether an answer or a message may be lost, so that claimed or withdrawn jobs are unknown here. */
    private bool $mayHaveMissedMessages = false;
    private ?\Throwable $failure = null;

    /** When the lease ends unless it is renewed, in seconds of {@see Clock::now()}. */
    private float $leaseEnds = 0.0;

    private int $settledSinceBeat = 0;
    private int $beats = 0;

    /** @var Suspension<null>|null */
    private ?Suspension $suspension = null;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly int $workers,
        private readonly JobRunner $runner,
        Keys $keys,
        private readonly AgentOptions $options,
        private readonly int $maxResult,
        private readonly LoggerInterface $logger,
    ) {
        $host = (string) preg_replace('/[^A-Za-z0-9.-]+/', '-', (string) gethostname());
        // host names are not unique
        $this->owner = substr($host, 0, 40) . ':' . getmypid() . ':' . bin2hex(random_bytes(6));
        $this->settlements = new JobSettlement($keys, $queue, $this->owner, $maxResult);
        $this->backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $this->capacity = $workers;
        $memory = ini_parse_quantity(\ini_get('memory_limit'));
        $this->maxFrame = $memory > 0 ? max(1, intdiv($memory, self::MEMORY_PER_FRAME)) : \PHP_INT_MAX;
    }

    /** Returns the owner name when none of its jobs runs any more; otherwise null. */
    public function idleOwner(): ?string
    {
        return $this->jobs === [] ? $this->owner : null;
    }

    /** Returns whether the engine has answered a claim. */
    public function hasServed(): bool
    {
        return $this->lastReported > 0;
    }

    public function jobCount(): int
    {
        return \count($this->jobs);
    }

    /** @throws \Spindle\Remote\BrokerException */
    public function start(): void
    {
        $tier = $this->broker->tier();
        $this->renew(true);
        $this->logger->info(
            'Serving the queue {queue} as {owner}; the tier is {tier}',
            ['queue' => $this->queue, 'owner' => $this->owner, 'tier' => $tier->value],
        );
    }

    /**
     * @throws LeaseLostException
     * @throws \Spindle\Remote\BrokerException
     */
    public function serve(Cancellation $stop, Cancellation $end): void
    {
        $close = $this->broker->openMailbox($this->owner, $this->onMessage(...), $this->onMailboxOpen(...));
        $beat = EventLoop::repeat($this->options->beat, $this->beat(...));
        $subscription = $stop->subscribe($this->stop(...));
        $ending = $end->subscribe($this->giveBack(...));
        $this->runner->onReport = $this->report(...);
        try {
            $this->requestExchange();
            $this->suspension = EventLoop::getSuspension();
            $this->suspension->suspend();
            $failure = $this->failure;
            if ($failure !== null) {
                $this->awaitRunningJobs();

                throw $failure;
            }
            $this->broker->leave($this->queue, $this->owner);
            if ($this->refusal !== null) {
                throw TamperedFrameException::noJobVerified($this->queue, $this->refusal);
            }
        } finally {
            $stop->unsubscribe($subscription);
            $end->unsubscribe($ending);
            if ($this->stopTimer !== null) {
                EventLoop::cancel($this->stopTimer);
            }
            EventLoop::cancel($beat);
            $this->cancelDueTimer();
            $close();
            $this->release($this->settlementBytes);
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

    /** Ends a withdrawn job. */
    private function cancel(string $id, int $number): void
    {
        $job = $this->jobs[$id] ?? null;
        if ($job === null) {
            $this->withdrawn[$id] = $number; // the message has overtaken the answer with the job
        } elseif ($job->delivery->number === $number) {
            isset($this->waiting[$id])
                ? $this->settle($job, $this->settlements->cancelled($job->delivery))
                : $job->cancel();
        }
    }

    /** Asks the broker for the owner's jobs, because messages may have been lost before the mailbox was open. */
    private function onMailboxOpen(): void
    {
        $this->mayHaveMissedMessages = true;
        $this->requestExchange();
    }

    /** Sends a task's report to the mailboxes, or starts the time limit of a task that has begun. */
    private function report(mixed $report): void
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
                $job->delivery->number,
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

    /** Ends the running jobs and gives them back. That counts neither as an attempt nor as a crash. */
    private function giveBack(): void
    {
        if (!$this->isStopping) {
            return;
        }
        $this->retriesUntil = min($this->retriesUntil, Clock::now() + $this->options->margin);
        $this->logger->warning('Ending {count} running jobs and giving them back', ['count' => \count($this->jobs)]);
        foreach ($this->jobs as $job) {
            $job->giveBack();
        }
    }

    private function beat(): void
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
        $rate = $this->settledSinceBeat / $this->options->beat;
        $this->settledSinceBeat = 0;
        $this->capacity = (int) max($this->workers, min(self::MAX_CLAIMED_JOBS, $rate * self::CLAIM_SECONDS));
        $running = \count($this->jobs) - \count($this->waiting);
        // other agents may be idle
        foreach (\array_slice($this->waiting, max(0, $this->capacity - $running), null, true) as $job) {
            $this->settle($job, $this->settlements->released($job->delivery));
        }
        $this->isRenewing = true;
        try {
            $this->renewWithRetries();
            if (++$this->beats % self::BEATS_PER_REPAIR === 0) {
                $this->mayHaveMissedMessages = true;
                $this->runner->queueStatistics = $this->broker->statistics($this->queue);
                $repaired = $this->broker->repair($this->queue);
                if ($repaired > 0) {
                    $this->logger->error(
                        'Repaired the queue: {count} jobs could not be claimed, and can be claimed again. '
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

    /**
     * Renews the lease. After a failure it retries without waiting for the next beat.
     *
     * @throws LeaseLostException
     * @throws \Spindle\Remote\BrokerException
     */
    private function renewWithRetries(): void
    {
        for ($failures = 1; $this->suspension !== null; ++$failures) {
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
        return Clock::now() > $this->leaseEnds - $this->options->margin;
    }

    private function renew(bool $joins): void
    {
        $sentAt = Clock::now();
        $dueIn = $this->broker->renew(
            $this->queue,
            $this->owner,
            $this->options->lease,
            $joins,
            json_encode(['workers' => $this->workers, 'in_hand' => \count($this->jobs)], \JSON_THROW_ON_ERROR),
            $this->options->maxDead,
            $this->options->deadRetention,
        );
        $this->leaseEnds = $sentAt + $this->options->lease;
        if ($this->failure === null) {
            $this->runner->extend($this->leaseEnds - $this->options->margin / 2);
        }
        if ($dueIn !== null && $dueIn < $this->options->beat) {
            $this->requestExchangeIn($dueIn);
        }
    }

    /** Asks for jobs again in $seconds, when the delay of a job is over. One timer waits for the earliest of them. */
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

    /** Starts an exchange, because there may be something to settle or to claim. */
    private function requestExchange(): void
    {
        $this->isExchangeRequested = true;
        if (!$this->isExchanging && $this->failure === null) {
            $this->isExchanging = true;
            EventLoop::queue($this->exchange(...));
        }
    }

    /** Settles finished jobs and claims others. Only one request is pending, so that later settlements are batched. */
    private function exchange(): void
    {
        $failures = 0;
        try {
            while ($this->failure === null && $this->isExchangeRequested) {
                $this->isExchangeRequested = false;
                $batch = [];
                try {
                    if ($this->mayHaveMissedMessages) {
                        $this->isExchangeRequested = true;
                        $this->mayHaveMissedMessages = false;
                        $this->recoverClaims();

                        continue; // the loop ends if the lease was lost while waiting
                    }
                    $batch = $this->takeSettlements();
                    $want = $this->mayClaim() ? max(0, $this->capacity - \count($this->jobs)) : 0;
                    $begun = $this->lastThatMayBegin();
                    if ($batch === [] && $want === 0 && $begun === $this->lastReported) {
                        break;
                    }
                    $first = $this->lastReserved + 1;
                    $this->lastReserved += $want;
                    $claim = $this->broker->settle(
                        $this->queue,
                        $this->owner,
                        $batch,
                        $want,
                        $this->options->retention,
                        $first,
                        $begun === $this->lastReported ? null : $begun,
                        $this->maxFrame,
                    );
                    $this->lastReported = $begun;
                } catch (BrokerUnavailableException $failure) {
                    array_unshift($this->pendingSettlements, ...$batch);
                    $this->recover($failure, ++$failures);

                    continue;
                }
                $failures = 0;
                $this->release(array_sum(array_map(
                    static fn(Settlement $settlement): int => \strlen($settlement->frame),
                    $batch,
                )));
                $this->settledSinceBeat += \count($batch);
                $this->runner->counters['stale_total'] += \count($claim->stale);
                $ranOut = $this->waiting === [];
                $this->addClaimed($claim->deliveries, $first);
                if ($want > 0 && \count($claim->deliveries) === $want) {
                    $this->isExchangeRequested = true;
                    if ($ranOut && \count($batch) >= $this->workers) {
                        // jobs finish faster than the engine answers: claim more at once
                        $this->capacity = min(self::MAX_CLAIMED_JOBS, $this->capacity + $this->workers);
                    }
                }
            }
        } catch (\Throwable $failure) {
            $this->abandon($failure);
        } finally {
            $this->isExchanging = false;
        }
        if ($this->isStopping && $this->jobs === [] && $this->pendingSettlements === []) {
            $this->finish();
        }
    }

    private function mayClaim(): bool
    {
        return !$this->isStopping
            && $this->jobBytes < $this->runner->budget->bytes
            && Clock::now() >= $this->claimsPausedUntil;
    }

    /** Returns the number of the last claim that may begin before the next request: the pool has it, or room for it. */
    private function lastThatMayBegin(): int
    {
        return $this->waiting === []
            ? max($this->lastPooled, $this->lastReserved + $this->poolCapacity() - \count($this->jobs))
            : $this->lastPooled;
    }

    /** Returns the largest number of jobs in the pool. */
    private function poolCapacity(): int
    {
        return max($this->workers, (int) ($this->capacity * self::POOL_SECONDS / self::CLAIM_SECONDS));
    }

    /** @return list<Settlement> as many as one request may have; the others stay for the next */
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
     * Recovers from a request without an answer: asks for the jobs that the answer may have given. Otherwise no agent
     * would run them as long as the lease is renewed.
     *
     * @throws BrokerUnavailableException
     */
    private function recover(BrokerUnavailableException $failure, int $failures): void
    {
        if (Clock::now() > $this->retriesUntil) {
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

    /** Takes jobs of lost answers, and ends withdrawn ones. Must not run while the answer to a claim may arrive. */
    private function recoverClaims(): void
    {
        $known = array_column($this->pendingSettlements, 'number', 'id');
        foreach ($this->jobs as $id => $job) {
            $known[$id] = $job->delivery->number; // the later claim, when an earlier one is not settled yet
        }
        $deliveries = [];
        foreach ($this->broker->claimedJobs($this->queue, $this->owner, $known, $this->maxFrame) as $delivery) {
            if (($known[$delivery->id] ?? 0) === $delivery->number) {
                $this->cancel($delivery->id, $delivery->number);
            } else {
                $deliveries[] = $delivery;
            }
        }
        $this->lastPooled = $this->lastReserved; // the numbers of these jobs are not known, so all may have begun
        $this->addClaimed($deliveries, 0);
    }

    /**
     * @param list<Delivery> $deliveries
     * @param int            $first      number of the first claim
     */
    private function addClaimed(array $deliveries, int $first): void
    {
        if ($this->failure !== null) {
            return; // other agents may claim them soon
        }
        $refusals = [];
        foreach ($deliveries as $i => $delivery) {
            if ($delivery->tooLarge > 0) {
                $tooLarge = PayloadTooLargeException::forAgent($delivery->id, $delivery->tooLarge, $this->maxFrame);
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
            $isWithdrawn = ($this->withdrawn[$delivery->id] ?? 0) === $delivery->number;
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
     * Gives back jobs that can't be verified. An agent that has never verified a job may have a wrong key. It then
     * releases the jobs instead of refusing them, claims less and less often, and finally stops.
     *
     * @param list<array{Delivery, TamperedFrameException}> $refusals
     */
    private function handleRefusals(array $refusals): void
    {
        $pause = self::REFUSAL_PAUSE_SECONDS * 2 ** $this->refusals;
        foreach ($refusals as [$delivery, $refused]) { // delayed, so that the next claim gets other jobs
            $this->addSettlement(
                $this->hasVerified
                    ? $this->settlements->refused($delivery, $refused)
                    : $this->settlements->released($delivery, 2 * $pause),
            );
        }
        if ($refusals === [] || $this->hasVerified || $this->isStopping) {
            return;
        }
        if (++$this->refusals >= self::MAX_REFUSALS) {
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

    /** Gives the pool the jobs that it can run soon, unless the lease is nearly over, such as after SIGSTOP. */
    private function fillPool(): void
    {
        if ($this->isExpiring() || ($this->settlementBytes > 0 && $this->runner->budget->isFull())) {
            return; // the next beat abandons the lease, or this is called again when the engine has accepted results
        }
        $capacity = $this->poolCapacity();
        foreach ($this->waiting as $id => $job) {
            if (\count($this->jobs) - \count($this->waiting) >= $capacity) {
                return;
            }
            unset($this->waiting[$id]);
            $this->lastPooled = max($this->lastPooled, $job->number);
            try {
                $run = $this->startJob($job);
            } catch (\Throwable $failure) { // the pool can't be created, or does not accept the job
                $this->jobFailed($job, $failure);

                return;
            }
            $run->catch(fn(\Throwable $failure) => $this->jobFailed($job, $failure))->ignore();
        }
    }

    /**
     * @return Future<mixed>
     *
     * @throws \Throwable
     */
    private function startJob(ClaimedJob $job): Future
    {
        if ($job->body->isCommand()) {
            $run = fn(): CommandResult => $job->body->asCommand()->runOn($this->runner->commands(), $job);

            return \Amp\async(fn() => $this->commandEnded($job, $run()));
        }

        return $this->runner
            ->pool()
            ->submit($job->body->task($job->attempt(), $job->delivery->id, $this->maxResult), $job)
            ->map(fn(mixed $outcome) => $this->taskReturned($job, $outcome));
    }

    private function commandEnded(ClaimedJob $job, CommandResult $result): void
    {
        $size = min($this->maxResult, PortableCommand::outputSize($result));
        $this->runner->budget->await($size);
        $this->settle($job, $this->settlements->ofCommand($job, $result));
        $this->runner->budget->release($size);
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
                $this->runner->budget,
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
        if ($this->isExpiring()) { // the process was stopped, so the job was ended for the lease and did not crash
            $this->abandon(LeaseLostException::of($this->owner));
            unset($this->jobs[$job->delivery->id]);

            return;
        }
        $this->runner->counters['crashed_total'] += (int) (
            $failure instanceof WorkerCrashedException
            || $failure instanceof LauncherException
        );
        $settlement = $this->settlements->ofFailure($job, $failure);
        if ($settlement !== null) {
            $this->settle($job, $settlement);
        } else {
            $this->settle($job, $this->settlements->released($job->delivery));
            $this->abandon($failure); // no worker can be started here
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
        ++$this->runner->counters[$settlement->kind->counter()];
        $this->pendingSettlements[] = $settlement;
        $this->settlementBytes += \strlen($settlement->frame);
        $this->runner->budget->occupy(\strlen($settlement->frame));
        $this->requestExchange();
    }

    /** Frees $bytes of the result budget, because the engine has those results or they are not needed any more. */
    private function release(int $bytes): void
    {
        $this->settlementBytes -= $bytes;
        $this->runner->budget->release($bytes);
    }

    /** Ends the running jobs of a lost lease, before another agent runs them. */
    private function abandon(\Throwable $failure): void
    {
        $this->failure ??= $failure;
        $this->jobs = array_diff_key($this->jobs, $this->waiting);
        $this->waiting = [];
        foreach ($this->jobs as $job) {
            $job->cancel();
        }
        $this->finish();
    }

    /** Waits until none of the jobs runs any more, at most for the margin. */
    private function awaitRunningJobs(): void
    {
        for ($end = Clock::now() + $this->options->margin; $this->jobs !== [] && Clock::now() < $end;) {
            \Amp\delay(0.02);
        }
    }

    private function finish(): void
    {
        $suspension = $this->suspension;
        $this->suspension = null;
        $suspension?->resume();
    }
}
