<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Spindle\Internal\LoopCallback;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobLostException;
use Spindle\Worker\ExecutorClosedException;

/** Completes the future of one call of RemoteExecutor::submit() or attach() with the outcome of the task. */
final class RemoteSubmission implements OutcomeReceiver
{
    /** @var DeferredFuture<mixed>|null null once completed, so that PHP can destroy the task's generator */
    private ?DeferredFuture $deferred;

    /** @var Future<mixed>|null null once {@see self::future()} has returned it, so that PHP can destroy the result */
    private ?Future $future;

    /** Receives the items and the outcome of a generator task; null until the task has stored an item. */
    private ?ItemReceiver $items = null;

    private ?CancelledException $cancelled = null;

    private ?string $subscription = null;

    private ?string $giveUpTimer = null;

    private bool $isFinished = false;

    /**
     * @param Cancellation|null $cancellation caller's cancellation; {@see cancelWhenRequested()} subscribes to it
     * @param bool              $isAttached   whether $cancellation ends only the wait, and not the job
     */
    public function __construct(
        private readonly QueueClient $client,
        public readonly string $id,
        private ?Cancellation $cancellation,
        private readonly bool $isAttached = false,
    ) {
        $this->deferred = new DeferredFuture();
        $this->future = $this->deferred->getFuture();
    }

    /** @return Future<mixed> the task's future; a second call throws LogicException */
    public function future(): Future
    {
        $future = $this->future ?? throw new \LogicException('The future was returned before');
        $this->future = null;

        return $future;
    }

    /**
     * Makes the caller's cancellation cancel the job, or end the wait for a job of attach(). Must not be called before
     * the engine has accepted a new job.
     */
    public function cancelWhenRequested(): void
    {
        if ($this->isFinished || $this->cancellation === null) {
            return;
        }
        $weak = \WeakReference::create($this);
        $this->subscription = $this->cancellation->subscribe(
            static fn(CancelledException $cancelled) => $weak->get()?->onCancellation($cancelled),
        );
    }

    public function client(): QueueClient
    {
        return $this->client;
    }

    public function isStreamed(): bool
    {
        return $this->items !== null;
    }

    public function awaitsOutcome(): bool
    {
        return true;
    }

    public function wantsOutcome(): bool
    {
        return $this->items?->wantsOutcome() ?? ($this->cancelled === null);
    }

    public function isCancelled(): bool
    {
        return !$this->isAttached
            && ($this->cancelled !== null || !ProcessEnd::isSending() && $this->cancellation?->isRequested() === true);
    }

    public function onOutcome(string $id, string $frame): void
    {
        $deferred = $this->deferred;
        $this->finish();
        if ($this->items !== null) {
            $this->cancelled === null ? $this->items->onOutcome($id, $frame) : $this->items->fail($this->cancelled);

            return;
        }
        try {
            $result = $this->cancelled === null
                ? $this->client->result($id, $frame, null, $this->client->queueOrThrow())
                : throw $this->cancelled;
        } catch (\Throwable $failure) {
            $deferred?->error($failure);

            return;
        }
        $deferred?->complete($result);
    }

    public function onUnknown(string $id, ?JobCancelledException $cancelled = null): void
    {
        $lost = $cancelled ?? JobLostException::unknown($id, $this->client->queue);
        $this->deferred?->error($this->cancelled ?? $lost);
        $this->finish();
        $this->items?->fail($this->cancelled ?? $lost);
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->deferred?->error($this->cancelled ?? $refused);
        $this->finish();
        $this->items?->onRefused($id, $refused);
    }

    public function onItems(string $id): void
    {
        if ($this->items !== null) {
            $this->items->onItems($id);

            return;
        }
        $stream = new StoredItems($this->client, $this->client->queueOrThrow(), $id, null);
        $this->items = $stream->waiter();
        $this->deferred?->complete($stream->items());
        $this->deferred = null;
    }

    public function close(): void {}

    public function kill(ExecutorClosedException $reason): void
    {
        $this->deferred?->error($this->cancelled ?? $reason);
        $this->future?->ignore(); // otherwise Amp reports an unhandled error if future() was not called
        $this->finish();
    }

    /** Fails the future, or ends the reading of the items. An outcome that arrives later is ignored. */
    public function fail(CancelledException $cancelled): void
    {
        $reason = $this->cancelled ??= $cancelled;
        $this->deferred?->error($reason);
        $this->finish();
        $this->items?->fail($reason);
    }

    public function finish(): void
    {
        $this->isFinished = true;
        $this->deferred = null;
        $this->client->end($this);
        LoopCallback::cancel($this->giveUpTimer);
        if ($this->subscription !== null) {
            $this->cancellation?->unsubscribe($this->subscription);
        }
        $this->cancellation = null;
    }

    private function onCancellation(CancelledException $cancelled): void
    {
        if ($this->cancelled !== null) {
            return;
        }
        if ($this->isAttached) {
            $this->client->shared()?->removeWaiter($this->id, $this);
            $this->fail($cancelled);

            return;
        }
        $this->cancelled = $cancelled;
        $this->giveUpTimer = $this->client->afterRetryTimeout(
            $this,
            static fn(self $submission) => $submission->giveUp($cancelled),
        );
        $this->client->cancel([$this->id]);
    }

    /** Fails the future if the engine has not confirmed the cancellation by now, because an answer may never arrive. */
    private function giveUp(CancelledException $cancelled): void
    {
        if ($this->client->shared()?->cancellations->isPending($this->id) === true) {
            $this->fail($cancelled);
        }
    }
}
