<?php

declare(strict_types=1);

namespace Spindle\Command;

/** Numbers of a finished run: the return value of the generator of {@see CommandPool::run()}. */
final class RunSummary
{
    /**
     * @param int  $failed number of commands that failed or were cancelled
     * @param bool $halted whether the halt policy ended the run before its input ended
     */
    public function __construct(
        public readonly int $succeeded,
        public readonly int $failed,
        public readonly bool $halted,
    ) {}
}
