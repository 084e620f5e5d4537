<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\DeferredFuture;

/** A submitted task, with the future for its outcome. */
final class Submission extends EncodedValue
{
    /** Exception of a cancellation. The task fails with this exception when it has ended or can no longer start. */
    public ?\Throwable $cancelled = null;

    /** Whether the task was never in a batch and was not withdrawn. A task in the {@see Backlog} is not new. */
    public bool $isNew = true;

    /** @var (\Closure(): void)|null called when {@see isOver()} becomes true */
    public ?\Closure $onEnd = null;

    private bool $isStreaming = false;

    /** @param DeferredFuture<mixed>|null $deferred null after the outcome, so that it keeps no generator alive */
    public function __construct(string $code, int $kind, private ?DeferredFuture $deferred)
    {
        parent::__construct($code, $kind);
    }

    public function hasOutcome(): bool
    {
        return $this->deferred === null;
    }

    /** Returns whether the task has its outcome and has yielded all items. Then a cancellation has no effect. */
    public function isOver(): bool
    {
        return $this->deferred === null && !$this->isStreaming;
    }

    public function stream(ItemStream $stream): void
    {
        $this->isStreaming = true;
        $this->settle($stream->items());
    }

    /** Called when the generator of the task has returned or thrown, or its worker has ended. */
    public function streamEnded(): void
    {
        $this->isStreaming = false;
        $this->end();
    }

    public function settle(mixed $value): void
    {
        if ($this->cancelled !== null) {
            $this->fail($this->cancelled);
        } elseif ($this->deferred !== null) {
            $this->deferred->complete($value);
            $this->deferred = null;
            $this->end();
        }
    }

    public function fail(\Throwable $failure): void
    {
        if ($this->deferred !== null) {
            $this->deferred->error($this->cancelled ?? $failure);
            $this->deferred = null;
            $this->end();
        }
    }

    public function ignore(): void
    {
        $this->deferred?->getFuture()->ignore();
    }

    private function end(): void
    {
        if ($this->onEnd !== null && $this->isOver()) {
            ($this->onEnd)();
        }
    }
}
