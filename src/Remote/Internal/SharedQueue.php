<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Clock;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Job;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\QueueFullException;

/**
 * Submits and cancels the jobs of one queue, and passes outcomes to the jobs' waiters ({@see OutcomeReceiver}). All
 * {@see QueueClient} objects of this process with the same broker object and the same queue share one instance.
 */
final class SharedQueue implements LastRequests
{
    private const MAX_JOBS_PER_REQUEST = 1000;

    /** Seconds between two lookups of all jobs with waiters. A lookup finds outcomes whose message was lost. */
    private const LOOKUP_INTERVAL = 30.0;

    private const RETRY_SECONDS = 0.5;

    public readonly JobOutbox $outbox;
    public readonly JobCancellations $cancellations;
    public readonly ReceivedOutcomes $receivedOutcomes;

    /** Id of the process that created this object. A fork of that process looks up and cancels no jobs. */
    private readonly int $ownerPid;

    public readonly Waiters $waiters;

    /** @var list<string> ids to look up in the next turn of the event loop */
    private array $idsToLookUp = [];

    /** @var list<string> ids of jobs whose outcomes did not fit into a message or an answer, to be fetched */
    private array $largeOutcomes = [];

    private readonly OwnLoop $loop;
    private ?string $lookupTimer = null;
    private ?string $retryTimer = null;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $name,
        private readonly string $mailbox,
    ) {
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
        $this->waiters = new Waiters();
        // ProcessEnd calls objects in the order of their registration. This object must be first: sendCancellations()
        // adds ids to $receivedOutcomes, which then asks the engine to drop these outcomes.
        ProcessEnd::register($this);
        $this->outbox = new JobOutbox($broker, $name, $mailbox);
        $this->cancellations = new JobCancellations($broker, $name);
        $this->receivedOutcomes = new ReceivedOutcomes($broker, $name, $this->outbox);
    }

    public function __destruct()
    {
        $this->loop->cancel($this->lookupTimer);
        $this->loop->cancel($this->retryTimer);
    }

    /**
     * Sends jobs. Returns N if the engine has accepted the first N jobs. The later jobs did not fit into the queue.
     * Outcomes can arrive before this method returns. The mailbox must be open.
     *
     * @param list<Job> $jobs
     *
     * @throws QueueFullException when the engine is out of memory
     * @throws BrokerException    when the engine does not answer; the engine may have accepted some of the jobs
     */
    public function submit(QueueClient $sender, array $jobs, OutcomeReceiver $waiter, bool $checkIds): int
    {
        $this->waiters->addForAll($jobs, $waiter);
        $this->updateLookupTimer();
        $accepted = 0;
        try {
            $accepted = $this->outbox->send($sender, $jobs, $checkIds);
        } finally {
            for ($i = $accepted; $i < \count($jobs); ++$i) {
                $this->removeWaiters($jobs[$i]->id);
            }
        }

        return $accepted;
    }

    /** Adds a waiter for a job that this or another process has submitted. The mailbox must be open. */
    public function attach(string $id, OutcomeReceiver $waiter): void
    {
        $this->waiters->add($id, $waiter);
        $this->updateLookupTimer();
        $this->lookUpSoon($id);
    }

    /** Ends the wait of one waiter. The job continues. */
    public function removeWaiter(string $id, OutcomeReceiver $waiter): void
    {
        $this->waiters->removeOne($id, $waiter);
        $this->updateLookupTimer();
    }

    /** @return list<OutcomeReceiver> the removed waiters of the job */
    public function removeWaiters(string $id): array
    {
        $waiters = $this->waiters->remove($id);
        $this->updateLookupTimer();

        return $waiters;
    }

    /** @return list<string> ids of the removed waiters' jobs, except dispatched jobs, which continue */
    public function removeWaitersOf(QueueClient $client): array
    {
        $ids = $this->waiters->removeAllOf($client);
        $this->updateLookupTimer();

        return array_values(array_filter($ids, $this->isOwn(...)));
    }

    /** Returns whether a client in this process generated the id. If so, only this process waits for the job. */
    public function isOwn(string $id): bool
    {
        return str_starts_with($id, $this->mailbox);
    }

    /**
     * @return list<string> frames, as from {@see Broker::takeItems()}
     *
     * @throws BrokerException
     */
    public function takeItems(string $id, int $offset, int $limit): array
    {
        return $this->broker->takeItems($this->name, $id, $offset, $limit);
    }

    /**
     * Cancels jobs. Calls {@see OutcomeReceiver::onUnknown()} of a job's waiters if the engine has removed the job or
     * does not know it. Otherwise, the waiters receive the job's outcome later. If a job of this process has no waiter,
     * its outcome is dropped. While the engine is not available, the request is retried.
     *
     * @param list<string> $ids
     * @param bool $evenIfClaimed false to cancel only unclaimed jobs
     */
    public function cancel(array $ids, bool $evenIfClaimed): void
    {
        $this->addCancellations($ids, $evenIfClaimed);
        if ($this->retryTimer === null) {
            $this->sendCancellations();
        }
    }

    /**
     * Adds cancellations. The next call of {@see cancel()} or {@see flush()} sends the request. Ignores jobs of another
     * process: a fork ignores the jobs of its parent process.
     *
     * @param list<string> $ids
     */
    public function addCancellations(array $ids, bool $evenIfClaimed): void
    {
        $this->cancellations->add(array_values(array_filter($ids, $this->isOwn(...))), $evenIfClaimed);
    }

    /**
     * Cancels jobs, even if their submission is pending. Waits until the engine has confirmed all cancellations. While
     * the engine is not available, retries for $timeout seconds and then returns.
     *
     * Cancellation: ends a pause between two attempts. Also ends the wait for an answer to a request of another fiber.
     *
     * @param list<string> $ids
     *
     * @throws CancelledException
     */
    public function flush(array $ids, float $timeout, ?Cancellation $cancellation = null): void
    {
        if ($ids !== []) {
            $this->outbox->flush(); // the engine can't cancel a job that it does not have yet
        }
        $this->cancellations->add($ids, true);
        $deadline = Clock::now() + $timeout;
        while ($this->cancellations->hasPending()) {
            if (!$this->cancellations->hasUnsent()) {
                $this->cancellations->awaitAnswer($cancellation);
            } elseif (!$this->sendCancellations()) {
                if (Clock::now() > $deadline) {
                    return;
                }
                (new Condition())->waitFor(self::RETRY_SECONDS, $cancellation);
            }
        }
    }

    public function noteCancellations(): void
    {
        $this->cancellations->add($this->waiters->cancelledJobIds(), true);
    }

    public function lastRequests(): array
    {
        $this->noteCancellations();
        $this->cancellations->repeatUnanswered();

        return [$this->sendCancellations(...)];
    }

    /** @param bool $hasOtherQueues whether other queues use the same mailbox; a message does not name its queue */
    public function onMessage(MailboxMessage $message, bool $hasOtherQueues): void
    {
        foreach ($message->outcomes as $id => $frame) {
            if (!$this->waiters->has($id)) {
                continue;
            }
            if ($hasOtherQueues && !$this->isOwn($id)) {
                $this->lookUpSoon($id);
            } elseif ($frame === '' && $this->waiters->wantOutcome($id)) {
                $this->fetch($id);
            } else {
                $this->deliver($id, $frame);
            }
        }
        foreach ($message->items as $id) {
            $waiter = $this->waiters->of($id)[0] ?? null;
            $isStreamed = $waiter instanceof RemoteSubmission && $waiter->isStreamed();
            if ($hasOtherQueues && $waiter !== null && !$this->isOwn($id) && !$isStreamed) {
                EventLoop::queue($this->checkForItems(...), $id);
            } else {
                $waiter?->onItems($id); // only the first waiter, because each item can be taken only once
            }
        }
        foreach ($message->reports as $id => $frame) {
            foreach ($this->waiters->codecs($id) as $codec) {
                $codec->deliverReport($id, $frame);
            }
        }
    }

    public function lookUpAll(): void
    {
        $this->loop->cancel($this->retryTimer);
        $this->retryTimer = null;
        if ($this->sendCancellations()) {
            $this->lookUp($this->waiters->jobIds());
        }
    }

    /** @return bool true if the engine has answered; false in a fork, or if the engine is not available */
    private function sendCancellations(): bool
    {
        if ($this->ownerPid !== getmypid()) {
            return false;
        }
        $sending = $this->cancellations->send();
        foreach ($sending as [$id, $isRemoved]) {
            if ($isRemoved) {
                $this->reportUnknown($id);
            } elseif (!$this->waiters->has($id)) {
                $this->receivedOutcomes->add($id, 0);
            }
        }
        if (!$sending->getReturn()) {
            $this->scheduleLookup();
        }

        return $sending->getReturn();
    }

    private function checkForItems(string $id): void
    {
        try {
            $frames = $this->takeItems($id, 0, 1);
        } catch (BrokerException) {
            return; // the waiter fetches the items when the outcome arrives
        }
        if ($frames !== []) {
            ($this->waiters->of($id)[0] ?? null)?->onItems($id);
        }
    }

    /** Fetches an outcome that did not fit into a message or an answer. To limit the memory, fetches one at a time. */
    private function fetch(string $id): void
    {
        $this->largeOutcomes[] = $id;
        if (\count($this->largeOutcomes) === 1) {
            EventLoop::queue(function (): void {
                for (; $this->largeOutcomes !== []; array_shift($this->largeOutcomes)) {
                    $id = $this->largeOutcomes[0];
                    if ($this->waiters->wantOutcome($id)) {
                        $this->lookUp([$id]);
                    } elseif ($this->waiters->has($id)) {
                        $this->deliver($id, '');
                    }
                }
            });
        }
    }

    private function deliver(string $id, string $frame): void
    {
        $waiters = $this->removeWaiters($id);
        if ($this->isOwn($id)) {
            $this->receivedOutcomes->add($id, \strlen($frame));
        }
        foreach ($waiters as $waiter) {
            $waiter->onOutcome($id, $frame);
        }
    }

    private function reportUnknown(string $id, ?JobCancelledException $cancelled = null): void
    {
        foreach ($this->removeWaiters($id) as $waiter) {
            $waiter->onUnknown($id, $cancelled);
        }
    }

    private function lookUpSoon(string $id): void
    {
        $this->idsToLookUp[] = $id;
        if (\count($this->idsToLookUp) === 1) {
            EventLoop::queue(function (): void {
                [$ids, $this->idsToLookUp] = [$this->idsToLookUp, []];
                $this->lookUp($ids);
            });
        }
    }

    /** @param list<string> $ids jobs whose outcomes are fetched and delivered */
    private function lookUp(array $ids): void
    {
        foreach (array_chunk($ids, self::MAX_JOBS_PER_REQUEST) as $chunk) {
            try {
                $results = $this->broker->attach($this->name, $chunk, $this->mailbox);
            } catch (BrokerUnavailableException) {
                $this->scheduleLookup();

                return;
            } catch (BrokerRefusedException $refused) {
                foreach ($chunk as $id) {
                    foreach ($this->outbox->isPending($id) ? [] : $this->removeWaiters($id) as $waiter) {
                        $waiter->onRefused($id, $refused);
                    }
                }

                continue;
            }
            foreach ($results as $id => $result) {
                if (!$this->waiters->has($id) || $this->outbox->isPending($id)) {
                    continue;
                }
                if ($result->outcome !== null) {
                    $this->deliver($id, $result->outcome);
                } elseif ($result->hasOutcome) {
                    $this->fetch($id);
                } elseif ($result->cancelled) {
                    $this->reportUnknown($id, JobCancelledException::of($id, $this->name));
                } elseif (!$result->known) {
                    $this->reportUnknown($id);
                }
            }
        }
    }

    /** After a request without an answer, schedules {@see lookUpAll()}, because messages may be lost too. */
    private function scheduleLookup(): void
    {
        $this->retryTimer ??= WeakTimer::after(self::RETRY_SECONDS, $this, static function (self $queue): void {
            $queue->retryTimer = null;
            $queue->lookUpAll();
        });
    }

    /**
     * Starts or ends the timer of lookups. While jobs have waiters, the timer keeps the event loop running. The timer
     * also refers to this object, so that PHP does not destroy waiters whose fibers wait.
     */
    private function updateLookupTimer(): void
    {
        if ($this->waiters->isEmpty()) {
            $this->loop->cancel($this->lookupTimer);
            $this->lookupTimer = null;
        } else {
            $this->lookupTimer ??= EventLoop::repeat(self::LOOKUP_INTERVAL, $this->lookUpAll(...));
        }
    }
}
