<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\FinishedJobs;
use Spindle\Cli\Internal\Run\InputOptions;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Cli\Internal\UsageException;

/**
 * Selects the jobs that must still run, according to a job log. Before the first job is yielded, the input is compared
 * with the log, up to the log's last job. If the input or the command differs, no job runs.
 */
final class ResumedInput
{
    public function __construct(
        private readonly FinishedJobs $finished,
        private readonly InputOptions $input,
        private readonly bool $retryFailed,
    ) {}

    /**
     * @param \Generator<int, JobValues> $jobs       values of all jobs, by job number
     * @param RunStatistics              $statistics counts the skipped jobs
     *
     * @return \Generator<int, JobValues> values of the remaining jobs, by job number
     *
     * @throws UsageException when the input does not match the log
     */
    public function remaining(\Generator $jobs, InputWait $wait, RunStatistics $statistics): \Generator
    {
        $spool = new RecordSpool();
        $seen = 0;
        while ($jobs->valid() && ($seen = $jobs->key()) <= $this->finished->lastSequence) {
            if ($this->needsRun($seen, $jobs->current())) {
                $spool->add($seen, $jobs->current()->list());
            } else {
                $statistics->skipJob();
            }
            $wait->letLoopRun();
            $jobs->next();
        }
        if ($wait->isStopped()) {
            return;
        }
        if (!$jobs->valid()) {
            $this->rejectShortInput($seen);
        }
        foreach ($spool->records() as $number => $values) {
            yield $number => JobValues::of($values);
        }
        while ($jobs->valid()) {
            yield $jobs->key() => $jobs->current();
            $jobs->next();
        }
    }

    private function needsRun(int $number, JobValues $values): bool
    {
        try {
            $job = $this->input->inputs->withInput($this->input->format->job($number, $values, 0));
            $needsRun = $this->finished->needsRun($job, $this->retryFailed);
            if (!$needsRun) {
                $this->input->inputs->finished($job);
            }

            return $needsRun;
        } catch (BadRecordException $bad) {
            if ($this->finished->has($number)) {
                throw $this->finished->mismatch($number, "the input has no command there: {$bad->getMessage()}");
            }

            return true;
        }
    }

    private function rejectShortInput(int $last): void
    {
        $missing = $this->finished->firstAfter($last);
        if ($missing !== null) {
            throw $this->finished->mismatch($missing, "the input ends after job {$last}");
        }
    }
}
