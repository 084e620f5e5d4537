<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobLostException;

/** A task of its own, and the future that waits for its outcome. */
final class Submission implements Waiter
{
    /** @var DeferredFuture<mixed>|null null when it has its outcome, which may be what keeps a generator going */
    private ?DeferredFuture $deferred;

    /** @var Future<mixed>|null until it was given away */
    private ?Future $future;

    private ?CancelledException $cancelled = null;

    /** @var (\Closure(): void)|null */
    private ?\Closure $unwatch = null;

    public function __construct(private readonly Sender $sender, private readonly string $id)
    {
        $this->deferred = new DeferredFuture();
        $this->future = $this->deferred->getFuture();
    }

    /** @return Future<mixed> once */
    public function future(): Future
    {
        $future = $this->future ?? throw new \LogicException('It was given away');
        $this->future = null;

        return $future;
    }

    /** Ends the job when somebody says so, as soon as it is confirmed. */
    public function watch(Cancellation $cancellation): void
    {
        $weak = \WeakReference::create($this);
        $id = $cancellation->subscribe(static fn(CancelledException $cancelled) => $weak->get()?->cancel($cancelled));
        $this->unwatch = static fn() => $cancellation->unsubscribe($id);
    }

    public function wantsOutcome(): bool
    {
        return $this->cancelled === null;
    }

    public function outcome(string $id, string $frame): void
    {
        $deferred = $this->deferred;
        $this->end();
        try {
            $result = $this->cancelled === null ? $this->sender->result($id, $frame, null) : throw $this->cancelled;
        } catch (\Throwable $failure) {
            $deferred?->error($failure);

            return;
        }
        $deferred?->complete($result);
    }

    public function unknown(string $id): void
    {
        $this->deferred?->error($this->cancelled ?? JobLostException::unknown($id, $this->sender->queue));
        $this->end();
    }

    public function refused(string $id, BrokerRefusedException $refused): void
    {
        $this->deferred?->error($this->cancelled ?? $refused);
        $this->end();
    }

    public function items(string $id): void
    {
        $stream = new ItemStream($this->sender, $id, null);
        $this->sender->waitAs($id, $this, new StreamedSubmission($this, $stream->waiter()));
        $this->deferred?->complete($stream->items());
        $this->deferred = null;
    }

    public function report(string $id, string $frame): void
    {
        $this->sender->report($id, $frame);
    }

    public function end(): void
    {
        $this->deferred = null;
        if ($this->unwatch !== null) {
            ($this->unwatch)();
            $this->unwatch = null;
        }
    }

    private function cancel(CancelledException $cancelled): void
    {
        $this->cancelled ??= $cancelled;
        $this->sender->withdraw([$this->id]);
    }
}
