<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

use Spindle\Cli\Internal\TerminalText;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;

/** The report of `spindle queue show` about one job, as text or as JSON. Control characters in values are escaped. */
final class QueuedJobReport
{
    /** Order of details in the text. The reason comes last: it can have many lines, such as an exception's trace. */
    private const ORDER = [
        ...QueueReport::TIMES, 'owner', 'claim_number', 'attempts', 'crashes', 'failures', 'exclusive_key',
    ];

    private readonly string $status;

    /** @param array<string, int|float|string> $details as from {@see \Spindle\Remote\Broker::listJobs()} */
    public function __construct(
        private readonly string $queue,
        private readonly string $id,
        JobStatus $status,
        private readonly array $details,
    ) {
        $this->status = isset($details['blocked']) ? 'blocked' : $status->value;
    }

    /** @return array<string, mixed> for `--json` */
    public function data(): array
    {
        $job = ['id' => Job::givenId($this->id), 'status' => $this->status, ...$this->details];
        unset($job['blocked']);

        return ['queue' => $this->queue, 'job' => $job];
    }

    /** @return non-empty-list<string> */
    public function lines(): array
    {
        $values = ['id' => Job::givenId($this->id), 'status' => $this->status];
        foreach (array_intersect(self::ORDER, array_keys($this->details)) as $name) {
            $values[$name] = QueueReport::text($name, $this->details[$name]);
        }
        $width = max(array_map(\strlen(...), array_keys($values)));
        $lines = [];
        foreach ($values as $name => $value) {
            $lines[] = str_pad($name, $width) . '  ' . TerminalText::escape($value);
        }
        $reason = (string) ($this->details['reason'] ?? '');
        foreach ($reason === '' ? [] : ['reason', ...explode("\n", $reason)] as $i => $line) {
            $lines[] = ($i === 0 ? '' : '  ') . TerminalText::escape($line);
        }

        return $lines;
    }
}
