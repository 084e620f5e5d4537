<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Revolt\EventLoop;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\JobControl;
use Spindle\Cli\Internal\Run\ProgressOptions;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\CommandResult;

/** Shows a bar or a screen at the bottom of a terminal. At the end, reports the slowest and the failed jobs. */
final class ScreenProgress implements Progress
{
    private const MIN_FRAME_NANOSECONDS = 100_000_000;
    private const MAX_FRAME_NANOSECONDS = 1_000_000_000;

    /** Pause after drawing, as a multiple of the drawing time. With 100, drawing takes about 1 % of the time. */
    private const PAUSE_FACTOR = 100;

    /** Columns that the rate and a margin need in the line with the sparkline, the small chart of past rates. */
    private const RATE_COLUMNS = 14;

    private readonly ScreenLines $lines;
    private readonly ScreenStyle $style;
    private readonly BarView $bar;
    private readonly ?ScreenView $view;
    private readonly ?ScreenKeys $keys;
    private readonly RunningJobs $running;
    private readonly RateHistory $rates;
    private readonly JobReport $report;
    private readonly FailureNotices $notices;

    private int $nextFrame = 0;

    private ?RunStatistics $statistics = null;

    /** Whether the size of the terminal has changed since the visible lines were drawn. */
    private bool $isResized = false;

    private bool $readsKeys = false;

    private bool $isDue = false;

    public function __construct(
        private readonly ScreenTerminal $terminal,
        private readonly JobControl $control,
        private readonly ProgressOptions $options,
        private readonly ProgressConsole $console,
    ) {
        $this->lines = new ScreenLines(\STDIN);
        $this->style = ScreenStyle::fromEnvironment($options->colours);
        $this->bar = new BarView($this->style);
        $this->view = $options->mode === ProgressMode::Screen ? new ScreenView($this->style) : null;
        $this->keys = $options->mode === ProgressMode::Screen && $options->hasKeys ? new ScreenKeys($control) : null;
        $this->running = new RunningJobs();
        $this->rates = new RateHistory();
        $this->report = new JobReport();
        $this->notices = new FailureNotices($console);
        $terminal->watch($this->onResize(...), $this->clear(...), $this->onContinue(...));
        if ($this->keys !== null) {
            $terminal->restoreSettingsAtEnd();
        }
        $this->showSoon();
    }

    public function finished(InputJob $job, CommandResult $result, RunStatistics $statistics): void
    {
        $this->report->add($job, $result);
        if (!$result->succeeded()) {
            $this->notices->add($job, $result, $statistics->elapsed());
        }
    }

    public function wrote(string $bytes): void
    {
        $this->lines->wrote($bytes);
    }

    public function update(RunStatistics $statistics): void
    {
        if (hrtime(true) >= $this->nextFrame) {
            $this->show($statistics);
        }
    }

    public function clearingBytes(): string
    {
        $clear = $this->lines->clear();
        if ($clear !== '') {
            $this->showSoon();
        }

        return $this->terminal->prependUnsent($clear);
    }

    public function show(RunStatistics $statistics): void
    {
        $begin = hrtime(true);
        $this->statistics = $statistics;
        $elapsed = $statistics->elapsed();
        $this->notices->summarise($elapsed);
        $this->rates->record($elapsed, $statistics->doneCount());
        $this->running->update($this->control->runningJobs(), $elapsed, $this->keys?->isPaused !== true);
        if ($this->terminal->isReady()) {
            $this->readsKeys = $this->keys !== null && $this->terminal->readKeys($this->onKeys(...));
            $this->draw($statistics, false);
        }
        $end = hrtime(true);
        // The first drawing also loads classes, so its duration is not used for the pause.
        $pause = $this->nextFrame === 0 ? 0 : ($end - $begin) * self::PAUSE_FACTOR;
        $this->nextFrame = $end + max(self::MIN_FRAME_NANOSECONDS, min(self::MAX_FRAME_NANOSECONDS, $pause));
    }

    public function finish(RunStatistics $statistics): void
    {
        $this->notices->summarise(\INF);
        $this->running->update([], 0.0, false);
        if ($this->terminal->isReady()) {
            $this->draw($statistics, true);
            $this->lines->leave();
            $this->terminal->write("\n");
        }
        foreach ($this->report->lines() as $line) {
            $this->console->writeLine($line);
        }
    }

    public function close(): void
    {
        $this->clear();
        $this->terminal->close();
    }

    private function onResize(): void
    {
        $this->isResized = true;
        $this->console->showProgress();
    }

    private function clear(): void
    {
        if ($this->terminal->isReady()) {
            $this->terminal->write($this->clearingBytes());
        }
    }

    private function onContinue(): void
    {
        $this->lines->leave();
        $this->console->showProgress();
    }

    private function onKeys(string $bytes): void
    {
        if ($this->statistics !== null) {
            $now = $this->statistics->elapsed();
            $this->keys?->press($bytes, $this->running->longestFirst($now), $this->statistics);
            $this->console->showProgress();
        }
    }

    /** Shows the lines again after a short pause. The end of a job also shows the lines, but may come much later. */
    private function showSoon(): void
    {
        if (!$this->isDue) {
            $this->isDue = true;
            EventLoop::unreference(EventLoop::delay(self::MIN_FRAME_NANOSECONDS / 1e9, function (): void {
                $this->isDue = false;
                $this->console->showProgress();
            }));
        }
    }

    private function draw(RunStatistics $statistics, bool $isLast): void
    {
        [$columns, $rows] = $this->terminal->size();
        $state = new ScreenState(
            $statistics,
            $this->running->longestFirst($statistics->elapsed()),
            $this->rates->spread($statistics->remainingSeconds() ?? 0.0),
            $this->report->recentFailures(),
            $this->rates->sparkline($columns - self::RATE_COLUMNS, $this->style->unicode),
            $this->keys?->isPaused === true,
        );
        $lines = $this->view === null || $isLast || !ScreenView::fits($columns, $rows)
            ? [$this->bar->line($state, $columns - 1)]
            : $this->view->lines($state, $this->readsKeys ? $this->keys : null, $columns - 1, $rows - 1);
        $bytes = $this->isResized ? $this->lines->clearAfterResize($columns) : '';
        $this->isResized = false;
        $this->terminal->write($bytes . $this->lines->draw($lines));
    }
}
