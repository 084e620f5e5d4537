<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;

/** Prints no output, because --results saves it in files. */
final class NoOutput implements ResultWriter
{
    public function start(InputJob $job, Command $command): Command
    {
        return $command;
    }

    public function write(InputJob $job, CommandResult $result): int
    {
        return fstat($result->stdoutStream())['size'] ?? 0;
    }
}
