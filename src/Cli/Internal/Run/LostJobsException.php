<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Plural;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Output\FailureNotices;
use Spindle\Cli\Internal\TerminalText;
use Spindle\LauncherException;
use Spindle\SpindleException;

/** Reports that the launcher, the process that starts the jobs, died. The running jobs ended with the launcher. */
final class LostJobsException extends \RuntimeException implements SpindleException
{
    private const MAX_NAMED = 20;

    /** @param non-empty-list<InputJob> $jobs */
    private function __construct(string $message, private readonly array $jobs)
    {
        parent::__construct($message);
    }

    /**
     * Returns null if the launcher's death did not cause the failure, or if each job has a result.
     *
     * @param list<InputJob> $jobs      jobs without a result, in the order of the input
     * @param string|null    $hint      advice with the command that continues the run; null if there is no such command
     */
    public static function after(LauncherException $failure, array $jobs, ?string $hint, bool $hasJobLog): ?self
    {
        if ($jobs === [] || $failure->howItDied === null) {
            return null;
        }
        $count = Plural::of(\count($jobs), 'job') . (\count($jobs) === 1 ? ' has' : ' have');
        $advice = $hint ?? ($hasJobLog ? '' : 'with --joblog FILE, such a run can be continued with --resume');

        return new self(
            "the process that starts the jobs died ({$failure->howItDied}), so {$count} no result"
                . ($advice === '' ? '' : "; {$advice}"),
            $jobs,
        );
    }

    /** @return list<string> messages that name the jobs without a result */
    public function lines(): array
    {
        $lines = [];
        foreach (\array_slice($this->jobs, 0, self::MAX_NAMED) as $job) {
            $lines[] = "{$job->name()} has no result: "
                . TerminalText::fit($job->loggedCommand(), FailureNotices::MAX_COMMAND_COLUMNS);
        }
        $more = \count($this->jobs) - \count($lines);

        return $more === 0 ? $lines : [...$lines, 'and ' . Plural::of($more, 'more job')];
    }
}
