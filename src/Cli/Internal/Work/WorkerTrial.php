<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

use Spindle\Internal\Async\LoopTurn;
use Spindle\SpindleException;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Starts one worker and ends it again, to find out whether workers can load the current code. */
final class WorkerTrial
{
    private ?WorkerPool $pool = null;

    public function __construct(private readonly WorkerPoolOptions $options) {}

    public function isRunning(): bool
    {
        return $this->pool !== null;
    }

    /** @throws SpindleException when no worker can be started, or when {@see stop()} is called */
    public function run(): void
    {
        $this->pool = $pool = new WorkerPool(1, 0, $this->options);
        try {
            LoopTurn::await(); // before this turn of the event loop, a signal would end this process
            $pool->submit('getmypid')->await();
            $pool->close();
        } finally {
            $pool->kill();
            $this->pool = null;
        }
    }

    public function stop(): void
    {
        $this->pool?->kill();
    }
}
