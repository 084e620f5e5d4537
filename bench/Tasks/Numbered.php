<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** An object that is itself a task. */
final readonly class Numbered
{
    public function __construct(private int $number) {}

    public function __invoke(): int
    {
        return $this->number;
    }
}
