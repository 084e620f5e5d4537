<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\SpindleException;

/** Runs the commands of a {@see \Spindle\Command\CommandPool} on other machines. Receives and returns encoded bytes. */
interface CommandTransport
{
    /** Default for the maximum number of commands that a transport has at the same time, running or waiting. */
    public const DEFAULT_CONCURRENCY = 256;

    public const MAX_CONCURRENCY = 10_000;

    /**
     * Runs a command, and suspends the caller until the command has ended. If the process that runs the command is
     * lost, the transport may run the command again.
     *
     * @param string       $encoded      command as {@see \Spindle\Command\PortableCommand::encode()} returns it
     * @param Cancellation $withdrawal   prevents the start of a waiting command, and has no effect on a running one
     * @param Cancellation $cancellation prevents the start of a waiting command. Ends a running command; execute()
     *                                   then returns the outcome. When the caller of the pool cancels, isRequested()
     *                                   returns true immediately, but the event loop calls subscribers later
     *
     * @return string outcome as {@see \Spindle\Command\PortableCommand::encodeResult()} returns it
     *
     * @throws CancelledException when the command was withdrawn or cancelled before its start
     * @throws SpindleException   when the outcome is not known
     */
    public function execute(string $encoded, Cancellation $withdrawal, Cancellation $cancellation): string;
}
