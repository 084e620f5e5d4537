<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** Runs one task after another in this process. */
final readonly class Sequential implements TaskPool
{
    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        foreach ($inputs as $input) {
            $take($task($input));
        }
    }

    public function close(): void {}
}
