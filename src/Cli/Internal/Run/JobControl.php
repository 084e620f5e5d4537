<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandResult;

/** Lists and ends the unfinished jobs of a run, and sets how many jobs may run at the same time. */
final class JobControl
{
    private const MAX_OUTPUT_BYTES = 16_384;

    /** @var array<int, true> numbers of the jobs that {@see end()} has ended and whose results have not arrived */
    private array $ended = [];

    public function __construct(
        private readonly CommandPool $pool,
        private readonly InputWait $wait,
        private readonly RunStatistics $statistics,
        private readonly int $maxConcurrency,
    ) {}

    /** @return list<InputJob> jobs that are probably running (launchers are not asked), in the order of the input */
    public function runningJobs(): array
    {
        $jobs = [];
        foreach ($this->pool->runningKeys() as $key) {
            if ($key instanceof InputJob) {
                $jobs[] = $key;
            }
        }

        return $jobs;
    }

    /** @param int $concurrency maximum of running jobs, or {@see JobsOption::UNLIMITED}; the system may allow fewer */
    public function resize(int $concurrency): void
    {
        $isUnlimited = $concurrency === JobsOption::UNLIMITED;
        $this->statistics->concurrency = min($isUnlimited ? \PHP_INT_MAX : $concurrency, $this->maxConcurrency);
        $this->pool->resize($this->statistics->concurrency);
        $this->wait->wake();
    }

    /** Starts no more jobs until {@see resume()}. Running jobs continue. */
    public function pause(): void
    {
        $this->pool->pause();
    }

    public function resume(): void
    {
        $this->pool->resume();
    }

    /** Ends a running job, which then counts as failed. Does nothing if the job has ended, or waits, as for a retry. */
    public function end(InputJob $job): void
    {
        if (\in_array($job, $this->runningJobs(), true)) {
            $this->ended[$job->sequence] = true;
            $this->pool->cancel($job);
        }
    }

    /** Returns the last bytes that a running job has written to standard output, and then those of standard error. */
    public function outputOf(InputJob $job): string
    {
        return implode('', $this->pool->partialOutput($job, self::MAX_OUTPUT_BYTES));
    }

    /** Returns whether a cancelled job had exited before, no retry is left, and no lines of --line-buffer are lost. */
    public static function isComplete(CommandResult $result, int $retries): bool
    {
        return $result->error === null
            && !$result->command->stdout instanceof \Closure
            && ($result->succeeded() || $result->attempts > $retries);
    }

    /** Returns whether {@see end()} has ended the job, and forgets this. It then is done, and has failed. */
    public function forgetEnded(InputJob $job): bool
    {
        $wasEnded = isset($this->ended[$job->sequence]);
        unset($this->ended[$job->sequence]);

        return $wasEnded;
    }

    public function startNoMoreJobs(): void
    {
        $this->pool->cancelWaiting();
        $this->wait->stop();
    }

    public function kill(): void
    {
        $this->wait->stop();
        $this->pool->cancelAll();
    }
}
