<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\Run\Input\BadRecordException;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\ResumedInput;
use Spindle\Cli\Internal\Run\Output\OutputClosedException;
use Spindle\Cli\Internal\Run\Output\OutputFailedException;
use Spindle\Cli\Internal\Run\Output\OutputStream;
use Spindle\Cli\Internal\UsageException;

/** The option --dry-run: prints the commands that would run, one per line, and changes nothing. */
final class DryRun
{
    /** Value of {%}, because no job occupies a slot. */
    private const SLOT = 1;

    private readonly OutputStream $out;
    private int $invalidCount = 0;

    public function __construct(private readonly RunOptions $options)
    {
        $this->out = OutputStream::standardOutput();
    }

    /**
     * @throws UsageException
     * @throws OutputFailedException
     */
    public function run(): int
    {
        try {
            foreach ($this->records() as $number => $record) {
                $this->print($number, $record);
            }
        } catch (OutputClosedException) {
            return ExitStatus::BROKEN_PIPE;
        }

        return ExitStatus::ofFailures($this->invalidCount);
    }

    /** @return \Generator<int, string> */
    private function records(): \Generator
    {
        $wait = new InputWait();
        $records = $this->options->source->records($wait);
        if (!$this->options->resume || $this->options->jobLog === null) {
            return $records;
        }
        $resumed = new ResumedInput(
            JobLog::read($this->options->jobLog),
            $this->options->format,
            $this->options->retryFailed,
        );

        return $resumed->remaining($records, $wait, new RunStatistics(static fn(): int => hrtime(true)));
    }

    private function print(int $number, string $record): void
    {
        if ($this->options->format->skips($record)) {
            return;
        }
        try {
            $this->out->write($this->options->format->job($number, $record, self::SLOT)->command->toString() . "\n");
        } catch (BadRecordException $bad) {
            $message = "{$this->options->source->recordName} {$number}: {$bad->getMessage()}";
            if ($this->options->strict) {
                throw new UsageException($message);
            }
            ++$this->invalidCount;
            OutputStream::standardError()->write('spindle: ' . addcslashes($message, "\0..\37\177") . "\n");
        }
    }
}
