<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** How many connections, and how many fibers that share them. */
final readonly class Shape implements \Stringable
{
    public function __construct(public int $connections, public int $fibers) {}

    public function __toString(): string
    {
        return "{$this->connections} × {$this->fibers}";
    }
}
