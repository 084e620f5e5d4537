<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\Run\RunStatistics;
use Symfony\Component\Console\Helper\ProgressBar;
use Symfony\Component\Console\Output\BufferedOutput;

/** A progress bar that is redrawn in the last line of a terminal. */
final class BarProgress implements Progress
{
    private const KNOWN_TOTAL_FORMAT = '%current%/%max% [%bar%] %percent:3s%%  %rate%/s  ETA %eta%  failed %failed%';
    private const UNKNOWN_TOTAL_FORMAT = '%current% [%bar%]  %rate%/s  %time%  failed %failed%';

    private const MIN_REDRAW_NANOSECONDS = 100_000_000;

    /**
     * Escape sequence by which symfony/console 8.1 and later sets the progress in some taskbars. Only a full bar clears
     * it, so a taskbar would show the progress of an interrupted run forever.
     *
     * @see https://conemu.github.io/en/AnsiEscapeCodes.html#ConEmu_specific_OSC
     */
    private const TASKBAR_PATTERN = '/\e\]9;4;[\d;]*\e\\\\/';

    private readonly BufferedOutput $output;
    private readonly ProgressBar $bar;

    /** Time of the last redraw in nanoseconds of hrtime(); 0 before the first one. */
    private int $drawnAt = 0;
    private bool $hidden = false;

    /** @param resource $terminal */
    public function __construct(private readonly mixed $terminal)
    {
        // A decorated bar moves the cursor. The bar has no colours.
        $this->output = new BufferedOutput(decorated: true);
        $this->bar = new ProgressBar($this->output, 0, 0.0);
        $this->bar->setFormat(self::UNKNOWN_TOTAL_FORMAT);
        $this->bar->setRedrawFrequency(\PHP_INT_MAX);
    }

    public function update(RunStatistics $statistics): void
    {
        if (hrtime(true) - $this->drawnAt >= self::MIN_REDRAW_NANOSECONDS) {
            $this->show($statistics);
        }
    }

    public function hide(): void
    {
        if (!$this->hidden && $this->drawnAt !== 0) {
            $this->bar->clear();
            $this->write();
        }
        $this->hidden = true;
    }

    public function show(RunStatistics $statistics): void
    {
        if ($statistics->total !== null && $this->bar->getMaxSteps() !== $statistics->total) {
            $this->bar->setMaxSteps($statistics->total);
            $this->bar->setFormat(self::KNOWN_TOTAL_FORMAT);
        }
        $remaining = $statistics->remainingSeconds();
        $this->bar->setMessage(\sprintf('%.1f', $statistics->rate()), 'rate');
        $this->bar->setMessage($remaining === null ? '-' : Duration::format($remaining), 'eta');
        $this->bar->setMessage(Duration::format($statistics->elapsed()), 'time');
        $this->bar->setMessage((string) $statistics->failed, 'failed');
        $this->bar->setProgress($statistics->doneCount());
        $this->bar->display();
        $this->write();
        $this->drawnAt = hrtime(true);
        $this->hidden = false;
    }

    public function finish(RunStatistics $statistics): void
    {
        $this->show($statistics);
        $this->output->writeln('');
        $this->write();
        $this->hidden = true;
    }

    private function write(): void
    {
        fwrite($this->terminal, (string) preg_replace(self::TASKBAR_PATTERN, '', $this->output->fetch()));
    }
}
