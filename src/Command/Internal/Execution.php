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
            try {
                $this->waiting->suspend();
            } finally {
                $this->waiting = null;
            }
        }

        return $this->result ?? throw $this->failure ?? new \LogicException('Resumed without an outcome');
    }

    public function finished(Ticket $ticket, CommandResult $result): void
    {
        $this->result = $result;
        $this->wake();
    }

    public function drain(): void {}

    public function lost(Ticket $ticket, \Throwable $reason): void
    {
        $this->failure = $reason;
        $this->wake();
    }

    private function wake(): void
    {
        $waiting = $this->waiting;
        $this->waiting = null;
        $waiting?->resume();
    }
}
