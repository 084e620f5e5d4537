<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\Internal\LoopCallback;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\SigningKeys;

/**
 * Does an agent's work for one queue during one lease. The agent claims jobs under an owner name, to which the lease
 * belongs. If the agent does not renew the lease in time, the lease ends, and other agents can claim these jobs. This
 * class renews the lease, while a {@see JobExchange} claims and settles jobs, and a {@see JobRunner} runs them.
 *
 * The work ends when the agent is asked to stop, or after a failure, such as a lost lease. A failure cancels the
 * running jobs, because other agents can claim them soon.
 */
final class AgentRun
{
    /** Number of heartbeats from one call of {@see repair()} to the next. */
    private const HEARTBEATS_PER_REPAIR = 5;

    /** Maximum bytes that a frame, or the answer of a worker, has beside a result, an item or a command's output. */
    public const RESULT_OVERHEAD_BYTES = 1 << 12;

    public readonly string $owner;
    public readonly SettlementFactory $settlements;
    private readonly JobRunner $jobs;
    private readonly JobExchange $exchange;
    private readonly Backoff $backoff;

    private bool $isRenewing = false;
    private bool $isRepairing = false;
    private ?string $stopTimer = null;
    private ?\Throwable $failure = null;

    /** Reason why a claimed job could not be verified. Set only if the agent stops because it could verify no job. */
    private ?InvalidSignatureException $refusal = null;

    /** Time of {@see Clock::now()} at which the lease ends unless it is renewed. */
    private float $leaseEnd = 0.0;

    private int $heartbeatCount = 0;

    /** Condition on which {@see serve()} waits; notified on a failure, or when no job is left after a stop. */
    private readonly Condition $finished;

    public function __construct(
        public readonly Broker $broker,
        public readonly string $queue,
        public readonly int $workers,
        public readonly AgentPools $pools,
        SigningKeys $keys,
        public readonly AgentOptions $options,
        public int $maxResultBytes,
        public readonly LoggerInterface $logger,
        public readonly EngineState $engine,
    ) {
        $host = (string) preg_replace('/[^A-Za-z0-9.-]+/', '-', (string) gethostname());
        // Random bytes make the name unique: machines can have the same host name.
        $this->owner = substr($host, 0, 40) . ':' . getmypid() . ':' . bin2hex(random_bytes(6));
        $log = new FailedJobLog($logger, $queue);
        $this->settlements = new SettlementFactory($keys, $queue, $this->owner, $maxResultBytes, $log);
        $this->jobs = new JobRunner($this, $this->settlements);
        $this->exchange = $this->jobs->exchange;
        $this->finished = new Condition();
        $this->backoff = ReconnectBackoff::backoff();
    }

    public function idleOwner(): ?string
    {
        return $this->jobs->count() === 0 ? $this->owner : null;
    }

    public function hasClaimed(): bool
    {
        return $this->exchange->hasClaimed();
    }

    public function jobCount(): int
    {
        return $this->jobs->count();
    }

    /** @throws \Spindle\Remote\BrokerException */
    public function start(): void
    {
        $durability = $this->broker->durability();
        $this->limitResults($this->broker->maxFrameBytes());
        $this->renew(true);
        $this->logger->info(
            'Serving the queue {queue} as {owner}. The durability of its jobs is {durability}.',
            ['queue' => $this->queue, 'owner' => $this->owner, 'durability' => $durability->value],
        );
    }

    /**
     * Lowers the limit for results to what the engine accepts. The engine closes the connection on a larger value, so
     * the agent would repeat the request for ever.
     */
    public function limitResults(int $maxFrameBytes): void
    {
        $limit = max(1, $maxFrameBytes - self::RESULT_OVERHEAD_BYTES);
        if ($limit < $this->maxResultBytes) {
            $this->maxResultBytes = $this->settlements->maxResultBytes = $limit;
            $this->engine->resultsLimited($limit);
        }
    }

    /**
     * Serves the queue until $stop is requested and all claimed jobs are settled.
     *
     * @param Cancellation $kill ends the running jobs and returns them to the queue; never requested before $stop
     *
     * @throws LeaseLostException
     * @throws InvalidSignatureException when the agent could verify none of the jobs that it has claimed
     * @throws \Spindle\Remote\BrokerException
     */
    public function serve(Cancellation $stop, Cancellation $kill): void
    {
        $close = $this->broker->openMailbox($this->owner, $this->onMessage(...), $this->exchange->recheck(...));
        $heartbeat = EventLoop::repeat($this->options->heartbeat, $this->heartbeat(...));
        $stopSubscription = $stop->subscribe($this->stop(...));
        $killSubscription = $kill->subscribe($this->giveBack(...));
        $this->pools->onReport = $this->jobs->onReport(...);
        try {
            $this->exchange->request();
            $this->finished->wait();
            $failure = $this->failure;
            if ($failure !== null) {
                $this->awaitRunningJobs();

                throw $failure;
            }
            $this->broker->releaseLease($this->queue, $this->owner);
            if ($this->refusal !== null) {
                throw InvalidSignatureException::noJobVerified($this->queue, $this->refusal);
            }
        } finally {
            $stop->unsubscribe($stopSubscription);
            $kill->unsubscribe($killSubscription);
            LoopCallback::cancel($this->stopTimer);
            EventLoop::cancel($heartbeat);
            $close();
            $this->exchange->close();
        }
    }

