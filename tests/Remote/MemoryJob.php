<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

/** A job in a {@see MemoryQueue} that has no outcome yet. */
final class MemoryJob
{
    /** @var ''|'waiting'|'running'|'delayed'|'blocked' */
    public string $status = '';

    /** Another one each time that its status changes: a line that has an older one of it has nothing. */
    public int $ticket = 0;

    public float $since = 0.0;
    public float $due = 0.0;
    public int $number = 0;
    public int $crashes = 0;
    public int $fails = 0;
    public bool $cancelled = false;
    public bool $lost = false;
    public bool $streamed = false;

    /** Whether nobody takes its items any more. */
    public bool $left = false;

    /** Whether somebody has listened for its items, and since when nobody does. */
    public bool $wasHeard = false;
    public ?float $unheardSince = null;

    public string $owner = '';

    /** The owner that has refused it last. */
    public string $refusedBy = '';

    /** Its number among the claims of its owner. */
    public int $claim = 0;

    /** @param array<array-key, string> $mailboxes that get what is told of it, by themselves */
    public function __construct(
        public readonly string $id,
        public readonly string $frame,
        public readonly string $key,
        public array $mailboxes,
    ) {}
}
