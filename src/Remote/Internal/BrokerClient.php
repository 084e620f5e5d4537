<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Clock;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Job;
use Spindle\Remote\JobConflictException;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RemoteOptions;

/**
 * The client of a broker in one process: submits and withdraws jobs, and passes outcomes to the objects that wait for
 * them. Each broker object has one client with one mailbox, which all executors with this object share.
 */
final class BrokerClient
{
    private const MAX_JOBS_PER_REQUEST = 1000;

    /** Seconds between two lookups of all jobs with waiters, in case a message was lost. */
    private const LOOKUP_INTERVAL = 30.0;

    /** Pause in seconds before a request without an answer is retried. */
    private const RETRY_SECONDS = 0.5;

    /** Number of delivered outcomes of one queue after which the engine is asked to drop those of all queues. */
    private const MAX_READ_OUTCOMES = 500;

    /** Total size of delivered outcomes, in bytes, after which the engine is asked to drop them. */
    private const MAX_READ_BYTES = 4 << 20;

    /** @var \WeakMap<Broker, \WeakReference<self>>|null */
    private static ?\WeakMap $clients = null;

    public readonly string $mailbox;

    /** Process id. A fork creates a client of its own, so that it does not read the messages of its parent. */
    private readonly int $pid;

    /** @var array<string, array<string, OutcomeReceiver>> by queue and job id */
    private array $waiters = [];

    /** @var array<string, list<string>> ids of jobs whose outcomes were delivered, by queue */
    private array $readOutcomes = [];

    /** @var array<string, non-empty-list<string>> ids to look up in the next turn of the loop, by queue */
    private array $idsToLookUp = [];

    /** @var list<array{string, string}> queue and id of each job whose outcome is too large for a message */
    private array $largeOutcomes = [];

    private readonly Withdrawals $withdrawals;

    private int $readBytes = 0;

    private int $waiterCount = 0;
    private int $lastJobNumber = 0;

    /** @var array<string, array<array-key, JobOutbox>> by queue and patience: a short patience must not be exceeded */
    private array $outboxes = [];

    /** @var array<string, true> names of the queues that this client has used, as keys */
    private array $queues = [];

    /** @var (\Closure(): void)|null closes the mailbox */
    private ?\Closure $closeMailbox = null;

    private ?string $lookupTimer = null;
    private ?string $retryTimer = null;

    private function __construct(public readonly Broker $broker)
    {
        $this->mailbox = bin2hex(random_bytes(9));
        $this->pid = (int) getmypid();
        $this->withdrawals = new Withdrawals($broker);
    }

    public function __destruct()
    {
        if ($this->closeMailbox !== null) {
            ($this->closeMailbox)();
        }
        foreach ([$this->lookupTimer, $this->retryTimer] as $timer) {
            if ($timer !== null) {
                EventLoop::cancel($timer);
            }
        }
    }

    public static function of(Broker $broker): self
    {
        $clients = self::$clients ??= new \WeakMap();
        $client = ($clients[$broker] ?? null)?->get();
        if ($client === null || !$client->isOfThisProcess()) {
            $client = new self($broker);
            $clients[$broker] = \WeakReference::create($client);
        }

        return $client;
    }

    public function isOfThisProcess(): bool
    {
        return $this->pid === getmypid();
    }

    public function newId(): string
    {
        return $this->mailbox . '-' . base_convert((string) ++$this->lastJobNumber, 10, 36);
    }

    /** Returns whether {@see newId()} created the id, so that no other process knows it. */
    public function isOwn(string $id): bool
    {
        return str_starts_with($id, $this->mailbox);
    }

    /**
     * Sends jobs. Returns how many of them the engine has accepted, from the start of the list, before the queue was
     * full. Outcomes can arrive before this method returns.
     *
     * @param object    $sender identifies the caller in {@see abandon()}
     * @param list<Job> $jobs
     *
     * @throws QueueFullException when the engine is out of memory
     * @throws BrokerException    when the engine does not answer; perhaps it has accepted some of the jobs
     */
    public function submit(
        object $sender,
        string $queue,
        RemoteOptions $options,
        array $jobs,
        OutcomeReceiver $waiter,
    ): int {
        $this->openMailbox();
        foreach ($jobs as $job) {
            $this->waiters[$queue][$job->id] = $waiter;
        }
        $this->changeWaiterCount(\count($jobs));
        $accepted = 0;
        try {
            $accepted = $this->outbox($queue, $options->patience)->send($sender, $options->maxJobs, $jobs, false);
        } finally {
            for ($i = $accepted; $i < \count($jobs); ++$i) {
                $this->removeWaiter($queue, $jobs[$i]->id);
            }
        }

        return $accepted;
    }

