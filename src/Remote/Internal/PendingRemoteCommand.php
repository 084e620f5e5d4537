<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\Job;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\QueueFullException;
use Spindle\Worker\ExecutorClosedException;

/** Sends a command to a queue, and waits for its outcome. */
final class PendingRemoteCommand implements OutcomeReceiver
{
    private const FULL_QUEUE_PAUSE_SECONDS = 0.1;

    /** Seconds between two cancel requests. A repetition helps if the engine's message to the agent was lost. */
    private const CANCEL_INTERVAL = 1.0;

    private const ABANDONED = 'cancelled while the engine was not available, '
        . 'so it may run until the engine is available again and the agent receives the cancellation';

    /** @var DeferredFuture<string> completed with the encoded outcome */
    private readonly DeferredFuture $deferred;

    /** Cancellation that ends the command; null before {@see run()}. */
    private ?Cancellation $cancellation = null;

    /** False once `$withdrawal` or `$cancellation` of {@see run()} was requested. */
    private bool $isWanted = true;

    public function __construct(private readonly QueueClient $client, private readonly Job $job)
    {
        $this->deferred = new DeferredFuture();
    }

    /**
     * Sends the command, and returns its outcome as {@see PortableCommand} encodes it.
     *
     * @param Cancellation $withdrawal   cancels the command unless an agent has claimed it
     * @param Cancellation $cancellation ends the command
     *
     * @throws CancelledException      when the command was cancelled and has no outcome
     * @throws ExecutorClosedException
     */
    public function run(Cancellation $withdrawal, Cancellation $cancellation): string
    {
        $withdrawal->throwIfRequested();
        $cancellation->throwIfRequested();
        $this->cancellation = $cancellation;
        $this->client->begin($this);
        try {
            $either = new CompositeCancellation($withdrawal, $cancellation);
            while (!$this->isOver() && !$this->trySend($cancellation)) {
                (new Condition())->waitFor(self::FULL_QUEUE_PAUSE_SECONDS, $either);
            }

            return $this->awaitOutcome($withdrawal, $cancellation);
        } finally {
            $this->client->end($this);
        }
    }

    private function awaitOutcome(Cancellation $withdrawal, Cancellation $cancellation): string
    {
        $withdrawalSubscription = $withdrawal->subscribe($this->cancelUnclaimed(...));
        $cancelSubscription = $cancellation->subscribe($this->cancel(...));
        try {
            return $this->deferred->getFuture()->await();
        } finally {
            $withdrawal->unsubscribe($withdrawalSubscription);
            $cancellation->unsubscribe($cancelSubscription);
        }
    }

    /** Sends the job. Returns false if run() must retry, because the queue or the engine's memory is full. */
    private function trySend(Cancellation $cancellation): bool
    {
        try {
            return $this->client->sendUntilCancelled($this->job, $this, $cancellation, $this->abandon(...)) !== 0;
        } catch (QueueFullException) { // the engine is out of memory
            return false;
        }
    }

    public function client(): QueueClient
    {
        return $this->client;
    }

    public function awaitsOutcome(): bool
    {
        return true;
    }

    public function wantsOutcome(): bool
    {
        return !$this->isOver();
    }

    public function isCancelled(): bool
    {
        return !ProcessEnd::isSending() && $this->cancellation?->isRequested() === true;
    }

    public function onOutcome(string $id, string $frame): void
    {
        if ($this->isOver()) {
            return;
        }
        try {
            $outcome = $this->client->result($id, $frame, null, $this->client->queueOrThrow());
            $this->deferred->complete(\is_string($outcome) ? $outcome : '');
        } catch (\Throwable $failure) {
            $this->deferred->error($failure);
        }
    }

    /** Fails the command. The engine has removed the unclaimed job after a cancellation, or does not know the job. */
    public function onUnknown(string $id, ?JobCancelledException $cancelled = null): void
    {
        $lost = $this->isWanted ? JobLostException::unknown($id, $this->client->queue) : new CancelledException();
        $this->fail($cancelled ?? $lost);
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->fail($this->isWanted ? $refused : new CancelledException());
    }

    public function onItems(string $id): void {}

    public function close(): void {}

    public function kill(ExecutorClosedException $reason): void
    {
        $this->fail($reason);
        $this->deferred->getFuture()->ignore(); // prevents an error report if run() does not await the future
    }

    private function cancelUnclaimed(): void
    {
        $this->isWanted = false;
        $this->client->cancelUnclaimed($this->job->id);
    }

    /** Repeats the cancellation until an outcome arrives, the command is abandoned, or $brokerRetryTimeout is over. */
    private function cancel(): void
    {
        $this->isWanted = false;
        $timeout = $this->client->options->brokerRetryTimeout;
        $loop = EventLoop::getDriver();
        $timer = $loop->delay(QueueClient::CONFIRMATION_TIMEOUT, $this->abandonUnlessConfirmed(...));
        for ($deadline = Clock::now() + $timeout; !$this->isOver();) {
            $this->client->cancel([$this->job->id]);
            $this->abandonUnlessConfirmed();
            try {
                $this->deferred->getFuture()->await(new TimeoutCancellation(self::CANCEL_INTERVAL));
            } catch (\Throwable) {
                // The wait has timed out, or the command has failed. In the second case, run() throws the failure.
            }
            if (!$this->isOver() && Clock::now() > $deadline) {
                $this->client->shared()?->removeWaiters($this->job->id);
                $this->fail(JobLostException::unanswered($this->job->id, $this->client->queue, $timeout));
            }
        }
        $loop->cancel($timer);
    }

    /**
     * Ends the wait for the outcome if the engine has not confirmed the cancellation. Since the command may still run,
     * {@see SharedQueue} repeats the cancellation.
     */
    private function abandonUnlessConfirmed(): void
    {
        if ($this->client->shared()?->cancellations->isPending($this->job->id) === true) {
            $this->abandon();
        }
    }

    private function abandon(): void
    {
        if (!$this->isOver()) {
            $this->deferred->complete(PortableCommand::encodeError(self::ABANDONED));
        }
    }

    private function fail(\Throwable $failure): void
    {
        if (!$this->isOver()) {
            $this->deferred->error($failure);
        }
    }

    private function isOver(): bool
    {
        return $this->deferred->isComplete();
    }
}
