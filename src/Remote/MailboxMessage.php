<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** A message to a mailbox. */
final class MailboxMessage
{
    /**
     * @param bool                  $jobsAvailable whether jobs can be claimed
     * @param array<string, string> $outcomes      frames by job id; '' for one that must be fetched
     * @param array<string, int>    $withdrawn     claim numbers by the ids of withdrawn jobs
     * @param list<string>          $items         ids of jobs with new items
     * @param list<string>          $taken         ids of jobs whose items were taken
     * @param array<string, string> $reports       frames by job id
     * @param float|null            $nextDueIn     seconds until the delay of a job is over
     */
    public function __construct(
        public readonly bool $jobsAvailable = false,
        public readonly array $outcomes = [],
        public readonly array $withdrawn = [],
        public readonly array $items = [],
        public readonly array $taken = [],
        public readonly array $reports = [],
        public readonly ?float $nextDueIn = null,
    ) {}
}