    /**
     * Sends a job without a waiter. Returns 1 when the engine has accepted it, and 0 when the queue is full.
     *
     * @throws JobConflictException
     * @throws BrokerException
     */
    public function dispatch(object $sender, string $queue, RemoteOptions $options, Job $job): int
    {
        $this->withdrawals->drop($queue, $job->id);

        return $this->outbox($queue, $options->patience)->send($sender, $options->maxJobs, [$job], true);
    }

    /** Makes the pending submissions of a sender fail. Perhaps the engine accepts some of these jobs later. */
    public function abandon(object $sender, string $queue, \Throwable $reason): void
    {
        foreach ($this->outboxes[$queue] ?? [] as $outbox) {
            $outbox->abandon($sender, $reason);
        }
    }

    /** Adds a waiter for a job that this or another process has submitted. */
    public function attach(string $queue, string $id, OutcomeReceiver $waiter): void
    {
        $this->openMailbox();
        $this->queues[$queue] = true;
        $this->withdrawals->drop($queue, $id);
        $earlier = $this->waiters[$queue][$id] ?? null;
        $this->waiters[$queue][$id] = $earlier === null ? $waiter : SharedReceiver::of($earlier, $waiter);
        $this->changeWaiterCount($earlier === null ? 1 : 0);
        $this->lookUpSoon($queue, $id);
    }

    private function lookUpSoon(string $queue, string $id): void
    {
        $this->idsToLookUp[$queue][] = $id;
        if (\count($this->idsToLookUp[$queue]) === 1) {
            EventLoop::queue($this->lookUpAttached(...), $queue);
        }
    }

    /**
     * Withdraws jobs. The waiters of removed jobs are notified that the job is unknown; others receive the outcomes
     * later. If the engine is not available, the request is sent when the engine is available again.
     *
     * @param list<string> $ids
     * @param bool         $claimed whether claimed jobs are withdrawn too
     */
    public function withdraw(string $queue, array $ids, bool $claimed): void
    {
        $this->withdrawals->add($queue, $ids, $claimed);
        if ($this->retryTimer === null) {
            $this->sendWithdrawals();
        }
    }

    /**
     * Withdraws jobs of pending submissions too, and waits until the engine has confirmed all withdrawals of the queue.
     * While the engine is not available, sends them again for $patience seconds.
     *
     * Cancellation: ends the pauses between two attempts, and the wait for a request of another fiber.
     *
     * @param list<string> $ids
     *
     * @throws CancelledException
     */
    public function flush(string $queue, array $ids, float $patience, ?Cancellation $cancellation = null): void
    {
        foreach ($ids === [] ? [] : $this->outboxes[$queue] ?? [] as $outbox) {
            $outbox->flush(); // the engine can't withdraw a job that it does not have yet
        }
        $this->withdrawals->add($queue, $ids, true);
        $deadline = Clock::now() + $patience;
        while ($this->hasWithdrawals($queue)) {
            if (!$this->withdrawals->hasUnsent($queue)) {
                $this->withdrawals->awaitAnswer($cancellation);
            } elseif (!$this->sendWithdrawals()) {
                if (Clock::now() > $deadline) {
                    return;
                }
                \Amp\delay(self::RETRY_SECONDS, true, $cancellation);
            }
        }
    }

    /** Returns whether the engine has not yet confirmed the withdrawal of some job. */
    public function hasWithdrawals(string $queue): bool
    {
        return $this->withdrawals->hasPending($queue);
    }

    /** Returns whether the engine has not yet confirmed the withdrawal of the job. */
    public function isWithdrawalPending(string $queue, string $id): bool
    {
        return $this->withdrawals->isPending($queue, $id);
    }

    /** @return bool false when the engine is not available */
    private function sendWithdrawals(): bool
    {
        $sending = $this->withdrawals->send();
        foreach ($sending as $queue => $removed) {
            foreach ($removed as $id) {
                $this->reportUnknown($queue, $id);
            }
        }
        if (!$sending->getReturn()) {
            $this->scheduleLookup();
        }

        return $sending->getReturn();
    }

