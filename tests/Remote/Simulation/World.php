<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

use Random\Engine\Mt19937;
use Random\Randomizer;

/** The effects of jobs in a simulation, and the records of their runs. */
final class World
{
    public readonly Randomizer $random;

    public int $runs = 0;

    /** @var array<string, true> ids of running jobs */
    private array $running = [];

    /** @var array<string, string> ids of running jobs by key */
    private array $busy = [];

    /** @var list<string> violated invariants */
    public array $faults = [];

    /** @var array<string, string> */
    private array $keys = [];

    public function __construct(int $seed)
    {
        $this->random = new Randomizer(new Mt19937($seed));
    }

    public function keyOf(string $id, string $key): void
    {
        $this->keys[$id] = $key;
    }

    /** Returns a random number from 0 to 1. */
    public function chance(): float
    {
        return $this->random->getInt(0, 1 << 30) / (1 << 30);
    }

    /** Returns the seconds that a run takes. Nearly all runs are short. */
    public function duration(string $id): float
    {
        $chance = $this->chance();

        return match (true) {
            $chance < 0.001 => 40 * $this->chance(),
            $chance < 0.02 => 2 * $this->chance(),
            default => 0.05 * $this->chance(),
        };
    }

    public function fate(string $id, int $attempt): Fate
    {
        return match (true) {
            str_starts_with($id, 'poison') => Fate::Crashes,
            str_starts_with($id, 'bad') => Fate::Throws,
            preg_match('/^(late|unwanted)/', $id) === 1 && $attempt < 4 => Fate::Throws,
            $this->chance() < 0.01 => Fate::Crashes,
            default => Fate::Returns,
        };
    }

    public function started(string $id): void
    {
        ++$this->runs;
        if (isset($this->running[$id])) {
            $this->faults[] = "{$id} runs twice at once";
        }
        $this->running[$id] = true;
        $key = $this->keys[$id] ?? null;
        if ($key !== null) {
            if (isset($this->busy[$key])) {
                $this->faults[] = "{$id} runs beside {$this->busy[$key]}, both of the key {$key}";
            }
            $this->busy[$key] = $id;
        }
    }

    public function stopped(string $id): void
    {
        unset($this->running[$id]);
        $key = $this->keys[$id] ?? null;
        if ($key !== null) {
            unset($this->busy[$key]);
        }
    }
}
