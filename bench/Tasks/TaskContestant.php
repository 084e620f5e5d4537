<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** A way of running PHP callables elsewhere. */
final readonly class TaskContestant
{
    /**
     * @param string                  $label   what tables call it, with its version where that is known
     * @param \Closure(int): TaskPool $pool    by the number of workers
     * @param string|null             $missing why it can't take part here; null when it can
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
