<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** What comes to a mailbox. */
final class Letter
{
    /**
     * @param bool                  $work     whether there are jobs to be claimed
     * @param array<string, string> $outcomes frames by the ids of jobs; '' where it is to be looked for
     * @param array<string, int>    $unwanted numbers of claims by the ids of jobs that nobody wants any more
     * @param list<string>          $items    ids of jobs that have items to be taken
     * @param list<string>          $taken    ids of jobs of which items were taken
     * @param array<string, string> $reports  frames by the ids of jobs
     * @param float|null            $due      seconds after which a job may be claimed whose delay is over then
     */
    public function __construct(
        public readonly bool $work = false,
        public readonly array $outcomes = [],
        public readonly array $unwanted = [],
        public readonly array $items = [],
        public readonly array $taken = [],
        public readonly array $reports = [],
        public readonly ?float $due = null,
    ) {}
}
