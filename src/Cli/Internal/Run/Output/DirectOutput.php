<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\Output;

/** The option --ungroup: jobs write to the standard output and standard error of this process. */
final class DirectOutput implements ResultWriter
{
    public function __construct(private readonly Console $console, private readonly bool $printsCommand) {}

    public function start(InputJob $job, Command $command): Command
    {
        if ($this->printsCommand) {
            $this->console->out("{$job->printedCommand()}\n");
        }

        return $command->withStdout(Output::Inherit)->withStderr(Output::Inherit);
    }

    public function write(InputJob $job, CommandResult $result): int
    {
        return 0;
    }
}
