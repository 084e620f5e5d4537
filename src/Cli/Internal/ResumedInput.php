<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/**
 * The records of an input without the jobs that a job log has. The input is first read as far as the log goes and
 * compared with it. If the input or the command differs, no job runs.
 */
final class ResumedInput
{
    public function __construct(
        private readonly FinishedJobs $finished,
        private readonly JobFormat $format,
        private readonly bool $failedAgain,
    ) {}

    /**
     * @param \Generator<int, string> $records by number
     * @param RunStatistics                 $figures updated for each job that the log has
     *
     * @return \Generator<int, string>
     *
     * @throws UsageException when the input does not match the log
     */
    public function remaining(\Generator $records, InputWait $wait, RunStatistics $figures): \Generator
    {
        $spool = new RecordSpool();
        $seen = 0;
        while ($records->valid() && ($seen = $records->key()) <= $this->finished->last()) {
            if ($this->isToRun($seen, $records->current())) {
                $spool->put($seen, $records->current());
            } else {
                $figures->spared();
            }
            $records->next();
        }
        if ($wait->isStopped()) {
            return;
        }
        if (!$records->valid()) {
            $this->refuseShortInput($seen);
        }
        yield from $spool->take();
        while ($records->valid()) {
            yield $records->key() => $records->current();
            $records->next();
        }
    }

    private function isToRun(int $number, string $record): bool
    {
        try {
            return $this->finished->isToRun($this->format->job($number, $record, 0), $this->failedAgain);
        } catch (BadRecordException $bad) {
            if ($this->finished->has($number)) {
                throw $this->finished->mismatch($number, "the input has no command there: {$bad->getMessage()}");
            }

            return true;
        }
    }

    private function refuseShortInput(int $length): void
    {
        for ($number = $length + 1; $number <= $this->finished->last(); ++$number) {
            if ($this->finished->has($number)) {
                throw $this->finished->mismatch($number, "the input ends after job {$length}");
            }
        }
    }
}
