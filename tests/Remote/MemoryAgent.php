<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

/** An owner that a {@see MemoryQueue} knows. */
final class MemoryAgent
{
    /** When its lease ends. */
    public float $end = 0.0;

    /** Jobs that it wanted and did not get; 0 when it is not to be told of others. */
    public int $idle = 0;

    /** @var array<string, MemoryJob> those that it has */
    public array $jobs = [];

    /** Whether it has given up its lease, with nothing that runs. */
    public bool $left = false;

    /** The number of the last of its claims that may have begun. */
    public int $begun = \PHP_INT_MAX;

    /** Whether its lease was prolonged since it was heard of. */
    public bool $spared = false;

    public function __construct(public readonly string $name) {}
}
