<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/** Assigns slot numbers to running jobs, starting at 1. A job gets the lowest free number. */
final class SlotTable
{
    /** @var \SplMinHeap<int> free numbers up to $highest, the highest number that was ever assigned */
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
