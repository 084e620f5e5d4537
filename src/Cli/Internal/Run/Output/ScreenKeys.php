<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\JobControl;
use Spindle\Cli\Internal\Run\RunStatistics;

/** Handles the keys of a screen: they select a job, show its output, and change the run. */
final class ScreenKeys
{
    private const KEY_PATTERN = '/\e[\[O][A-Z]|./s';

    private const HELP = 'p pause  +/- jobs  up/down select  o output  x end job  Ctrl-C stop';

    public bool $isPaused = false;
    private bool $showsOutput = false;

    /** The job for which x was pressed, until the next key confirms or cancels the end of this job. */
    private ?InputJob $toEnd = null;

    private ?InputJob $selected = null;

    public function __construct(private readonly JobControl $control) {}

    /**
     * Returns the position of the selected job; null if none is selected. A job that has ended loses the selection.
     *
     * @param list<array{InputJob, float}> $running
     */
    public function position(array $running): ?int
    {
        $position = array_search($this->selected, array_column($running, 0), true);
        if ($position !== false) {
            return $position;
        }
        $this->selected = $this->toEnd = null;
        $this->showsOutput = false;

        return null;
    }

    /** Returns the last part of the selected job's output; null while no output is shown. */
    public function output(): ?string
    {
        return $this->selected === null || !$this->showsOutput ? null : $this->control->outputOf($this->selected);
    }

    public function help(): string
    {
        return match (true) {
            $this->toEnd !== null => "End job {$this->toEnd->sequence}? y/n",
            $this->isPaused => 'PAUSED: no more jobs start; press p to continue',
            default => self::HELP,
        };
    }

    /** @param list<array{InputJob, float}> $running in the order of the screen */
    public function press(string $bytes, array $running, RunStatistics $statistics): void
    {
        preg_match_all(self::KEY_PATTERN, $bytes, $keys);
        foreach ($keys[0] as $key) {
            if ($this->toEnd !== null) {
                $this->confirm($key);

                continue;
            }
            match ($key) {
                'p', ' ' => $this->togglePause(),
                '+', '=' => $this->control->resize(max(1, $statistics->concurrency + 1)),
                '-' => $this->control->resize(max(1, $statistics->concurrency - 1)),
                "\e[A", "\eOA", 'k' => $this->select($running, -1),
                "\e[B", "\eOB", 'j' => $this->select($running, 1),
                'o', "\n", "\r" => $this->toggleOutput($running),
                'x' => $this->toEnd = $this->position($running) === null ? null : $this->selected,
                "\e", 'q' => $this->showsOutput = false,
                default => null,
            };
        }
    }

    private function confirm(string $key): void
    {
        if ($key === 'y' && $this->toEnd !== null) {
            $this->control->end($this->toEnd);
        }
        $this->toEnd = null;
    }

    private function togglePause(): void
    {
        $this->isPaused ? $this->control->resume() : $this->control->pause();
        $this->isPaused = !$this->isPaused;
    }

    /** @param list<array{InputJob, float}> $running */
    private function select(array $running, int $step): void
    {
        $position = $this->position($running);
        $next = $position === null ? 0 : max(0, min(\count($running) - 1, $position + $step));
        $this->selected = $running[$next][0] ?? null;
    }

    /** @param list<array{InputJob, float}> $running */
    private function toggleOutput(array $running): void
    {
        if ($this->position($running) === null) {
            $this->select($running, 0);
        }
        $this->showsOutput = !$this->showsOutput;
    }
}
