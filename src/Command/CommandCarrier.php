<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\SpindleException;

/** Has the commands of a pool run elsewhere: see {@see CommandPoolOptions::$on}. It moves bytes. */
interface CommandCarrier
{
    /** Commands of a pool that it has at once: unless another number is given, and at most. */
    public const CONCURRENCY = 256;
    public const MOST = 10_000;

    /**
     * Has a command run, once as far as anybody can tell, and suspends until it is over.
     *
     * Cancellation: the command is ended before this returns what became of it, or throws CancelledException if it was never started.
     *
     * @param string       $command of {@see PortableCommand::encode()}
     * @param Cancellation $recall  the command is not to be started any more; if it has been, it goes on
     *
     * @return string of {@see PortableCommand::outcome()}
     *
     * @throws CancelledException
     * @throws SpindleException when it is not known what became of it
     */
    public function carry(string $command, Cancellation $recall, Cancellation $cancellation): string;
}
