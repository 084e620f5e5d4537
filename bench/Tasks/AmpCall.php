<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Amp\Cancellation;
use Amp\Parallel\Worker\Task;
use Amp\Sync\Channel;

/** @implements Task<mixed, never, never> */
final readonly class AmpCall implements Task
{
    /** @var callable(): mixed */
    private mixed $task;

    /** @param callable(): mixed $task */
    public function __construct(callable $task)
    {
        $this->task = $task;
    }

    public function run(Channel $channel, Cancellation $cancellation): mixed
    {
        return ($this->task)();
    }
}
