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

    /** @param DeferredFuture<mixed> $deferred */
    public function __construct(string $code, int $kind, public readonly DeferredFuture $deferred)
    {
        parent::__construct($code, $kind);
    }

    public function settle(mixed $value): void
    {
        if ($this->cancelled !== null) {
            $this->fail($this->cancelled);
        } elseif (!$this->deferred->isComplete()) {
            $this->deferred->complete($value);
            if ($this->settled !== null) {
                ($this->settled)();
            }
        }
    }

    public function fail(\Throwable $failure): void
    {
        if (!$this->deferred->isComplete()) {
            $this->deferred->error($this->cancelled ?? $failure);
            if ($this->settled !== null) {
                ($this->settled)();
            }
        }
    }
}
