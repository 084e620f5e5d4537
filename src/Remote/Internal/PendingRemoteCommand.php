<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\Job;
use Spindle\Remote\JobLostException;
use Spindle\Remote\QueueFullException;

/** A command that was sent to a queue and has no outcome yet. */
final class PendingRemoteCommand implements OutcomeReceiver
{
    /** Seconds until a full queue is retried. */
    private const FULL_QUEUE_PAUSE_SECONDS = 0.1;

    /** Seconds until a withdrawal is repeated, because the letter to the agent may have been lost. */
    private const WITHDRAWAL_INTERVAL = 1.0;

    /** @var DeferredFuture<string> */
    private readonly DeferredFuture $deferred;

    private bool $wanted = true;

    public function __construct(private readonly JobFactory $sender, private readonly Job $job)
    {
        $this->deferred = new DeferredFuture();
    }

    /** @throws CancelledException when the command did not start */
    public function run(Cancellation $recall, Cancellation $cancellation): string
    {
        $recall->throwIfRequested();
        $cancellation->throwIfRequested();
        $either = new CompositeCancellation($recall, $cancellation);
        while (!$this->isTakenIn()) {
            \Amp\delay(self::FULL_QUEUE_PAUSE_SECONDS, true, $either);
        }
        $recalled = $recall->subscribe($this->recall(...));
        $cancelled = $cancellation->subscribe($this->end(...));
        try {
            return $this->deferred->getFuture()->await();
        } finally {
            $recall->unsubscribe($recalled);
            $cancellation->unsubscribe($cancelled);
        }
    }

    private function isTakenIn(): bool
    {
        try {
            return $this->sender->send($this->job, $this) > 0;
        } catch (QueueFullException) { // the engine is out of memory
            return false;
        }
    }

    public function wantsOutcome(): bool
    {
        return true;
    }

    public function outcome(string $id, string $frame): void
    {
        try {
            $outcome = $this->sender->result($id, $frame, null);
            $this->deferred->complete(\is_string($outcome) ? $outcome : '');
        } catch (\Throwable $failure) {
            $this->deferred->error($failure);
        }
    }

    /** Fails the command: it was withdrawn before an agent had it, or the engine does not know it. */
    public function unknown(string $id): void
    {
        $this->deferred->error(
            $this->wanted ? JobLostException::unknown($id, $this->sender->queue) : new CancelledException(),
        );
    }

    public function refused(string $id, BrokerRefusedException $refused): void
    {
        $this->deferred->error($this->wanted ? $refused : new CancelledException());
    }

    public function items(string $id): void {}

    public function report(string $id, string $frame): void {}

    private function recall(): void
    {
        $this->wanted = false;
        $this->sender->recall($this->job->id);
    }

    private function end(): void
    {
        $this->wanted = false;
        $patience = $this->sender->options->patience;
        for ($late = Clock::now() + $patience; !$this->deferred->isComplete();) {
            $this->sender->withdraw([$this->job->id]);
            try {
                $this->deferred->getFuture()->await(new TimeoutCancellation(self::WITHDRAWAL_INTERVAL));
            } catch (\Throwable) {
                // The failure is thrown in run(), or the wait has timed out.
            }
            if (!$this->isOver() && Clock::now() > $late) {
                $this->sender->forget($this->job->id);
                $this->deferred->error(JobLostException::unanswered($this->job->id, $this->sender->queue, $patience));
            }
        }
    }

    private function isOver(): bool
    {
        return $this->deferred->isComplete();
    }
}
