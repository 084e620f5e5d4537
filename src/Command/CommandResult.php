<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\Command\Internal\Capture;
use Spindle\Command\Internal\SharedFile;

/**
 * How a command ended. Of exit code, signal and error, one at least is set.
 */
final class CommandResult
{
    /**
     * @internal results come from a {@see CommandPool}
     *
     * @param mixed       $key       the key that the command was given under
     * @param int|null    $exitCode  0 to 255; null after a signal. 127 (no such program) or 126 with an error for a
     *                               command that could not be started, as in a shell
     * @param int|null    $signal    the number of the signal that it died of
     * @param bool        $timedOut  it was ended by its timeout or its idle timeout
     * @param bool        $cancelled it was ended, or never started, because the pool was told so
     * @param string|null $error     what kept it from starting or its output from being kept, or how it was ended
     * @param float       $startedAt start of the last attempt, Unix time in seconds; 0.0 when it never started
     * @param float       $duration  of the last attempt, in seconds
     * @param int         $attempts  times it was tried; 0 when it never was
     */
    public function __construct(
        public readonly mixed $key,
        public readonly Command $command,
        public readonly ?int $exitCode,
        public readonly ?int $signal,
        public readonly bool $timedOut,
        public readonly bool $cancelled,
        public readonly ?string $error,
        public readonly float $startedAt,
        public readonly float $duration,
        public readonly int $attempts,
        private readonly Capture $output,
        private readonly Capture $errors,
    ) {}

    /** Whether it ran to its own end and exited with 0. */
    public function succeeded(): bool
    {
        return $this->exitCode === 0 && $this->error === null;
    }

    /** What it wrote to its standard output, byte for byte; '' unless that was captured. */
    public function stdout(): string
    {
        return $this->output->toString();
    }

    /** What it wrote to its standard error, byte for byte; '' unless that was captured. */
    public function stderr(): string
    {
        return $this->errors->toString();
    }

    /** @return resource a stream over {@see stdout()}, from its start, that need not fit into memory */
    public function stdoutStream(): mixed
    {
        return $this->output->toStream();
    }

    /** @return resource a stream over {@see stderr()}, from its start, that need not fit into memory */
    public function stderrStream(): mixed
    {
        return $this->errors->toStream();
    }

    /** One line for a log: the command and how it ended. */
    public function describe(): string
    {
        $how = $this->error ?? match (true) {
            $this->signal !== null => "killed by signal {$this->signal}",
            default => "exit code {$this->exitCode}",
        };
        $tries = $this->attempts > 1 ? ", attempt {$this->attempts}" : '';
        $line = \sprintf('%s: %s after %.3f s%s', $this->command->toString(), $how, $this->duration, $tries);

        return addcslashes($line, "\0..\37\177");
    }

    /**
     * @return $this
     *
     * @throws CommandFailedException unless it succeeded
     */
    public function orThrow(): self
    {
        return $this->succeeded() ? $this : throw CommandFailedException::of($this);
    }

    /** @internal a copy that says what became of its output */
    public function withError(string $error): self
    {
        return new self(
            $this->key,
            $this->command,
            $this->exitCode,
            $this->signal,
            $this->timedOut,
            $this->cancelled,
            $error,
            $this->startedAt,
            $this->duration,
            $this->attempts,
            $this->output,
            $this->errors,
        );
    }

    /** @internal whether it holds open a temporary file or two, which {@see moveOutput()} spares */
    public function holdsFiles(): bool
    {
        return $this->output->hasOwnFile() || $this->errors->hasOwnFile();
    }

    /**
     * @internal keeps what is in temporary files of its own in one that several results share
     *
     * @param resource $shared open for reading and writing; it stays open as long as a result needs it
     *
     * @throws SpoolException when it can't be written
     */
    public function moveOutput(mixed $shared): void
    {
        $file = new SharedFile($shared);
        $this->output->moveTo($file);
        $this->errors->moveTo($file);
    }

    /** @return array<array-key, mixed> without the output, which may be large or secret */
    public function __debugInfo(): array
    {
        return ['output' => "{$this->output->length()} bytes", 'errors' => "{$this->errors->length()} bytes"]
            + get_object_vars($this);
    }
}
