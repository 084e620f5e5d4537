<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** A way to run PHP callables in other processes or threads. */
final readonly class TaskContestant
{
    /**
     * @param string                  $label   name in tables, with the version if it is known
     * @param \Closure(int): TaskPool $pool    creates a pool with a number of workers
     * @param string|null             $missing why the contestant is not available; null when it is
     */
    public function __construct(
        public string $label,
        private \Closure $pool,
        public ?string $missing = null,
    ) {}

    public function pool(int $workers): TaskPool
    {
        return ($this->pool)($workers);
    }
}
