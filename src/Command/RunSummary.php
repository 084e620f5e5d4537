<?php

declare(strict_types=1);

namespace Spindle\Command;

/** Counts of a finished run: the return value of {@see CommandPool::run()}'s generator. */
final class RunSummary
{
    /**
     * @param int  $succeeded commands that succeeded
     * @param int  $failed    commands that did not, including the cancelled ones
     * @param bool $halted    whether the halt policy ended the run before its input ended
     */
    public function __construct(
        public readonly int $succeeded,
        public readonly int $failed,
        public readonly bool $halted,
    ) {}
}
