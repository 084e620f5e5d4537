<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\ProcessTree;

/** Samples a server's memory and its database connections. */
final class Watch
{
    /** Number of samples after which the list of processes is read again. */
    private const SAMPLES_PER_SEARCH = 10;

    /** @var list<array{float, int}> seconds since the start, and bytes */
    private array $memory = [];

    private int $connections = 0;

    /** @var list<int> */
    private array $pids = [];

    private readonly float $start;

    private float $last = 0.0;

    /** @param float $interval smallest number of seconds between two samples */
    public function __construct(
        private readonly Served $served,
        private readonly Database $database,
        private readonly float $interval = 0.2,
    ) {
        $this->start = self::now();
    }

    public function sample(): void
    {
        $now = self::now();
        if ($now - $this->last < $this->interval) {
            return;
        }
        $this->last = $now;
        if (\count($this->memory) % self::SAMPLES_PER_SEARCH === 0) {
            $this->pids = $this->served->processes->pids();
        }
        $this->memory[] = [round($now - $this->start, 3), ProcessTree::memoryOf($this->pids)];
        $this->connections = max($this->connections, $this->database->connections());
    }

    /** @return int peak memory in bytes */
    public function peakMemory(): int
    {
        return max([0, ...array_column($this->memory, 1)]);
    }

    /** @return int largest number of connections */
    public function connections(): int
    {
        return $this->connections;
    }

    /** @return list<array{float, int}> seconds since the start, and bytes of all processes */
    public function memory(): array
    {
        return $this->memory;
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