    /**
     * Returns whether less than {@see AgentOptions::$leaseMargin} seconds of the lease are left. If so, no more jobs
     * start, and the next heartbeat ends the work.
     */
    public function isExpiring(): bool
    {
        return Clock::now() > $this->leaseEnd - $this->options->leaseMargin;
    }

    public function hasFailed(): bool
    {
        return $this->failure !== null;
    }

    /** Ends the work with a failure, and cancels the running jobs, so that they end before another agent runs them. */
    public function abandon(\Throwable $failure): void
    {
        $this->failure ??= $failure;
        $this->jobs->cancelAll();
        $this->finished->notify();
    }

    public function stopUnverified(InvalidSignatureException $refusal): void
    {
        $this->refusal = $refusal;
        $this->stop();
    }

    /** Ends the work if a stopped agent has no jobs. Called by the {@see JobExchange} when no settlement is left. */
    public function onIdle(): void
    {
        if ($this->jobs->isStopped()) {
            $this->finished->notify();
        }
    }

    private function onMessage(MailboxMessage $message): void
    {
        if ($message->jobsAvailable) {
            $this->exchange->request();
        }
        if ($message->nextDueIn !== null) {
            $this->exchange->requestIn($message->nextDueIn);
        }
        foreach ($message->lostAgents as $agent => $count) {
            $this->logger->warning(
                'The agent {agent} of the queue {queue} was lost: its lease ended without a renewal. '
                    . 'Number of its jobs that were requeued: {count}',
                ['agent' => $agent, 'queue' => $this->queue, 'count' => $count],
            );
        }
        foreach ($message->cancelled as $id => $number) {
            $this->jobs->cancel($id, $number);
        }
        foreach ($message->taken as $id) {
            $this->jobs->notify($id);
        }
    }

    private function stop(): void
    {
        $this->jobs->stop();
        if ($this->options->stopTimeout !== null) {
            $this->stopTimer = EventLoop::unreference(EventLoop::delay(
                $this->options->stopTimeout,
                $this->giveBack(...),
            ));
        }
        $this->exchange->request();
    }

    /** Ends the running jobs, and returns them to the queue. This counts neither as an attempt nor as a crash. */
    private function giveBack(): void
    {
        $this->exchange->retryUntil(Clock::now() + $this->options->leaseMargin);
        $count = $this->jobs->count();
        if ($count > 0) {
            $this->logger->warning('Ending {count} running jobs and giving them back', ['count' => $count]);
        }
        $this->jobs->giveBack();
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
        $this->jobs->onHeartbeat($this->exchange->takeFinishedCount());
        $this->isRenewing = true;
        try {
            $this->renewWithRetries();
            $this->isRenewing = false; // the repair can outlast the lease, so the next heartbeats must renew the lease
            $this->exchange->request();
            $this->jobs->fillPool(); // the lease may have been nearly over when the waiting jobs arrived
            if (++$this->heartbeatCount % self::HEARTBEATS_PER_REPAIR === 0 && !$this->isRepairing) {
                $this->repair();
            }
        } catch (BrokerUnavailableException $failure) {
            $this->engine->unavailable($failure);
        } catch (\Throwable $failure) {
            $this->abandon($failure);
        }
    }

    private function renewWithRetries(): void
    {
        for ($failures = 1; $this->finished->isAwaited(); ++$failures) {
            try {
                $this->renew(false);

                return;
            } catch (BrokerUnavailableException $failure) {
                $this->engine->unavailable($failure);
            }
            (new Condition())->waitFor($this->backoff->after($failures));
        }
    }

    /** @param bool $isNew true to take a new lease, false to renew the lease */
    private function renew(bool $isNew): void
    {
        $sentAt = Clock::now();
        $dueIn = $this->broker->renewLease(
            $this->queue,
            $this->owner,
            $this->options->lease,
            $isNew,
            json_encode(['workers' => $this->workers, 'claimed' => $this->jobs->count()], \JSON_THROW_ON_ERROR),
            $this->options->maxDeadLetters,
            $this->options->deadLetterRetention,
        );
        $this->engine->available();
        $this->leaseEnd = $sentAt + $this->options->lease;
        if ($this->failure === null) {
            $this->pools->guard->extend($this->leaseEnd - $this->options->leaseMargin / 2);
        }
        if ($dueIn !== null && $dueIn < $this->options->heartbeat) {
            $this->exchange->requestIn($dueIn);
        }
    }

    /** Requests the claimed jobs of lost answers, updates the queue's statistics, and repairs the queue. */
    private function repair(): void
    {
        $this->isRepairing = true;
        try {
            $this->exchange->recheck();
            $this->pools->queueStatistics = $this->broker->statistics($this->queue);
            $repaired = $this->broker->repair($this->queue);
            if ($repaired > 0) {
                $this->logger->error(
                    'Repaired the queue: {count} jobs could not be claimed. They can be claimed again. '
                        . 'Has an operator changed the data in the engine?',
                    ['count' => $repaired],
                );
            }
        } finally {
            $this->isRepairing = false;
        }
    }

    private function awaitRunningJobs(): void
    {
        for ($end = Clock::now() + $this->options->leaseMargin; $this->jobs->count() > 0 && Clock::now() < $end;) {
            (new Condition())->waitFor(0.02);
        }
    }
}
