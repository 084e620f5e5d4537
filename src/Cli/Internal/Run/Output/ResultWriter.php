<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\OutputClosedException;
use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;

interface ResultWriter
{
    /**
     * Returns the command to start for a job. An implementation that prints output while the job runs sets the output
     * targets of this command.
     *
     * @throws OutputClosedException|OutputFailedException
     */
    public function start(InputJob $job, Command $command): Command;

    /**
     * Prints the part of a job's output that was not printed while the job ran.
     *
     * @return int bytes of the job's standard output; 0 if they are unknown, because the job itself wrote them
     *
     * @throws OutputClosedException|OutputFailedException
     */
    public function write(InputJob $job, CommandResult $result): int;
}
