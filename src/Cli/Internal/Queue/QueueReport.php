<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;

/** The report of `spindle queue show`, as text or as JSON. Control characters in values are escaped. */
final class QueueReport
{
    public const TIMES = ['since', 'due', 'died', 'postponed_since'];

    /** Columns after the id, by status. The reason is last, because it can contain spaces. */
    private const COLUMNS = [
        'waiting' => ['since'],
        'running' => ['owner', 'since', 'crashes', 'failures'],
        'delayed' => ['due', 'crashes', 'failures'],
        'dead' => ['died', 'attempts', 'owner', 'reason'],
        'done' => [],
        'cancelled' => [],
    ];

    /**
     * @param array<string, int> $statistics as from {@see \Spindle\Remote\Broker::statistics()}
     * @param array<string, array<string, array<string, int|float|string>>> $jobs details by status and stored id
     */
    public function __construct(
        private readonly string $queue,
        private readonly array $statistics,
        private readonly array $jobs,
    ) {}

    /** @return array<string, mixed> for `--json` */
    public function data(): array
    {
        $jobs = array_map(
            static fn(array $jobs): array => array_map(
                static fn(string $id, array $details): array => ['id' => Job::givenId($id), ...$details],
                array_keys($jobs),
                $jobs,
            ),
            $this->jobs,
        );

        return ['queue' => $this->queue, 'statistics' => $this->statistics, 'jobs' => $jobs];
    }

    /** @return non-empty-list<array{string, list<string>}> title and lines of each section */
    public function sections(): array
    {
        $sections = [[$this->queue, $this->summary()]];
        foreach ($this->jobs as $status => $jobs) {
            if ($jobs !== []) {
                $sections[] = [$status, $this->table(JobStatus::from($status), $jobs)];
            }
        }

        return $sections;
    }

    /** @return list<string> */
    private function summary(): array
    {
        $statistic = fn(string $name): int => $this->statistics[$name] ?? 0;
        $remarks = [
            'waiting' => $statistic('waiting') > 0
                ? 'the oldest for ' . Duration::format($statistic('oldest_ms') / 1000)
                : '',
            'running' => $statistic('agents') === 1
                ? '1 agent serves the queue'
                : "{$statistic('agents')} agents serve the queue",
            'delayed' => $statistic('delayed') > 0 && $statistic('agents') === 0
                ? 'until an agent serves the queue, even if they are due'
                : '',
            'blocked' => $statistic('blocked') > 0 ? 'until another job with the same exclusive key has ended' : '',
            'dead' => '',
        ];
        $width = max(array_map(
            static fn(string $name): int => \strlen((string) $statistic($name)),
            array_keys($remarks),
        ));
        $lines = [];
        foreach ($remarks as $name => $remark) {
            $lines[] = rtrim(\sprintf("  %-7s  %{$width}d  %s", $name, $statistic($name), $remark));
        }

        $numbers = array_map($statistic, [...array_keys($remarks), 'submitted_total', 'agents']);
        $isUnused = array_sum($numbers) === 0;
        $postponed = $statistic('postponed_total');

        return [
            ...$lines,
            "  in all   {$statistic('submitted_total')} submitted, {$statistic('done_total')} done, "
                . "{$statistic('died_total')} died, {$statistic('cancelled_total')} cancelled; "
                . "{$statistic('retried_total')} retried, {$statistic('lost_total')} requeued from lost agents"
                . ($postponed > 0 ? ", {$postponed} postponed" : ''),
            ...($isUnused ? ["  {$this->queue} never had a job, and no agent serves it. Is this name correct?"] : []),
        ];
    }

    /**
     * @param array<string, array<string, int|float|string>> $jobs details by {@see Job::storedId()}
     *
     * @return list<string>
     */
    private function table(JobStatus $status, array $jobs): array
    {
        $isPostponed = array_column($jobs, 'postponed_since') !== [];
        $columns = [...self::COLUMNS[$status->value], ...($isPostponed ? ['postponed_since'] : [])];
        $rows = [['id', ...$columns]];
        foreach ($jobs as $id => $details) {
            $cell = static fn(string $column): string => self::cell($column, $details[$column] ?? '');
            $rows[] = [TerminalText::escape(Job::givenId($id)), ...array_map($cell, $columns)];
        }
        $lines = array_map(static fn(string $line): string => "  {$line}", AlignedRows::lines($rows));
        $more = ($this->statistics[$status->value] ?? 0) - \count($jobs);

        return $more > 0 ? [...$lines, "  and {$more} more (see --limit)"] : $lines;
    }

    private static function cell(string $column, int|float|string $value): string
    {
        $text = self::text($column, $value);

        return TerminalText::escape($column === 'reason' ? explode("\n", $text, 2)[0] : $text);
    }

    /** Returns the text of a detail. A time, given in milliseconds, becomes a date and time in UTC. */
    public static function text(string $name, int|float|string $value): string
    {
        return \in_array($name, self::TIMES, true) && !\is_string($value)
            ? gmdate('Y-m-d\TH:i:s\Z', (int) ($value / 1000))
            : (string) $value;
    }
}
