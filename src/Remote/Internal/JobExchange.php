<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\Internal\LoopCallback;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;

/**
 * Settles an agent's claimed jobs (reports how each claim ended) and claims others, during one lease. At most one
 * request is unanswered. Settlements that are added before the answer go into the next request. A {@see JobRunner}
 * decides how many jobs to claim, and runs them.
 */
final class JobExchange
{
    /** Seconds that are added to the time until a job's delay is over, because the engine rounds to milliseconds. */
    private const ROUNDING_SECONDS = 0.002;

    /** Maximum size of all outcomes in one request, in bytes. A single outcome may be larger. */
    private const MAX_REQUEST_BYTES = 4 << 20;

    /** Memory that reading a frame needs, as a multiple of the frame's size: the frame is copied several times. */
    private const MEMORY_PER_FRAME = 6;

    /** Size in bytes of the largest job frame for which this process has enough memory. */
    public readonly int $maxFrameBytes;

    private readonly Backoff $backoff;

    /** @var list<Settlement> */
    private array $pending = [];

    /** Bytes of the frames of all settlements that the engine has not confirmed. */
    private int $settlementBytes = 0;

    private int $finishedCount = 0;

    private bool $isSending = false;
    private bool $isRequested = false;
    private bool $isClosed = false;

    /** Whether an answer with claimed jobs, or a message about a cancellation, was possibly lost. */
    private bool $mayHaveMissedMessages = false;

    /** Time of {@see Clock::now()} until which failed requests are retried; INF before {@see retryUntil()}. */
    private float $retryDeadline = \INF;

    private ?string $dueTimer = null;

    private float $dueAt = 0.0;

    /** Last reserved sequence number. Each request reserves a number for each job that it may claim. */
    private int $lastReservedNumber = 0;

    /** The last result of {@see JobRunner::lastStartableNumber()} that the broker has received. */
    private int $lastReportedNumber = 0;

    public function __construct(private readonly AgentRun $run, private readonly JobRunner $jobs)
    {
        $this->backoff = ReconnectBackoff::backoff();
        $memory = ini_parse_quantity(\ini_get('memory_limit'));
        $this->maxFrameBytes = $memory > 0 ? max(1, intdiv($memory, self::MEMORY_PER_FRAME)) : \PHP_INT_MAX;
    }

    public function hasClaimed(): bool
    {
        return $this->lastReportedNumber > 0; // the first answered claim makes this at least the number of workers
    }

    /** Returns false while the memory for results is full, and the engine has not confirmed all outcomes. */
    public function hasRoom(): bool
    {
        return $this->settlementBytes === 0 || !$this->run->pools->budget->isFull();
    }

    /** Returns the number of jobs whose end the engine has confirmed since the last call. Released jobs don't count. */
    public function takeFinishedCount(): int
    {
        [$count, $this->finishedCount] = [$this->finishedCount, 0];

        return $count;
    }

    public function settle(Settlement $settlement): void
    {
        if ($this->run->hasFailed()) {
            return; // the engine gets no more settlements of this lease
        }
        ++$this->run->pools->counters[$settlement->kind->counter()];
        $this->pending[] = $settlement;
        if (!$this->isClosed) {
            $this->settlementBytes += \strlen($settlement->frame);
            $this->run->pools->budget->forceAcquire(\strlen($settlement->frame));
        }
        $this->request();
    }

    /** Makes {@see sendRequests()} send a request soon, because jobs can be settled or claimed. */
    public function request(): void
    {
        $this->isRequested = true;
        if (!$this->isSending && !$this->run->hasFailed()) {
            $this->isSending = true;
            EventLoop::queue($this->sendRequests(...));
        }
    }

    /** Claims again in $seconds, when the delay of a job is over. After several calls, the earliest time is used. */
    public function requestIn(float $seconds): void
    {
        $seconds += self::ROUNDING_SECONDS;
        $time = Clock::now() + $seconds;
        if ($this->dueTimer !== null && $this->dueAt <= $time) {
            return;
        }
        LoopCallback::cancel($this->dueTimer);
        $this->dueAt = $time;
        $this->dueTimer = EventLoop::unreference(EventLoop::delay($seconds, function (): void {
            $this->dueTimer = null;
            $this->request();
        }));
    }

    /** Asks the broker which jobs this agent has claimed, because a message or an answer was possibly lost. */
    public function recheck(): void
    {
        $this->mayHaveMissedMessages = true;
        $this->request();
    }

    /** @param float $deadline time of {@see Clock::now()} until which a request without an answer is retried */
    public function retryUntil(float $deadline): void
    {
        $this->retryDeadline = min($this->retryDeadline, $deadline);
    }

    public function close(): void
    {
        $this->isClosed = true;
        LoopCallback::cancel($this->dueTimer);
        $this->releaseBudget($this->settlementBytes);
    }

    private function sendRequests(): void
    {
        $failures = 0;
        try {
            while (!$this->run->hasFailed() && $this->isRequested) {
                $this->isRequested = false;
                try {
                    if ($this->mayHaveMissedMessages) {
                        $this->isRequested = true;
                        $this->mayHaveMissedMessages = false;
                        $this->recoverClaims(); // the run may fail during this call, so the loop checks hasFailed()
                    } else {
                        $this->settleAndClaim();
                        $failures = 0;
                    }
                } catch (BrokerUnavailableException $failure) {
                    $this->recover($failure, ++$failures);
                }
            }
        } catch (\Throwable $failure) {
            $this->run->abandon($failure);
        } finally {
            $this->isSending = false;
        }
        if ($this->pending === []) {
            $this->run->onIdle();
        }
    }

