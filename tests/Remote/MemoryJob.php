<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

/** A job in a {@see MemoryQueue} that has no outcome yet. */
final class MemoryJob
{
    /** @var ''|'waiting'|'running'|'delayed'|'blocked' */
    public string $status = '';

    /** Version, which changes with each status. A line's entry with an older version is void. */
    public int $ticket = 0;

    public float $since = 0.0;
    public float $waited = 0.0;
    public float $due = 0.0;
    public int $number = 0;
    public int $crashes = 0;
    public int $failures = 0;
    public ?float $postponedSince = null;
    public bool $cancelled = false;
    public bool $lost = false;
    public bool $streamed = false;

    /** Whether its items are not taken any more. */
    public bool $left = false;

    /** Whether a process has listened for its items, and since when none listens. */
    public bool $wasHeard = false;
    public ?float $unheardSince = null;

    public string $owner = '';

    /** The last owner that refused the job. */
    public string $refusedBy = '';
    public int $refusals = 0;

    /** Number among the claims of the owner. */
    public int $claim = 0;

    /** @param array<array-key, string> $mailboxes mailboxes of the job, by name */
    public function __construct(
        public readonly string $id,
        public readonly string $frame,
        public readonly string $key,
        public array $mailboxes,
    ) {}

    /** Returns whether only the process that has submitted the job knows the id, which begins with its mailbox. */
    public function isPrivate(): bool
    {
        $isOwn = fn(string $mailbox): bool => $mailbox !== '' && str_starts_with($this->id, $mailbox);

        return array_filter($this->mailboxes, $isOwn) !== [];
    }
}
