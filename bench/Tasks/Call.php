<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/**
 * A task bound to its input, for pools whose tasks have no input.
 *
 * @template T
 */
final readonly class Call
{
    /** @var callable(T): mixed */
    private mixed $task;

    /**
     * @param callable(T): mixed $task
     * @param T                  $input
     */
    public function __construct(callable $task, private mixed $input)
    {
        $this->task = $task;
    }

    public function __invoke(): mixed
    {
        return ($this->task)($this->input);
    }
}
