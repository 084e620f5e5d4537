<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;

/**
 * The running jobs, each with the time of the first {@see update()} that listed the job. For exact start times,
 * launchers would have to report starts, or the pool would have to record starts. Both would slow down short jobs.
 */
final class RunningJobs
{
    /** @var array<int, array{InputJob, float}> job and the time at which it was first listed, by job number */
    private array $jobs = [];

    /**
     * @param list<InputJob> $running
     * @param float          $now     seconds since the run began
     * @param bool           $starts  whether jobs may start; false while the run is paused. New jobs in $running are
     *                                then ignored, because $running is an estimate, and can contain waiting jobs
     */
    public function update(array $running, float $now, bool $starts): void
    {
        $jobs = [];
        foreach ($running as $job) {
            if ($starts || isset($this->jobs[$job->sequence])) {
                $jobs[$job->sequence] = $this->jobs[$job->sequence] ?? [$job, $now];
            }
        }
        $this->jobs = $jobs;
    }

    /** @return list<array{InputJob, float}> each job with its run time in seconds, the longest first */
    public function longestFirst(float $now): array
    {
        $jobs = array_map(static fn(array $job): array => [$job[0], $now - $job[1]], array_values($this->jobs));
        usort($jobs, static fn(array $a, array $b): int => [$b[1], $a[0]->sequence] <=> [$a[1], $b[0]->sequence]);

        return $jobs;
    }
}
