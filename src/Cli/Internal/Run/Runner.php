<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\OutputClosedException;
use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\OutputStream;
use Spindle\Cli\Internal\Plural;
use Spindle\Cli\Internal\Run\Input\BadRecordException;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Cli\Internal\Run\Input\RecordSpool;
use Spindle\Cli\Internal\Run\Input\ResumedInput;
use Spindle\Cli\Internal\Run\Output\Console;
use Spindle\Cli\Internal\Run\Output\FailureNotices;
use Spindle\Cli\Internal\Run\Output\OutputOrder;
use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\LauncherException;
use Spindle\SpindleException;

/**
 * Executes `spindle run`: makes jobs from the input, passes the jobs to a pool, and records their results. Two fibers
 * run concurrently. In one fiber, the pool iterates over {@see commands()} and can wait for the input. The other fiber
 * writes results and can wait for the reader of the output.
 */
final class Runner
{
    /** Seconds between two reads of the file of --jobs, and between two updates of the progress. */
    private const UPDATE_INTERVAL = 1.0;

    /** When a job finishes, the file of --jobs is read again, unless the last read was less than this time ago. */
    private const MIN_REREAD_NANOSECONDS = 100_000_000;

    private readonly InputWait $wait;
    private readonly RunStatistics $statistics;
    private readonly Console $console;
    private readonly CommandPool $pool;
    private readonly JobControl $control;
    private readonly Interrupts $interrupts;
    private readonly ?SlotTable $slots;
    private readonly ?OutputOrder $order;
    private readonly JobRecorder $recorder;
    private readonly ?ResumedInput $resumed;
    private readonly int $maxConcurrency;

    private ?int $haltStatus = null;

    /** Earliest time to create the next job with --delay, in hrtime() nanoseconds. The pool delays retries itself. */
    private int $nextStart = 0;

    private int $lastReread = 0;

    /** @var array<int, InputJob> jobs of the pool by job number; {@see handleResult()} removes each job that is done */
    private array $unfinished = [];

    /**
     * @throws UsageException    when a file or folder of the options can't be used, or --jobs is too large
     * @throws LauncherException
     */
    public function __construct(private readonly RunOptions $options, ?LoggerInterface $logger = null)
    {
        $this->wait = new InputWait();
        $this->statistics = new RunStatistics();
        $this->slots = $options->usesSlot() ? new SlotTable() : null;
        $this->order = $options->output->keepOrder ? new OutputOrder() : null;
        $this->pool = new CommandPool(1, $options->outcome->retries, new CommandPoolOptions(
            lookahead: $options->dependsOnStartTime() ? 0 : $options->input->inputs->lookahead(),
            logger: $logger,
            transport: $options->start->transport,
            delay: $options->start->delay,
            gracePeriod: $options->start->gracePeriod,
        ));
        $options->start->environment->setNiceness();
        $this->maxConcurrency = $this->pool->maxConcurrency();
        $this->control = new JobControl($this->pool, $this->wait, $this->statistics, $this->maxConcurrency);
        $this->console = new Console(
            OutputStream::standardOutput(),
            OutputStream::standardError(),
            $options->progress,
            $this->statistics,
            $this->control,
        );
        $options->start->transportLog->console = $this->console;
        $this->interrupts = new Interrupts($this->console, $this->control, $this->statistics);
        $this->setConcurrency();
        $results = $options->outcome->results === null ? null : ResultsDirectory::create($options->outcome->results);
        [$log, $this->resumed] = $this->openLog();
        $this->console->setLog($log?->output);
        $this->recorder = new JobRecorder(
            $this->console,
            $options->output->writer($this->console, $results !== null),
            $results,
            $log,
        );
        // Not before openLog(): while it reads a large job log, no event loop runs, so a handler could not end the run.
        $this->interrupts->handleTermination();
    }

    /**
     * @throws UsageException        when the input can't be read to its end, or does not match the job log
     * @throws OutputFailedException when an output or the job log can't be written
     * @throws LauncherException
     */
    public function run(): int
    {
        $timers = $this->startTimers();
        try {
            $lost = null;
            try {
                $this->handleResults();
            } catch (LostJobsException $lost) {
                array_map($this->console->notice(...), $lost->lines());
                throw $lost;
            } finally {
                $this->console->finish($lost === null ? $this->resumeHint() : null);
            }
            $this->recorder->finish();
        } catch (OutputClosedException) {
            return $this->interrupts->status ?? ExitStatus::BROKEN_PIPE;
        } finally {
            array_map(EventLoop::cancel(...), $timers);
            $this->console->close(); // before removeHandlers(): without a handler, Ctrl-C ends this process immediately
            $this->interrupts->removeHandlers();
            $this->pool->kill();
            $this->options->input->inputs->close();
        }

        return $this->interrupts->status ?? $this->status();
    }

    private function status(): int
    {
        return $this->haltStatus
            ?? $this->options->outcome->halt?->finishedStatus($this->statistics->failed, $this->jobCount())
            ?? ExitStatus::ofFailures($this->statistics->failed);
    }

