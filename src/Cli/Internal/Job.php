<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Command\Command;

/** One record of the input, made into a command. */
final class Job
{
    /**
     * @param int    $sequence its number in the input, from 1
     * @param string $input    the record; what --tag writes before its lines
     * @param string $text     the command as the job log has it
     * @param int    $slot     the number of the slot that it runs in; 0 when nobody asks for it
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
