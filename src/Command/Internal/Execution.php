<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;

/** One call of execute(). */
final class Execution implements PendingCommandOwner
{
    private ?CommandResult $result = null;
    private ?\Throwable $failure = null;

    public function __construct(private readonly FiberCondition $ended = new FiberCondition()) {}

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

    public function finished(PendingCommand $pending, CommandResult $result): void
    {
        $this->result = $result;
        $this->ended->notify();
    }

    public function drain(): void {}

    public function lost(PendingCommand $pending, \Throwable $reason): void
    {
        $this->failure = $reason;
        $this->ended->notify();
    }
}
