<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** A message that a mailbox receives. An agent's mailbox has the agent's owner name; a caller's has a random name. */
final class MailboxMessage
{
    /**
     * @param bool                  $jobsAvailable whether jobs can be claimed
     * @param array<string, string> $outcomes      frames by job id; '' for a frame that is too large for a message
     * @param array<string, int>    $cancelled     claim numbers of cancelled jobs, by job id
     * @param list<string>          $items         ids of jobs with new items
     * @param list<string>          $taken         ids of jobs whose items were taken, or are not wanted any more
     * @param array<string, string> $reports       frames of tasks' reports, by job id
     * @param float|null            $nextDueIn     seconds until a delayed job can be claimed; null in other messages
     */
    public function __construct(
        public readonly bool $jobsAvailable = false,
        public readonly array $outcomes = [],
        public readonly array $cancelled = [],
        public readonly array $items = [],
        public readonly array $taken = [],
        public readonly array $reports = [],
        public readonly ?float $nextDueIn = null,
    ) {}
}
