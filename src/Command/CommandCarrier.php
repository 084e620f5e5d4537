<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\SpindleException;

/**
 * Runs the commands of a pool instead of launchers, for example on other machines. Commands and outcomes are bytes.
 * A carrier is set with {@see CommandPoolOptions::$carrier}.
 */
interface CommandCarrier
{
    /** Default concurrency of a pool with a carrier, and the largest that {@see CommandPool::capacity()} returns. */
    public const DEFAULT_CONCURRENCY = 256;
    public const MAX_CONCURRENCY = 10_000;

    /**
     * Runs a command and suspends until it has ended. A carrier that has lost the process that ran the command may run
     * the command again.
     *
     * Cancellation: ends the command and returns its outcome.
     *
     * @param string       $command      encoded by {@see PortableCommand::encode()}
     * @param Cancellation $recall       prevents the start of a waiting command, and has no effect on a running one
     * @param Cancellation $cancellation ends a running command, and prevents the start of a waiting one
     *
     * @return string outcome, encoded by {@see PortableCommand::outcome()}
     *
     * @throws CancelledException when the command was never started
     * @throws SpindleException   when the outcome is not known
     */
    public function carry(string $command, Cancellation $recall, Cancellation $cancellation): string;
}
