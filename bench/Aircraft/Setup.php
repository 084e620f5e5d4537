<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Support\Checkout;

/** How a contestant serves. */
final readonly class Setup
{
    /**
     * @param int  $workers     of FPM
     * @param int  $connections that a process of Spindle may have to the database
     * @param bool $onBoth      whether it may use both cores
     * @param bool $isTimed     whether Spindle's event loop is timed, see {@see LoopGaps}
     * @param bool $hasAgents   whether certificates are rendered by agents
     * @param Checkout|null $checkout whose Spindle it is; null when it is none
     */
    public function __construct(
        public Contestant $contestant,
        public Endpoint $database,
        public int $workers = 0,
        public int $connections = 10,
        public bool $onBoth = false,
        public bool $isTimed = false,
        public bool $hasAgents = false,
        public ?Checkout $checkout = null,
    ) {}

    public function label(): string
    {
        return $this->contestant->label($this->workers);
    }
}
