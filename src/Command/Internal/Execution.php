<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Command\CommandResult;

/** One call of execute(): waits for the outcome of a single command. */
final class Execution implements TicketOwner
{
    private ?CommandResult $result = null;
    private ?\Throwable $failure = null;

    /** @var Suspension<mixed>|null */
    private ?Suspension $waiting = null;

    public function wait(): CommandResult
    {
        if ($this->result === null && $this->failure === null) {
            $this->waiting = EventLoop::getSuspension();
            $this->waiting->suspend();
        }

        return $this->result ?? throw $this->failure ?? new \LogicException('Resumed without an outcome');
    }

    public function finished(Ticket $ticket, CommandResult $result): void
    {
        $this->result = $result;
        $this->waiting?->resume();
    }

    public function drain(): void {}

    public function lost(Ticket $ticket, \Throwable $reason): void
    {
        $this->failure = $reason;
        $this->waiting?->resume();
    }
}