    /** Returns the hint of {@see ResumeCommand} after a signal, or if users read the progress; otherwise null. */
    private function resumeHint(): ?string
    {
        $isForUsers = !\in_array($this->options->progress->mode, [ProgressMode::None, ProgressMode::Json], true);
        $isWanted = $isForUsers || $this->interrupts->status !== null;

        return $isWanted ? $this->options->progress->resume?->hint($this->statistics) : null;
    }

    private function setConcurrency(): void
    {
        if ($this->maxConcurrency < 1) {
            throw new UsageException('no job can run with this limit of open files; raise it (ulimit -n)');
        }
        $concurrency = $this->options->start->jobs->current;
        if ($concurrency > $this->maxConcurrency) {
            throw UsageException::option(
                '--jobs',
                (string) $concurrency,
                "at most {$this->maxConcurrency}"
                    . ($this->options->start->transport === null
                        ? ', or raise the limit of open files (ulimit -n)'
                        : ''),
            );
        }
        $this->control->resize($concurrency);
    }

    /** @return array{JobLog|null, ResumedInput|null} */
    private function openLog(): array
    {
        $outcome = $this->options->outcome;
        if ($outcome->jobLog === null) {
            return [null, null];
        }
        if (!$outcome->resume) {
            return [$outcome->extendsLog ? JobLog::extend($outcome->jobLog) : JobLog::start($outcome->jobLog), null];
        }
        [$log, $finished] = JobLog::resume($outcome->jobLog, !$outcome->extendsLog);

        return [$log, new ResumedInput($finished, $this->options->input, $outcome->retryFailed)];
    }

    /** @return list<string> */
    private function startTimers(): array
    {
        $timers = [];
        if ($this->options->progress->mode !== ProgressMode::None) {
            $this->statistics->total = $this->options->input->inputs->count($this->wait);
            $timers[] = EventLoop::repeat(self::UPDATE_INTERVAL, $this->console->showProgress(...));
        }
        if ($this->options->start->jobs->isFile()) {
            $timers[] = EventLoop::repeat(self::UPDATE_INTERVAL, $this->rereadConcurrency(...));
        }
        if ($this->options->outcome->retries === OutcomeOptions::UNLIMITED_RETRIES) {
            $warning = new RetryWarning($this->pool, $this->statistics, $this->console);
            $timers[] = EventLoop::repeat(self::UPDATE_INTERVAL, $warning->check(...));
        }

        return array_map(EventLoop::unreference(...), $timers);
    }

    private function handleResults(): void
    {
        $failure = null;
        try {
            foreach ($this->pool->run($this->commands()) as $job => $result) {
                $this->slots?->release($job->slot);
                $this->options->input->inputs->finished($job);
                $this->handleResult($job, $result);
            }
        } catch (OutputFailedException|OutputClosedException $failure) {
            throw $failure;
        } catch (SpindleException $failure) {
            // The pool, the engine or the input failed. The results that --keep-order holds must be recorded first.
        }
        foreach ($this->order?->remaining() ?? [] as $job => $result) {
            $this->recorder->record($job, $result);
        }
        if ($failure instanceof LauncherException) {
            $failure = LostJobsException::after(
                $failure,
                array_values($this->unfinished),
                $this->options->progress->resume?->hint($this->statistics),
                $this->options->outcome->jobLog !== null,
            ) ?? $failure;
        }
        if ($failure !== null) {
            throw $failure;
        }
    }

    /** @return \Generator<InputJob, Command> */
    private function commands(): \Generator
    {
        foreach ($this->inputs() as $number => $values) {
            if ($this->options->input->format->skips($values)) {
                continue;
            }
            $this->wait->until(fn(): bool => $this->order?->isFull() !== true);
            $this->wait->untilTime($this->nextStart);
            $this->options->start->machine?->awaitRoom($this->wait, $this->statistics, $this->console);
            if ($this->wait->isStopped()) {
                return;
            }
            ++$this->statistics->submitted;
            $job = $this->job($number, $values);
            if ($job !== null) {
                $this->order?->expect($job);
                $this->unfinished[$number] = $job;
                $this->nextStart = hrtime(true) + (int) ($this->options->start->delay * 1e9);
                yield $job => $this->preparedCommand($job);
            }
        }
        $this->statistics->total = $this->statistics->submitted;
    }

    /** Returns a job's command with environment, folder, output and timeout. With --trace, also prints the command. */
    private function preparedCommand(InputJob $job): Command
    {
        if ($this->options->output->tracesCommand) {
            $this->console->writeLine($job->printedCommand());
        }
        $start = $this->options->start;
        $command = $this->recorder->start($job, $start->environment->addTo($job->command, $job));
        $limit = $start->timeLimit->seconds();

        return $limit === null ? $command : $command->withTimeout($limit);
    }

    /** @return \Generator<int, JobValues> */
    private function inputs(): \Generator
    {
        $inputs = $this->options->input->inputs->jobs($this->wait, fn(): int => $this->statistics->concurrency);

        $remaining = $this->resumed?->remaining($inputs, $this->wait, $this->statistics) ?? $inputs;

        return $this->options->outcome->halt?->isPercentage === true ? $this->counted($remaining) : $remaining;
    }

