<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\SpindleException;

/** Runs the commands of a {@see \Spindle\Command\CommandPool} on other machines. Commands and outcomes are bytes. */
interface CommandCarrier
{
    /** Default number of commands that a carrier has at once, running or waiting; and the largest number. */
    public const DEFAULT_CONCURRENCY = 256;
    public const MAX_CONCURRENCY = 10_000;

    /**
     * Runs a command and suspends until it has ended. A carrier that has lost the process that ran the command may run
     * the command again.
     *
     * @param string       $encoded      command as {@see \Spindle\Command\PortableCommand::encode()} returns it
     * @param Cancellation $withdrawal   prevents the start of a waiting command, and has no effect on a running one
     * @param Cancellation $cancellation ends a running command, whose outcome is then returned, and prevents the start
     *                                   of a waiting one
     *
     * @return string outcome as {@see \Spindle\Command\PortableCommand::outcome()} returns it
     *
     * @throws CancelledException when the command was never started
     * @throws SpindleException   when the outcome is not known
     */
    public function carry(string $encoded, Cancellation $withdrawal, Cancellation $cancellation): string;
}
