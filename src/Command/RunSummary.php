<?php

declare(strict_types=1);

namespace Spindle\Command;

/** What a finished run comes to: the return value of {@see CommandPool::run()}'s generator. */
final class RunSummary
{
    /**
     * @param int  $succeeded commands whose result said succeeded
     * @param int  $failed    commands whose result did not, the cancelled ones included
     * @param bool $halted    whether the halt policy ended the run before its input did
     */
    public function __construct(
        public readonly int $succeeded,
        public readonly int $failed,
        public readonly bool $halted,
    ) {}
}