    /**
     * Reads the whole input before the first job starts, because a percentage of --halt needs the number of all jobs.
     *
     * @param \Generator<int, JobValues> $inputs
     *
     * @return \Generator<int, JobValues>
     */
    private function counted(\Generator $inputs): \Generator
    {
        $spool = new RecordSpool();
        $count = 0;
        foreach ($inputs as $number => $values) {
            $spool->add($number, $values->list());
            $count += $this->options->input->format->skips($values) ? 0 : 1;
            $this->wait->letLoopRun();
        }
        $this->statistics->total = $count;
        foreach ($spool->records() as $number => $values) {
            yield $number => JobValues::of($values);
        }
    }

    /** @return InputJob|null null if the values make no valid command; the job then counts as failed */
    private function job(int $number, JobValues $values): ?InputJob
    {
        $slot = $this->slots?->acquire() ?? 0;
        try {
            $job = $this->options->input->format->job($number, $values, $slot);
            $this->options->checkPaths($job);

            return $this->options->input->inputs->withInput($job);
        } catch (BadRecordException $bad) {
            $this->slots?->release($slot);
            ++$this->statistics->failed;
            $message = "{$this->options->input->inputs->nameOf($number)}: {$bad->getMessage()}";
            if ($this->options->outcome->strict) {
                throw new UsageException($message);
            }
            $this->console->notice($message);
            $halted = $this->haltIfReached(null, null);
            if ($halted !== null) {
                $this->console->notice($halted);
            }

            return null;
        }
    }

    private function handleResult(InputJob $job, CommandResult $result): void
    {
        $isDone = !$result->cancelled
            || JobControl::isComplete($result, $this->options->outcome->retries)
            || $this->control->forgetEnded($job);
        if (!$isDone) {
            --$this->statistics->submitted;
        } elseif ($result->succeeded()) {
            ++$this->statistics->succeeded;
            $this->options->start->timeLimit->observe($result->duration);
        } else {
            ++$this->statistics->failed;
        }
        $halted = null;
        if ($isDone) {
            unset($this->unfinished[$job->sequence]);
            $this->console->finished($job, $result);
            $halted = $this->haltIfReached($job, $result);
        }
        $this->record($job, $isDone ? $result : null);
        if ($halted !== null) {
            $this->console->notice($halted); // after record(), which reports why the job could not start
        }
        if ($this->options->start->jobs->isFile() && hrtime(true) - $this->lastReread > self::MIN_REREAD_NANOSECONDS) {
            $this->rereadConcurrency();
        }
    }

    private function record(InputJob $job, ?CommandResult $result): void
    {
        if ($this->order === null) {
            if ($result !== null) {
                $this->recorder->record($job, $result);
            }

            return;
        }
        foreach ($this->order->add($job, $result) as $next => $ready) {
            $this->recorder->record($next, $ready);
        }
        $this->wait->wake();
    }

    /**
     * Stops the run if the condition of --halt is met. Returns a message; null if this call does not stop the run.
     *
     * @param CommandResult|null $last result of the job that has just finished; null after an invalid line of input
     */
    private function haltIfReached(?InputJob $job, ?CommandResult $last): ?string
    {
        $halt = $this->options->outcome->halt;
        [$succeeded, $failed, $total] = [$this->statistics->succeeded, $this->statistics->failed, $this->jobCount()];
        if ($halt === null || $this->haltStatus !== null || !$halt->isReached($succeeded, $failed, $total)) {
            return null;
        }
        $this->haltStatus = $halt->haltedStatus($failed, $total, $last);
        if ($job !== null && $last !== null) {
            $this->nameFailed($job, $last);
        }
        $done = Plural::of($this->statistics->doneCount(), 'job');
        $halt->now ? $this->control->kill() : $this->control->startNoMoreJobs();
        $running = $halt->now ? 'running jobs are ended' : 'running jobs may finish';

        return "halted after {$done}, of which {$failed} failed; {$running}";
    }

    /** Prints the name of the failed job that halts the run, unless the progress or an error message names the job. */
    private function nameFailed(InputJob $job, CommandResult $result): void
    {
        if ($result->succeeded() || $result->error !== null || $this->options->progress->mode !== ProgressMode::None) {
            return;
        }
        $command = TerminalText::fit($job->loggedCommand(), FailureNotices::MAX_COMMAND_COLUMNS);
        $this->console->notice("{$job->name()} failed: " . FailureNotices::how($result) . ": {$command}");
    }

    /** Returns the number of all jobs, including skipped ones. Can be too low if --halt has no percentage. */
    private function jobCount(): int
    {
        return $this->statistics->skipped + ($this->statistics->total ?? 0);
    }

    private function rereadConcurrency(): void
    {
        $this->lastReread = hrtime(true);
        $concurrency = $this->options->start->jobs->reread();
        if ($concurrency !== null) {
            $this->control->resize($concurrency);
        }
    }
}
