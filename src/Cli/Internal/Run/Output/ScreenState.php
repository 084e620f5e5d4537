<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\RunStatistics;

final class ScreenState
{
    /**
     * @param list<array{InputJob, float}> $running  each job with its run time in seconds, the longest first
     * @param float|null                   $spread   standard deviation of the remaining seconds; null if unknown
     * @param list<string>                 $failures how the latest failed jobs ended, the latest first
     */
    public function __construct(
        public readonly RunStatistics $statistics,
        public readonly array $running,
        public readonly ?float $spread,
        public readonly array $failures,
        public readonly string $sparkline,
        public readonly bool $isPaused = false,
    ) {}

    /** Returns the share of jobs that are done; null while the number of all jobs is not known. */
    public function share(): ?float
    {
        $total = $this->statistics->total;

        return match (true) {
            $total === null => null,
            $total <= 0 => 1.0,
            default => min(1.0, $this->statistics->doneCount() / $total),
        };
    }

    public function done(): string
    {
        $total = $this->statistics->total;

        return $this->statistics->doneCount() . ($total === null ? '' : "/{$total}");
    }

    /** Returns the remaining time with its standard deviation; "ETA -" if the time is unknown or the run is paused. */
    public function eta(ScreenStyle $style): string
    {
        $remaining = $this->statistics->remainingSeconds();
        if ($remaining === null || $this->isPaused) {
            return 'ETA -';
        }
        $spread = $this->spread === null || round($this->spread) < 1
            ? ''
            : ($style->unicode ? ' ±' : ' +-') . Duration::format($this->spread);

        return 'ETA ' . Duration::format($remaining) . $spread;
    }

    public function rate(): string
    {
        return \sprintf('%.1F/s', $this->statistics->rate());
    }
}
