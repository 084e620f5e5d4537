<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A number of connections, and a number of fibers that share them. */
final readonly class Shape implements \Stringable
{
    public function __construct(public int $connections, public int $fibers) {}

    public function __toString(): string
    {
        return "{$this->connections} × {$this->fibers}";
    }
}
