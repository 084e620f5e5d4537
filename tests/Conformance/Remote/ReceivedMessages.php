<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use Spindle\Remote\MailboxMessage;

/** All messages that a mailbox has received. */
final class ReceivedMessages
{
    /** Number of messages about available jobs. */
    public int $jobsAvailable = 0;

    /** @var list<array<string, string>> */
    public array $outcomes = [];

    /** @var array<string, int> */
    public array $cancelled = [];

    /** @var list<string> */
    public array $items = [];

    /** @var list<string> */
    public array $taken = [];

    /** @var list<array<string, string>> */
    public array $reports = [];

    /** @var array<string, int> */
    public array $lostAgents = [];

    public function add(MailboxMessage $message): void
    {
        $this->jobsAvailable += $message->jobsAvailable ? 1 : 0;
        foreach ($message->outcomes as $id => $frame) {
            $this->outcomes[] = [$id => $frame];
        }
        $this->cancelled = [...$this->cancelled, ...$message->cancelled];
        $this->items = [...$this->items, ...$message->items];
        $this->taken = [...$this->taken, ...$message->taken];
        $this->lostAgents = [...$this->lostAgents, ...$message->lostAgents];
        foreach ($message->reports as $id => $frame) {
            $this->reports[] = [$id => $frame];
        }
    }
}
