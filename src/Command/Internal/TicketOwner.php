<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;

/** Who waits for the outcome of a ticket; exactly one of these is called for each, once. */
interface TicketOwner
{
    public function finished(Ticket $ticket, CommandResult $result): void;

    /** Whoever waits is to hand out no more commands; those that run are waited for. */
    public function drain(): void;

    /** There is no outcome: the launcher died, or a callback for its output threw. */
    public function lost(Ticket $ticket, \Throwable $reason): void;
}
