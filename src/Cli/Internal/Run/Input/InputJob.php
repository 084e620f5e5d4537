<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** One record of the input as a command. */
final class InputJob
{
    /**
     * @param int    $sequence number in the input, from 1
     * @param string $input    the record; --tag writes it before each line
     * @param string $text     the command in the job log
     * @param int    $slot     number of the job's slot; 0 when slots have no numbers
     * @param int|float|string $id of a task of --jsonl
     */
    public function __construct(
        public readonly int $sequence,
        public readonly string $input,
        public readonly string $text,
        public readonly Command $command,
        public readonly int $slot = 0,
        public readonly int|float|string $id = 0,
    ) {}
}
