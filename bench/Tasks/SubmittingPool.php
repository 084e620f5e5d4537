<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Amp\Future;

/** A pool that also accepts single tasks. */
interface SubmittingPool extends TaskPool
{
    /**
     * @param callable(): mixed $task
     *
     * @return Future<mixed>
     */
    public function submit(callable $task): Future;
}