    public function replaceWaiter(string $queue, string $id, OutcomeReceiver $old, OutcomeReceiver $new): void
    {
        $waiter = $this->waiters[$queue][$id] ?? null;
        if ($waiter !== null) {
            $this->waiters[$queue][$id] = $waiter instanceof SharedReceiver ? $waiter->with($old, $new) : $new;
        }
    }

    /**
     * Removes all waiters of one owner. Other waiters of the same jobs stay.
     *
     * @return list<string> ids of these jobs
     */
    public function removeWaitersOf(object $owner, string $queue): array
    {
        $ids = [];
        foreach ($this->waiters[$queue] ?? [] as $id => $waiter) {
            $others = $waiter->without($owner);
            if ($others === $waiter) {
                continue;
            }
            $ids[] = $id;
            $others === null ? $this->removeWaiter($queue, $id) : $this->waiters[$queue][$id] = $others;
        }

        return $ids;
    }

    public function removeWaiter(string $queue, string $id): ?OutcomeReceiver
    {
        $waiter = $this->waiters[$queue][$id] ?? null;
        if ($waiter !== null) {
            unset($this->waiters[$queue][$id]);
            $this->changeWaiterCount(-1);
        }

        return $waiter;
    }

    private function outbox(string $queue, float $patience): JobOutbox
    {
        $this->queues[$queue] = true;

        return $this->outboxes[$queue]["{$patience}"] ??= new JobOutbox(
            $this->broker,
            $queue,
            $this->mailbox,
            $patience,
        );
    }

    private function isBeingSubmitted(string $queue, string $id): bool
    {
        foreach ($this->outboxes[$queue] ?? [] as $outbox) {
            if ($outbox->isPending($id)) {
                return true;
            }
        }

        return false;
    }

    private function openMailbox(): void
    {
        if ($this->closeMailbox !== null) {
            return;
        }
        $weak = \WeakReference::create($this);
        $this->closeMailbox = $this->broker->openMailbox(
            $this->mailbox,
            static fn(MailboxMessage $message) => $weak->get()?->onMessage($message),
            static fn() => $weak->get()?->lookUpAll(),
        );
    }

    private function onMessage(MailboxMessage $message): void
    {
        foreach ($message->outcomes as $id => $frame) {
            foreach ($this->waiters as $queue => $waiters) {
                if (isset($waiters[$id]) && $this->isAmbiguous($id)) {
                    $this->lookUpSoon($queue, $id);
                } elseif (isset($waiters[$id])) {
                    $frame === '' && $waiters[$id]->wantsOutcome()
                        ? $this->fetch($queue, $id)
                        : $this->deliver($queue, $id, $frame);
                }
            }
        }
        foreach ($message->items as $id) {
            foreach ($this->waiters as $queue => $waiters) {
                if (isset($waiters[$id]) && $this->isAmbiguous($id) && !$waiters[$id] instanceof StreamedSubmission) {
                    EventLoop::queue($this->checkForItems(...), $queue, $id);
                } else {
                    ($waiters[$id] ?? null)?->onItems($id);
                }
            }
        }
        foreach ($message->reports as $id => $frame) {
            foreach ($this->waiters as $waiters) {
                ($waiters[$id] ?? null)?->onReport($id, $frame);
            }
        }
    }

    /** Returns whether several queues can have this id. Messages contain no queue name, and callers choose ids. */
    private function isAmbiguous(string $id): bool
    {
        return \count($this->queues) > 1 && !$this->isOwn($id);
    }

    /** Notifies the waiter of the job in this queue if that job has items. */
    private function checkForItems(string $queue, string $id): void
    {
        try {
            $frames = $this->broker->takeItems($queue, $id, 0, 1);
        } catch (BrokerException) {
            return; // The waiter fetches the items with the outcome.
        }
        if ($frames !== []) {
            ($this->waiters[$queue][$id] ?? null)?->onItems($id);
        }
    }

    /** Fetches an outcome that is too large for a message. To limit the memory, only one is fetched at a time. */
    private function fetch(string $queue, string $id): void
    {
        $this->largeOutcomes[] = [$queue, $id];
        if (\count($this->largeOutcomes) === 1) {
            EventLoop::queue(function (): void {
                for (; $this->largeOutcomes !== []; array_shift($this->largeOutcomes)) {
                    [$queue, $id] = $this->largeOutcomes[0];
                    $waiter = $this->waiters[$queue][$id] ?? null;
                    if ($waiter?->wantsOutcome() === true) {
                        $this->lookUp($queue, [$id]);
                    } elseif ($waiter !== null) {
                        $this->deliver($queue, $id, '');
                    }
                }
            });
        }
    }

