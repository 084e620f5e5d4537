<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Support\Checkout;

/** Configuration of a contestant. */
final readonly class Setup
{
    /**
     * @param int  $workers     workers of FPM
     * @param int  $connections largest number of database connections of a process of Spindle
     * @param bool $onBoth      whether the server may use both cores
     * @param bool $isTimed     whether Spindle's event loop is timed, see {@see LoopGaps}
     * @param bool $hasAgents   whether agents render certificates
     * @param Checkout|null $checkout the measured Spindle; null for other contestants
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
