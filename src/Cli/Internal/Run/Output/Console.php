<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Revolt\EventLoop;
use Spindle\Cli\Internal\OutputClosedException;
use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\OutputStream;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\JobControl;
use Spindle\Cli\Internal\Run\ProgressOptions;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Command\CommandResult;

/**
 * Writes messages, the progress and the outputs of jobs to standard output and standard error. The output of a job is a
 * group. Between the parts of a group, no progress is drawn. Messages wait until the group ends.
 */
final class Console implements ProgressConsole
{
    private readonly ?Progress $progress;

    /** Whether standard output and standard error are the same terminal, on which the progress may be drawn. */
    private readonly bool $sharesTerminal;

    /** @var (\Closure(): string)|null {@see Progress::clearingBytes()}; null if the progress is not drawn */
    private readonly ?\Closure $clearingBytes;
    private bool $inGroup = false;
    private ?OutputStream $log = null;

    /** @var list<string> lines that are written after the current group, or in the next turn of the event loop */
    private array $pendingLines = [];

    /** Failure to write a line outside a group. The next call of {@see group()} throws this failure. */
    private OutputClosedException|OutputFailedException|null $failure = null;

    public function __construct(
        private readonly OutputStream $out,
        private readonly OutputStream $error,
        ProgressOptions $options,
        private readonly RunStatistics $statistics,
        JobControl $control,
    ) {
        $this->sharesTerminal = $out->isSameTerminal($error);
        $canDraw = $error->isTerminal() && getenv('TERM') !== 'dumb';
        $draws = $canDraw && \in_array($options->mode, [ProgressMode::Bar, ProgressMode::Screen], true);
        $this->progress = match (true) {
            $options->mode === ProgressMode::None => null,
            $draws => new ScreenProgress(new ScreenTerminal($error->stream), $control, $options, $this),
            default => new LineProgress($this, $options->mode === ProgressMode::Json),
        };
        $this->clearingBytes = $this->progress instanceof ScreenProgress ? $this->progress->clearingBytes(...) : null;
    }

    /** Passes the result of a job to the progress display. Must be called before the output of the job is written. */
    public function finished(InputJob $job, CommandResult $result): void
    {
        $this->progress?->finished($job, $result, $this->statistics);
    }

    /**
     * Writes a group, and returns what the closure returns.
     *
     * @template T
     *
     * @param \Closure(): T $write calls {@see out()} and {@see error()}
     *
     * @return T
     *
     * @throws OutputClosedException|OutputFailedException
     */
    public function group(\Closure $write): mixed
    {
        if ($this->failure !== null) {
            throw $this->failure;
        }
        $this->inGroup = true;
        try {
            $result = $write();
            $this->writePendingLines();
        } finally {
            $this->inGroup = false;
        }
        if ($this->canShowProgress()) {
            $this->progress?->update($this->statistics);
        }

        return $result;
    }

    /** Writes to standard output: in a group, or for a {@see ResultWriter} that prints while jobs run. */
    public function out(string $bytes): void
    {
        if ($bytes === '') {
            return;
        }
        $this->out->write($bytes, $this->sharesTerminal ? $this->clearingBytes : null);
        if ($this->sharesTerminal) {
            $this->progress?->wrote($bytes);
        }
    }

    public function error(string $bytes): void
    {
        if ($bytes === '') {
            return;
        }
        $this->error->write($bytes, $this->clearingBytes);
        $this->progress?->wrote($bytes);
    }

    /** Writes "spindle: " and the message, in one line, as soon as no group is being written. */
    public function notice(string $message): void
    {
        $this->writeLine('spindle: ' . TerminalText::escape($message));
    }

    public function writeLine(string $line): void
    {
        $this->pendingLines[] = "{$line}\n";
        if (!$this->inGroup) {
            EventLoop::queue($this->writeLinesOutsideGroup(...));
        }
    }

    public function showProgress(): void
    {
        if ($this->canShowProgress()) {
            $this->progress?->show($this->statistics);
        }
    }

    /**
     * Writes the pending lines, the final progress and report, and $hint. Called after the last group.
     *
     * @param string|null $hint message after the report of slow and failed jobs; null for none
     */
    public function finish(?string $hint = null): void
    {
        $this->flush();
        $this->progress?->finish($this->statistics);
        if ($hint !== null) {
            $this->notice($hint);
        }
        $this->error($this->progress?->clearingBytes() ?? '');
        $this->flush();
    }

    /** Clears the progress and restores the terminal. Called at the end of each run, even if it fails. */
    public function close(): void
    {
        $this->progress?->close();
    }

    /** Makes writes throw {@see OutputClosedException} instead of waiting for a slow reader. */
    public function abandonOutput(): void
    {
        $this->out->abandon();
        $this->error->abandon();
        $this->log?->abandon();
    }

    /** @param OutputStream|null $log job log, which {@see abandonOutput()} abandons too */
    public function setLog(?OutputStream $log): void
    {
        $this->log = $log;
    }

    /** Returns false while an output is only partly written, because the progress would be drawn into that output. */
    private function canShowProgress(): bool
    {
        return !$this->inGroup && !$this->error->isWriting && !($this->sharesTerminal && $this->out->isWriting);
    }

    /** Waits until no other fiber writes to standard error, and then writes the pending lines. */
    private function flush(): void
    {
        $this->group(fn() => $this->error->write(''));
    }

    private function writeLinesOutsideGroup(): void
    {
        try {
            if (!$this->inGroup) {
                $this->writePendingLines();
            }
        } catch (OutputClosedException|OutputFailedException $failure) {
            $this->failure ??= $failure;
        }
    }

    private function writePendingLines(): void
    {
        while (($line = array_shift($this->pendingLines)) !== null) {
            $this->error($line);
        }
    }
}
