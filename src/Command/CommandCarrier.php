<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\SpindleException;

/** Runs the commands of a pool in another place, as bytes: see {@see CommandPoolOptions::$on}. */
interface CommandCarrier
{
    /** Default and maximum number of a pool's commands that the carrier has at once. */
    public const DEFAULT_CONCURRENCY = 256;
    public const MAX_CONCURRENCY = 10_000;

    /**
     * Runs a command, once as far as the carrier can know, and suspends until it has ended.
     *
     * Cancellation: ends the command, then returns its outcome, or throws CancelledException if it was never started.
     *
     * @param string       $command as {@see PortableCommand::encode()} returns it
     * @param Cancellation $recall  prevents a start; a command that has started goes on
     *
     * @return string outcome as {@see PortableCommand::outcome()} returns it
     *
     * @throws CancelledException
     * @throws SpindleException when the outcome is not known
     */
    public function carry(string $command, Cancellation $recall, Cancellation $cancellation): string;
}
