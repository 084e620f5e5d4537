<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\OutputClosedException;
use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Output\Console;
use Spindle\Cli\Internal\Run\Output\FailureNotices;
use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\Run\Output\ResultWriter;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;

/** Records the result of a finished job: prints the output, then saves it (--results), then logs the job. */
final class JobRecorder
{
    /** @param ResultWriter|null $writer null if outputs are not printed, because --results saves them in files */
    public function __construct(
        private readonly Console $console,
        private readonly ?ResultWriter $writer,
        private readonly ?ResultsDirectory $results,
        private readonly ?JobLog $log,
    ) {}

    /**
     * Returns the command. If the writer prints output while the job runs, the command's output is redirected.
     *
     * @throws OutputClosedException|OutputFailedException
     */
    public function start(InputJob $job, Command $command): Command
    {
        return $this->writer?->start($job, $command) ?? $command;
    }

    /** @throws OutputClosedException|OutputFailedException */
    public function record(InputJob $job, CommandResult $result): void
    {
        $stdoutBytes = $this->console->group(function () use ($job, $result): int {
            $stdoutBytes = $this->writer?->write($job, $result) ?? fstat($result->stdoutStream())['size'] ?? 0;
            if ($result->error !== null) {
                $this->console->notice(self::failure($job, $result->error, $result));
            }

            return $stdoutBytes;
        });
        $this->results?->save($job, $result);
        $this->log?->append($job, $result, $stdoutBytes);
    }

    /** @throws OutputFailedException when the job log was deleted, moved or replaced */
    public function finish(): void
    {
        $this->log?->finish();
    }

    /** Returns how a job failed. The text contains the user's command without the code that opens the input file. */
    private static function failure(InputJob $job, string $error, CommandResult $result): string
    {
        return \sprintf(
            '%s: %s%s%s%s',
            TerminalText::fit($job->printedCommand(), FailureNotices::MAX_COMMAND_COLUMNS),
            $error,
            $result->duration > 0.0 ? \sprintf(' after %.3F s', $result->duration) : '',
            $result->attempts > 1 ? ", attempt {$result->attempts}" : '',
            $result->exitCode === 127 ? self::advice($job->command->arguments[0] ?? '') : '',
        );
    }

    /** Returns advice if bash has exported a function of this name, or the word is a misspelled mode; else ''. */
    private static function advice(string $program): string
    {
        if (getenv("BASH_FUNC_{$program}%%") !== false) {
            return ". {$program} is a function of bash; use bash -c '{$program} \"$@\"' bash {}";
        }
        /** @var list<string> $words */
        $words = $_SERVER['argv'] ?? [];
        $option = array_search('--progress', $words, true);

        return $option !== false && ($words[$option + 1] ?? null) === $program
            ? ". {$program} is not a mode of --progress; its modes are "
                . implode(', ', array_column(ProgressMode::cases(), 'value'))
            : '';
    }
}
