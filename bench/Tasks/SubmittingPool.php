<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Amp\Future;

/** One that also takes single tasks. */
interface SubmittingPool extends TaskPool
{
    /**
     * @param callable(): mixed $task
     *
     * @return Future<mixed>
     */
    public function submit(callable $task): Future;
}
