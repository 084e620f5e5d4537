<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\OutputClosedException;
use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\OutputStream;
use Spindle\Cli\Internal\Run\Input\BadRecordException;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Cli\Internal\Run\Input\ResumedInput;
use Spindle\Cli\Internal\Run\Output\LineTag;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\LauncherException;

/** The option --dry-run: prints the commands that would run, one per line, and changes nothing. */
final class DryRun
{
    /** Value of {%} in all commands. No job runs, so no job has a slot. */
    private const SLOT = 1;

    private readonly OutputStream $out;
    private int $invalidCount = 0;

    /** The largest possible number of jobs at the same time; null until the number is needed. */
    private ?int $maxConcurrency = null;

    public function __construct(private readonly RunOptions $options)
    {
        $this->out = OutputStream::standardOutput();
    }

    /** @throws UsageException|OutputFailedException|LauncherException */
    public function run(): int
    {
        try {
            foreach ($this->inputs() as $number => $values) {
                $this->print($number, $values);
            }
        } catch (OutputClosedException) {
            return ExitStatus::BROKEN_PIPE;
        }

        return ExitStatus::ofFailures($this->invalidCount);
    }

    /** @return \Generator<int, JobValues> */
    private function inputs(): \Generator
    {
        $wait = new InputWait();
        $inputs = $this->options->input->inputs->jobs($wait, $this->concurrency(...));
        $outcome = $this->options->outcome;
        if (!$outcome->resume || $outcome->jobLog === null) {
            return $inputs;
        }
        $resumed = new ResumedInput(JobLog::read($outcome->jobLog), $this->options->input, $outcome->retryFailed);

        return $resumed->remaining($inputs, $wait, new RunStatistics());
    }

    private function concurrency(): int
    {
        $concurrency = $this->options->start->jobs->current;

        return $concurrency === JobsOption::UNLIMITED
            ? $this->maxConcurrency ??= $this->maxConcurrency()
            : $concurrency;
    }

    private function maxConcurrency(): int
    {
        $pool = new CommandPool(1, options: new CommandPoolOptions(transport: $this->options->start->transport));
        try {
            return $pool->maxConcurrency();
        } finally {
            $pool->kill();
        }
    }

    private function print(int $number, JobValues $values): void
    {
        $format = $this->options->input->format;
        if ($format->skips($values)) {
            return;
        }
        try {
            $job = $format->job($number, $values, self::SLOT);
            $this->options->checkPaths($job);
            $line = "{$this->options->input->inputs->describe($job->printedCommand())}\n";
            $tag = $this->options->output->tag;
            $this->out->write($tag === null ? $line : (new LineTag($tag->text($job)))->piece($line));
        } catch (BadRecordException $bad) {
            $message = "{$this->options->input->inputs->nameOf($number)}: {$bad->getMessage()}";
            if ($this->options->outcome->strict) {
                throw new UsageException($message);
            }
            ++$this->invalidCount;
            OutputStream::standardError()->write('spindle: ' . TerminalText::escape($message) . "\n");
        }
    }
}