    private function settleAndClaim(): void
    {
        $settlements = $this->takeSettlements();
        $maxClaims = $this->jobs->wantedCount();
        $lastStartable = $this->jobs->lastStartableNumber($this->lastReservedNumber);
        $isReported = $lastStartable === $this->lastReportedNumber;
        if ($settlements === [] && $maxClaims === 0 && $isReported) {
            return;
        }
        $first = $this->lastReservedNumber + 1;
        $this->lastReservedNumber += $maxClaims;
        try {
            $claim = $this->run->broker->settleAndClaim(
                $this->run->queue,
                $this->run->owner,
                $settlements,
                $maxClaims,
                $this->run->options->outcomeRetention,
                $first,
                $isReported ? null : $lastStartable,
                $this->maxFrameBytes,
            );
        } catch (BrokerUnavailableException $failure) {
            array_unshift($this->pending, ...$settlements);

            throw $failure;
        }
        $this->lastReportedNumber = $lastStartable;
        $bytes = $finished = 0;
        foreach ($settlements as $settlement) {
            $bytes += \strlen($settlement->frame);
            $finished += $settlement->kind === SettlementKind::Release ? 0 : 1;
        }
        $this->releaseBudget($bytes);
        $this->finishedCount += $finished;
        $this->run->pools->counters['stale_total'] += \count($claim->stale);
        $ranOut = !$this->jobs->hasWaiting();
        $this->jobs->add($claim->deliveries, $first);
        if ($maxClaims > 0 && \count($claim->deliveries) === $maxClaims) {
            $this->isRequested = true;
            if ($ranOut && $finished >= $this->run->workers) {
                $this->jobs->raiseClaimCapacity(); // jobs finish faster than the engine answers
            }
        }
    }

    /** @return list<Settlement> first entries of $pending: in total MAX_REQUEST_BYTES or less, or one larger entry */
    private function takeSettlements(): array
    {
        $size = 0;
        foreach ($this->pending as $i => $settlement) {
            $size += \strlen($settlement->frame);
            if ($size > self::MAX_REQUEST_BYTES && $i > 0) {
                $this->isRequested = true;

                return array_splice($this->pending, 0, $i);
            }
        }
        [$batch, $this->pending] = [$this->pending, []];

        return $batch;
    }

    /**
     * Recovers from a request without an answer. The lost answer may have contained claimed jobs. This method asks for
     * these jobs, because no other agent can claim them while this lease is renewed.
     */
    private function recover(BrokerUnavailableException $failure, int $failures): void
    {
        if (Clock::now() > $this->retryDeadline) {
            throw $failure;
        }
        $this->run->engine->unavailable($failure);
        (new Condition())->waitFor($this->backoff->after($failures));
        $this->isRequested = true;
        try {
            $this->refuseLargeResults();
            $this->recoverClaims();
        } catch (BrokerUnavailableException $again) {
            if (!$this->run->hasFailed()) {
                $this->recover($again, $failures + 1);
            }
        }
    }

    /** Replaces settlements that are too large for the engine, for example because its limit was lowered. */
    private function refuseLargeResults(): void
    {
        $maxBytes = $this->run->broker->maxFrameBytes();
        $this->run->limitResults($maxBytes);
        foreach ($this->pending as $i => $settlement) {
            if (\strlen($settlement->frame) + \strlen($settlement->reason) > $maxBytes) {
                $this->pending[$i] = $refusal = $this->run->settlements->smaller($settlement, $maxBytes);
                $this->releaseBudget(\strlen($settlement->frame) - \strlen($refusal->frame));
                --$this->run->pools->counters[$settlement->kind->counter()];
                ++$this->run->pools->counters[$refusal->kind->counter()];
            }
        }
    }

    /**
     * Adds claimed jobs that were in a lost answer. Ends cancelled jobs if the message about the cancellation was lost.
     * Must not be called while a claim is unanswered: jobs in the pending answer would count as jobs of a lost answer.
     */
    private function recoverClaims(): void
    {
        // The agent may have claimed a job again while the settlement of an earlier claim is pending. The union then
        // keeps the number of the current claim, which is in the left array.
        $known = $this->jobs->claimNumbers() + array_column($this->pending, 'claimNumber', 'id');
        $deliveries = $this->run->broker->claimedJobs(
            $this->run->queue,
            $this->run->owner,
            $known,
            $this->maxFrameBytes,
        );
        $lost = [];
        foreach ($deliveries as $delivery) {
            if (($known[$delivery->id] ?? 0) === $delivery->claimNumber) {
                $this->jobs->cancel($delivery->id, $delivery->claimNumber);
            } else {
                $lost[] = $delivery;
            }
        }
        $this->jobs->addRecovered($lost, $this->lastReservedNumber);
    }

    private function releaseBudget(int $bytes): void
    {
        $held = min($bytes, $this->settlementBytes); // 0 for an answer after close(), which released all bytes
        $this->settlementBytes -= $held;
        $this->run->pools->budget->release($held);
    }
}
