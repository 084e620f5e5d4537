<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\DeferredFuture;

/** A task of its own, and the future that waits for its outcome. */
final class Submission extends Encoded
{
    /** Somebody has cancelled it: this is its outcome, once it can do nothing more. */
    public ?\Throwable $cancelled = null;

    /** No worker has had it yet. */
    public bool $waits = true;

    /** @var (\Closure(): void)|null called when it is over */
    public ?\Closure $ended = null;

    /** Its outcome is a generator, which has items to come. */
    private bool $streams = false;

    /** @param DeferredFuture<mixed>|null $deferred null once it has its outcome, which may be what keeps a generator going */
    public function __construct(string $code, int $kind, private ?DeferredFuture $deferred)
    {
        parent::__construct($code, $kind);
    }

    /** Whether it has its outcome and, if that is a generator, all its items: nothing is left to be cancelled. */
    public function isOver(): bool
    {
        return $this->deferred === null && !$this->streams;
    }

    public function stream(Stream $stream): void
    {
        $this->streams = true;
        $this->settle($stream->items());
    }

    /** All that its generator has yielded has come. */
    public function streamed(): void
    {
        $this->streams = false;
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

    private function end(): void
    {
        if ($this->isOver() && $this->ended !== null) {
            ($this->ended)();
        }
    }
}
