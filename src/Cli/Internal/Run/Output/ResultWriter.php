<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Command\CommandResult;

/** Prints the outcome of a job. */
interface ResultWriter
{
    /**
     * @return int bytes of the job's standard output
     *
     * @throws OutputClosedException
     * @throws OutputFailedException
     */
    public function write(InputJob $job, CommandResult $result): int;
}
