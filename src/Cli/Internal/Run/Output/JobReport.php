<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Plural;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Command\CommandResult;

final class JobReport
{
    private const MAX_SLOW = 5;
    private const MAX_FAILED = 20;
    private const MAX_RECENT = 3;

    private const MIN_SLOW_SECONDS = 0.1;

    /** Maximum bytes of a command that the report prints in full, so that the user can run the job again. */
    private const MAX_COMMAND_BYTES = 4096;

    /** Number of bytes at the end of an output in which {@see recentFailures()} searches for the last line. */
    private const TAIL_BYTES = 2048;

    /** @var list<array{float, InputJob}> duration and job, the slowest first */
    private array $slow = [];

    /** A job is among the slowest if it ran longer than this number of seconds. */
    private float $slowSeconds = self::MIN_SLOW_SECONDS;

    /** @var list<array{InputJob, string}> job, and how it ended */
    private array $failed = [];
    private int $failedCount = 0;

    /** @var list<array{InputJob, CommandResult}> failed jobs, the latest first */
    private array $recent = [];

    public function add(InputJob $job, CommandResult $result): void
    {
        if ($result->duration > $this->slowSeconds) {
            $this->addSlow($job, $result->duration);
        }
        if ($result->succeeded()) {
            return;
        }
        if (++$this->failedCount <= self::MAX_FAILED) {
            $this->failed[] = [$job, FailureNotices::how($result)];
        }
        array_unshift($this->recent, [$job, $result]);
        $this->recent = \array_slice($this->recent, 0, self::MAX_RECENT);
    }

    /** @return list<string> how the latest failed jobs ended, with the last line of their output; latest first */
    public function recentFailures(): array
    {
        return array_map(static function (array $failure): string {
            [$job, $result] = $failure;
            $line = self::lastLine($result);

            return "job {$job->sequence}, " . FailureNotices::how($result) . ($line === '' ? '' : ": {$line}");
        }, $this->recent);
    }

    /** @return list<string> the lines of the report, to print at the end of a run */
    public function lines(): array
    {
        $lines = $this->slow === [] ? [] : ['spindle: slowest jobs:'];
        foreach ($this->slow as [$seconds, $job]) {
            $command = TerminalText::fit($job->loggedCommand(), FailureNotices::MAX_COMMAND_COLUMNS);
            $lines[] = \sprintf('  %.1F s  job %d: %s', $seconds, $job->sequence, $command);
        }
        if ($this->failedCount === 0) {
            return $lines;
        }
        $them = $this->failedCount === 1 ? 'it' : 'them';
        $lines[] = 'spindle: ' . Plural::of($this->failedCount, 'job') . " failed; to run {$them} again:";
        foreach ($this->failed as [$job, $how]) {
            $lines[] = TerminalText::escape("  {$job->name()}, {$how}: ") . self::command($job);
        }
        if ($this->failedCount > \count($this->failed)) {
            $lines[] = '  and ' . Plural::of($this->failedCount - \count($this->failed), 'more job');
        }

        return $lines;
    }

    private function addSlow(InputJob $job, float $seconds): void
    {
        $this->slow[] = [$seconds, $job];
        usort($this->slow, static fn(array $a, array $b): int => $b[0] <=> $a[0]);
        $this->slow = \array_slice($this->slow, 0, self::MAX_SLOW);
        if (\count($this->slow) === self::MAX_SLOW) {
            $this->slowSeconds = $this->slow[self::MAX_SLOW - 1][0];
        }
    }

    private static function command(InputJob $job): string
    {
        $text = $job->loggedCommand();

        return \strlen($text) <= self::MAX_COMMAND_BYTES
            ? TerminalText::escape($text)
            : 'a command of ' . \strlen($text) . ' bytes';
    }

    /** Returns the last line of standard error that is not blank, or else of standard output; '' if both are blank. */
    private static function lastLine(CommandResult $result): string
    {
        foreach ([$result->stderrStream(), $result->stdoutStream()] as $stream) {
            $size = fstat($stream)['size'] ?? 0;
            $tail = rtrim((string) stream_get_contents($stream, self::TAIL_BYTES, max(0, $size - self::TAIL_BYTES)));
            $start = strrpos($tail, "\n");
            $line = trim($start === false ? $tail : substr($tail, $start));
            if ($line !== '') {
                return $line;
            }
        }

        return '';
    }
}
