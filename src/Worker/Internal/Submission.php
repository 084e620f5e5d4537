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

    /** @var (\Closure(): void)|null called with its outcome */
    public ?\Closure $settled = null;

    /** @param DeferredFuture<mixed>|null $deferred null once it has its outcome, which may be what keeps a generator going */
    public function __construct(string $code, int $kind, private ?DeferredFuture $deferred)
    {
        parent::__construct($code, $kind);
    }

    public function isSettled(): bool
    {
        return $this->deferred === null;
    }

    public function settle(mixed $value): void
    {
        if ($this->cancelled !== null) {
            $this->fail($this->cancelled);
        } elseif ($this->deferred !== null) {
            $this->deferred->complete($value);
            $this->end();
        }
    }

    public function fail(\Throwable $failure): void
    {
        if ($this->deferred !== null) {
            $this->deferred->error($this->cancelled ?? $failure);
            $this->end();
        }
    }

    private function end(): void
    {
        $this->deferred = null;
        if ($this->settled !== null) {
            ($this->settled)();
        }
    }
}
