<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\Job;
use Spindle\Remote\JobLostException;
use Spindle\Remote\QueueFullException;

use function Amp\async;

/** A command that was sent to a queue and has no outcome yet. */
final class PendingRemoteCommand implements OutcomeReceiver
{
    /** Seconds until a full queue is retried. */
    private const FULL_QUEUE_PAUSE_SECONDS = 0.1;

    /** Seconds until a withdrawal is repeated, because the message to the agent may have been lost. */
    private const WITHDRAWAL_INTERVAL = 1.0;

    /** Seconds in which the engine must confirm a cancellation; otherwise the command counts as abandoned. */
    private const CONFIRMATION_TIMEOUT = 1.0;

    private const ABANDONED = 'cancelled while the broker was not available, '
        . 'so it may still run until the broker is back and its agent gets the cancellation';

    /** @var DeferredFuture<string> */
    private readonly DeferredFuture $deferred;

    private bool $isWanted = true;

    public function __construct(private readonly QueueClient $client, private readonly Job $job)
    {
        $this->deferred = new DeferredFuture();
    }

    /** @throws CancelledException when the command did not start */
    public function run(Cancellation $recall, Cancellation $cancellation): string
    {
        $recall->throwIfRequested();
        $cancellation->throwIfRequested();
        $either = new CompositeCancellation($recall, $cancellation);
        while (!$this->isAccepted($cancellation)) {
            \Amp\delay(self::FULL_QUEUE_PAUSE_SECONDS, true, $either);
        }
        $recallSubscription = $recall->subscribe($this->withdrawUnclaimed(...));
        $cancelSubscription = $cancellation->subscribe($this->cancel(...));
        try {
            return $this->deferred->getFuture()->await();
        } finally {
            $recall->unsubscribe($recallSubscription);
            $cancellation->unsubscribe($cancelSubscription);
        }
    }

    /** Sends the job. Returns false when the queue is full, and true when the job is accepted or was abandoned. */
    private function isAccepted(Cancellation $cancellation): bool
    {
        /** @var Future<int> $sending */
        $sending = async($this->client->send(...), $this->job, $this);
        try {
            try {
                return $sending->await($cancellation) > 0;
            } catch (CancelledException) {
                return $sending->await(new TimeoutCancellation(self::CONFIRMATION_TIMEOUT)) > 0;
            }
        } catch (QueueFullException) { // the engine is out of memory
            return false;
        } catch (CancelledException) {
            $this->abandon();
            $sending->map(fn() => $this->client->withdraw([$this->job->id]))->ignore();

            return true;
        }
    }

    public function wantsOutcome(): bool
    {
        return !$this->isOver();
    }

    public function outcome(string $id, string $frame): void
    {
        if ($this->isOver()) {
            return;
        }
        try {
            $outcome = $this->client->result($id, $frame, null);
            $this->deferred->complete(\is_string($outcome) ? $outcome : '');
        } catch (\Throwable $failure) {
            $this->deferred->error($failure);
        }
    }

    /** Fails the command: it was withdrawn before an agent had it, or the engine does not know it. */
    public function unknown(string $id): void
    {
        $this->fail($this->isWanted ? JobLostException::unknown($id, $this->client->queue) : new CancelledException());
    }

    public function refused(string $id, BrokerRefusedException $refused): void
    {
        $this->fail($this->isWanted ? $refused : new CancelledException());
    }

    public function items(string $id): void {}

    public function report(string $id, string $frame): void {}

    private function withdrawUnclaimed(): void
    {
        $this->isWanted = false;
        $this->client->withdrawUnclaimed($this->job->id);
    }

    private function cancel(): void
    {
        $this->isWanted = false;
        $patience = $this->client->options->patience;
        $timer = EventLoop::delay(self::CONFIRMATION_TIMEOUT, $this->abandonUnlessConfirmed(...));
        for ($deadline = Clock::now() + $patience; !$this->isOver();) {
            $this->client->withdraw([$this->job->id]);
            $this->abandonUnlessConfirmed();
            try {
                $this->deferred->getFuture()->await(new TimeoutCancellation(self::WITHDRAWAL_INTERVAL));
            } catch (\Throwable) {
                // The failure is thrown in run(), or the wait has timed out.
            }
            if (!$this->isOver() && Clock::now() > $deadline) {
                $this->client->removeWaiter($this->job->id);
                $this->fail(JobLostException::unanswered($this->job->id, $this->client->queue, $patience));
            }
        }
        EventLoop::cancel($timer);
    }

    /** Stops waiting for an engine that is not available. The withdrawal is sent when the engine is back. */
    private function abandonUnlessConfirmed(): void
    {
        if ($this->client->isWithdrawalPending($this->job->id)) {
            $this->abandon();
        }
    }

    private function abandon(): void
    {
        if (!$this->isOver()) {
            $this->deferred->complete(PortableCommand::lost(self::ABANDONED));
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
