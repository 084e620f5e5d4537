<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\CommandResult;

/** Writes the progress: at most one line of JSON a second, or lines of text, which get rarer in a longer run. */
final class LineProgress implements Progress
{
    /** The pause between two lines of text is this share of the run's time so far, and at most MAX_PAUSE seconds. */
    private const PAUSE_SHARE = 1 / 60;
    private const MAX_PAUSE = 60.0;

    private string $lastState = '';

    /** Time from which a line may be written, in seconds since the run began. */
    private float $nextAt = 0.0;

    /** Null for JSON, because the program that reads the lines expects only JSON objects with statistics. */
    private readonly ?FailureNotices $notices;

    public function __construct(private readonly ProgressConsole $console, private readonly bool $json)
    {
        $this->notices = $json ? null : new FailureNotices($console);
    }

    public function finished(InputJob $job, CommandResult $result, RunStatistics $statistics): void
    {
        if (!$result->succeeded()) {
            $this->notices?->add($job, $result, $statistics->elapsed());
        }
    }

    public function update(RunStatistics $statistics): void {}

    public function clearingBytes(): string
    {
        return '';
    }

    public function wrote(string $bytes): void {}

    public function close(): void {}

    public function show(RunStatistics $statistics): void
    {
        $elapsed = $statistics->elapsed();
        $this->notices?->summarise($elapsed);
        $state = "{$statistics->submitted} {$statistics->doneCount()} {$statistics->total}";
        if ($state !== $this->lastState && $elapsed >= $this->nextAt) {
            $this->lastState = $state;
            $this->nextAt = $this->json ? 0.0 : $elapsed + min(self::MAX_PAUSE, $elapsed * self::PAUSE_SHARE);
            $this->console->writeLine($this->json ? self::json($statistics) : self::plain($statistics));
        }
    }

    public function finish(RunStatistics $statistics): void
    {
        $this->notices?->summarise(\INF);
        [$this->lastState, $this->nextAt] = ['', 0.0];
        $this->show($statistics);
    }

    public static function plain(RunStatistics $statistics): string
    {
        $total = $statistics->total === null ? '' : "/{$statistics->total}";
        $remaining = $statistics->remainingSeconds();
        $eta = $remaining === null ? '' : ', ETA ' . Duration::format($remaining);

        return \sprintf(
            '%d%s done, %d failed, %.1F/s%s',
            $statistics->doneCount(),
            $total,
            $statistics->failed,
            $statistics->rate(),
            $eta,
        );
    }

    public static function json(RunStatistics $statistics): string
    {
        $remaining = $statistics->remainingSeconds();

        return json_encode([
            'done' => $statistics->doneCount(),
            'total' => $statistics->total,
            'failed' => $statistics->failed,
            'running' => $statistics->runningCount(),
            'rate' => round($statistics->rate(), 3),
            'eta' => $remaining === null ? null : round($remaining, 3),
            'elapsed' => round($statistics->elapsed(), 3),
        ], \JSON_THROW_ON_ERROR);
    }
}
