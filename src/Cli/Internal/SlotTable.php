<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** The numbers of the slots, from 1: a job gets the lowest that is free. */
final class SlotTable
{
    /** @var \SplMinHeap<int> those below the highest that are free */
    private \SplMinHeap $free;
    private int $highest = 0;

    public function __construct()
    {
        $this->free = new \SplMinHeap();
    }

    public function acquire(): int
    {
        return $this->free->isEmpty() ? ++$this->highest : $this->free->extract();
    }

    public function release(int $slot): void
    {
        $this->free->insert($slot);
    }
}
