<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

/** An owner that a {@see MemoryQueue} knows. */
final class MemoryAgent
{
    /** When its lease ends. */
    public float $end = 0.0;

    /** Number of jobs that the owner wanted and did not get; 0 when it needs no message about new jobs. */
    public int $idle = 0;

    /** @var array<string, MemoryJob> claimed jobs, by id */
    public array $jobs = [];

    /** Whether the owner has given up its lease, with no job running. */
    public bool $left = false;

    /** The number of the last of its claims that may have begun. */
    public int $begun = \PHP_INT_MAX;

    /** Whether the lease was extended since the owner was heard of. */
    public bool $spared = false;

    public function __construct(public readonly string $name) {}
}
