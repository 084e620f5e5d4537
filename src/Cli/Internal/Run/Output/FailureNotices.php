<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Plural;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Command\CommandResult;

/** Prints a line for each failed job. After a limit of lines per second, prints only how many more jobs failed. */
final class FailureNotices
{
    private const MAX_PER_SECOND = 10;
    public const MAX_COMMAND_COLUMNS = 200;

    private float $secondStart = 0.0;
    private int $printedInSecond = 0;
    private int $notPrinted = 0;

    public function __construct(private readonly ProgressConsole $console) {}

    /** @param float $now seconds since the run began */
    public function add(InputJob $job, CommandResult $result, float $now): void
    {
        if ($result->succeeded() || $result->error !== null) {
            return; // JobRecorder prints the error after the output of the job.
        }
        $this->summarise($now);
        if ($this->printedInSecond >= self::MAX_PER_SECOND) {
            ++$this->notPrinted;

            return;
        }
        ++$this->printedInSecond;
        $this->console->writeLine(\sprintf(
            'spindle: %s failed: %s after %.1F s: %s',
            TerminalText::escape($job->name()),
            self::how($result),
            $result->duration,
            TerminalText::fit($job->loggedCommand(), self::MAX_COMMAND_COLUMNS),
        ));
    }

    /** If the current second is over, prints how many failed jobs got no line in that second. */
    public function summarise(float $now): void
    {
        if ($now - $this->secondStart < 1.0) {
            return;
        }
        if ($this->notPrinted > 0) {
            $this->console->writeLine('spindle: ' . Plural::of($this->notPrinted, 'more job') . ' failed');
        }
        [$this->secondStart, $this->printedInSecond, $this->notPrinted] = [$now, 0, 0];
    }

    public static function how(CommandResult $result): string
    {
        return $result->error
            ?? ($result->signal === null ? "exit code {$result->exitCode}" : "signal {$result->signal}");
    }
}
