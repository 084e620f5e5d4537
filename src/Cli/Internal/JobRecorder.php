<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Command\CommandResult;

/** What is kept of a job that is over, in this order: its output is printed, then its folder saved, then it is logged. */
final class JobRecorder
{
    public function __construct(
        private readonly Console $console,
        private readonly ResultWriter $writer,
        private readonly ?ResultsDirectory $results,
        private readonly ?JobLog $log,
    ) {}

    /**
     * @throws OutputClosedException
     * @throws OutputFailedException
     */
    public function record(Job $job, CommandResult $result): void
    {
        $received = 0;
        $this->console->group(function () use ($job, $result, &$received): void {
            $received = $this->writer->write($job, $result);
        });
        $this->results?->save($job, $result);
        $this->log?->append($job, $result, $received);
    }

    /**
     * After the last job.
     *
     * @throws OutputFailedException when what was written is not where it belongs
     */
    public function finish(): void
    {
        $this->log?->finish();
    }
}
