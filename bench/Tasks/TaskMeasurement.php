<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** Measurements of the worker pool. */
enum TaskMeasurement: string
{
    case Bulk = 'bulk';
    case Single = 'single';
    case Objects = 'objects';
    case Mix = 'mix';
    case Cpu = 'cpu';
    case Echo = 'echo';
    case Memory = 'memory';
    case Start = 'start';
    case Death = 'death';

    /** Returns the default number of tasks per measurement; for the last two, of repetitions. */
    public function count(): int
    {
        return match ($this) {
            self::Bulk => 500_000,
            self::Single => 2_000,
            self::Objects => 100_000,
            self::Mix => 10_000,
            self::Cpu => 15,
            self::Echo => 200,
            self::Memory => 1_000_000,
            self::Start => 5,
            self::Death => 20,
        };
    }

    /** Returns whether the figure needs a pool that has not run before. */
    public function isCold(): bool
    {
        return match ($this) {
            self::Cpu, self::Start, self::Death => true,
            default => false,
        };
    }

    public function title(): string
    {
        return match ($this) {
            self::Bulk => 'No-op tasks in bulk',
            self::Single => 'One task at a time: median time from its submission to its result',
            self::Objects => 'Invokable objects, submitted with at most 1,000 outcomes awaited',
            self::Mix => 'One task in 100 uses 100 ms of CPU time, the others 10 microseconds',
            self::Cpu => "The CPU-bound tasks of Pumice's example, including the start of the pool",
            self::Echo => 'A string to a worker and back',
            self::Memory => 'The memory of this process while it reads tasks from a generator',
            self::Start => 'From the creation of a pool of 8 to a result',
            self::Death => 'From the death of a worker to the exception',
        };
    }
}
