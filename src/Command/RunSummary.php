<?php

declare(strict_types=1);

namespace Spindle\Command;

/** Numbers of a finished run: the return value of the generators of {@see CommandPool::run()} and runInOrder(). */
final class RunSummary
{
    /**
     * @param int  $failed number of commands that failed or were cancelled
     * @param bool $halted whether the condition of the halt policy was met, even if only by the last command
     */
    public function __construct(
        public readonly int $succeeded,
        public readonly int $failed,
        public readonly bool $halted,
    ) {}
}
