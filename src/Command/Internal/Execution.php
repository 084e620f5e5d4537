<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandResult;
use Spindle\Internal\Async\Condition;

/** Waits for the outcome of one {@see CommandPool::execute()} call. */
final class Execution implements PendingCommandOwner
{
    private ?CommandResult $result = null;
    private ?\Throwable $failure = null;

    public function __construct(
        private readonly ?Cancellation $cancellation = null,
        private readonly Condition $ended = new Condition(),
    ) {}

    /** Suspends until the command has an outcome. Returns the result. Throws if the command failed without a result. */
    public function wait(): CommandResult
    {
        if (!$this->isOver()) {
            $this->ended->wait();
        }

        return $this->result ?? throw $this->failure ?? new \LogicException('Resumed without an outcome');
    }

    public function isOver(): bool
    {
        return $this->result !== null || $this->failure !== null;
    }

    public function cancellation(): ?Cancellation
    {
        return $this->cancellation;
    }

    public function finished(PendingCommand $pending, CommandResult $result): void
    {
        $this->result = $result;
        $this->ended->notify();
    }

    public function close(): void {}

    /** Does nothing: {@see CommandPool::cancelWaiting()} cancels commands of run() and runInOrder() only. */
    public function cancelWaiting(): void {}

    public function failed(PendingCommand $pending, \Throwable $reason): void
    {
        $this->failure = $reason;
        $this->ended->notify();
    }
}
