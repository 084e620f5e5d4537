<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** A message in the mailbox (channel) of an agent, named $owner in {@see Broker}, or of a caller, named at random. */
final class MailboxMessage
{
    /**
     * @param bool                  $jobsAvailable whether jobs can be claimed
     * @param array<string, string> $outcomes      frames by job id; '' if {@see Broker::attach()} has to be called,
     *                                             because the frame is too large, or the job was cancelled
     * @param array<string, int>    $cancelled     claim numbers of cancelled jobs, by job id
     * @param list<string>          $items         ids of generator tasks with new items
     * @param list<string>          $taken         ids of generator tasks whose reader took items or stopped reading
     * @param array<string, string> $reports       frames of tasks' reports, by job id
     * @param float|null            $nextDueIn     seconds until the delay of a job is over; null if none is reported
     * @param array<string, int>    $lostAgents    numbers of requeued jobs, by the owner whose lease has ended
     */
    public function __construct(
        public readonly bool $jobsAvailable = false,
        public readonly array $outcomes = [],
        public readonly array $cancelled = [],
        public readonly array $items = [],
        public readonly array $taken = [],
        public readonly array $reports = [],
        public readonly ?float $nextDueIn = null,
        public readonly array $lostAgents = [],
    ) {}
}