    private function deliver(string $queue, string $id, string $frame): void
    {
        $waiter = $this->removeWaiter($queue, $id);
        if ($this->isOwn($id)) {
            $this->readOutcomes[$queue][] = $id;
            $this->readBytes += \strlen($frame);
            $isFull = \count($this->readOutcomes[$queue]) >= self::MAX_READ_OUTCOMES;
            if ($isFull || $this->readBytes >= self::MAX_READ_BYTES) {
                $this->readBytes = 0;
                array_map($this->dropReadOutcomes(...), array_keys($this->readOutcomes));
            }
        }
        $waiter?->onOutcome($id, $frame);
    }

    private function dropReadOutcomes(string $queue): void
    {
        [$broker, $ids] = [$this->broker, $this->readOutcomes[$queue]];
        unset($this->readOutcomes[$queue]);
        EventLoop::queue(static function () use ($broker, $queue, $ids): void {
            try {
                $broker->dropOutcomes($queue, $ids);
            } catch (BrokerException) {
                // The outcomes expire after their retention.
            }
        });
    }

    private function reportUnknown(string $queue, string $id): void
    {
        $this->removeWaiter($queue, $id)?->onUnknown($id);
    }

    /** Sends the unsent withdrawals. Then looks up all jobs with waiters. */
    private function lookUpAll(): void
    {
        if ($this->retryTimer !== null) {
            EventLoop::cancel($this->retryTimer);
            $this->retryTimer = null;
        }
        if (!$this->isOfThisProcess() || !$this->sendWithdrawals()) {
            return;
        }
        foreach ($this->waiters as $queue => $waiters) {
            foreach (array_chunk(array_keys($waiters), self::MAX_JOBS_PER_REQUEST) as $ids) {
                if (!$this->lookUp($queue, $ids)) {
                    return;
                }
            }
        }
    }

    private function lookUpAttached(string $queue): void
    {
        $ids = $this->idsToLookUp[$queue];
        unset($this->idsToLookUp[$queue]);
        foreach (array_chunk($ids, self::MAX_JOBS_PER_REQUEST) as $chunk) {
            $this->lookUp($queue, $chunk);
        }
    }

    /**
     * Asks for the outcomes of jobs, and delivers them. Returns false when the engine is not available.
     *
     * @param list<string> $ids
     */
    private function lookUp(string $queue, array $ids): bool
    {
        try {
            $states = $this->broker->lookUpJobs($queue, $ids, $this->mailbox);
        } catch (BrokerUnavailableException) {
            $this->scheduleLookup();

            return false;
        } catch (BrokerRefusedException $refused) {
            foreach ($ids as $id) {
                if (!$this->isBeingSubmitted($queue, $id)) {
                    $this->removeWaiter($queue, $id)?->onRefused($id, $refused);
                }
            }

            return true;
        }
        foreach ($states as $id => $state) {
            if (!isset($this->waiters[$queue][$id]) || $this->isBeingSubmitted($queue, $id)) {
                continue;
            }
            if ($state->outcome !== null) {
                $this->deliver($queue, $id, $state->outcome);
            } elseif ($state->hasOutcome) {
                $this->fetch($queue, $id);
            } elseif (!$state->known) {
                $this->reportUnknown($queue, $id);
            }
        }

        return true;
    }

    /** Schedules a lookup of all jobs after a request without an answer, because messages can have been lost too. */
    private function scheduleLookup(): void
    {
        if ($this->retryTimer === null) {
            $this->retryTimer = WeakTimer::after(
                self::RETRY_SECONDS,
                $this,
                static function (self $client): void {
                    $client->retryTimer = null;
                    $client->lookUpAll();
                },
            );
        }
    }

    /**
     * Adds $change to the number of waiters. While there are waiters, a timer keeps the loop running. The timer also
     * references this client. Otherwise PHP could destroy the client together with the fibers that wait.
     */
    private function changeWaiterCount(int $change): void
    {
        $this->waiterCount += $change;
        if ($this->waiterCount > 0 && $this->lookupTimer === null) {
            $this->lookupTimer = EventLoop::repeat(self::LOOKUP_INTERVAL, $this->lookUpAll(...));
        } elseif ($this->waiterCount === 0 && $this->lookupTimer !== null) {
            EventLoop::cancel($this->lookupTimer);
            $this->lookupTimer = null;
        }
    }
}
