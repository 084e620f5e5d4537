<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Run\Output\Console;
use Spindle\Command\CommandPool;

/** Warns once if a run finishes no job for a while, because `--retries 0` repeats failing jobs without a limit. */
final class RetryWarning
{
    private const MIN_RETRIES = 9;
    private const MIN_SECONDS = 30.0;

    private int $done = 0;
    private int $earlierRetries = 0;
    private float $since = 0.0;
    private bool $isGiven = false;

    public function __construct(
        private readonly CommandPool $pool,
        private readonly RunStatistics $statistics,
        private readonly Console $console,
    ) {}

    public function check(): void
    {
        $retries = (int) $this->pool->statistics()['retried_total'];
        $warning = $this->due($this->statistics->doneCount(), $retries, $this->statistics->elapsed());
        if ($warning !== null) {
            $this->console->notice($warning);
        }
    }

    /**
     * @param int   $done    number of finished jobs
     * @param int   $retries number of retries since the run began
     * @param float $elapsed seconds since the run began
     *
     * @return string|null the warning; null if none is due
     */
    public function due(int $done, int $retries, float $elapsed): ?string
    {
        if ($done !== $this->done) {
            [$this->done, $this->earlierRetries, $this->since] = [$done, $retries, $elapsed];
        }
        $failed = $retries - $this->earlierRetries;
        $seconds = $elapsed - $this->since;
        if ($this->isGiven || $failed < self::MIN_RETRIES || $seconds < self::MIN_SECONDS) {
            return null;
        }
        $this->isGiven = true;

        return \sprintf(
            'no job has finished for %d s, and %d attempts have failed; --retries 0 repeats a failing job until it'
                . ' succeeds',
            $seconds,
            $failed,
        );
    }
}
