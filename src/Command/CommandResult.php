<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\Command\Internal\Capture;
use Spindle\Command\Internal\SharedFile;

/** Describes how a command ended. At least one of exit code, signal and error is set. */
final class CommandResult
{
    /**
     * @internal A {@see CommandPool} creates results.
     *
     * @param int|null $exitCode 0 to 255; null after a signal, without an attempt, or if the code is unknown. Also null
     *        if the command exited with 0, but its input or output was lost. If the command could not be started: 127
     *        (no such program) or 126, as in a shell, and $error has the reason
     * @param int|null $signal number of the signal that ended the command
     * @param bool $timedOut whether the timeout or the idle timeout ended the command
     * @param bool $cancelled whether the command was cancelled, by the caller, a halt policy or a failure of the run
     * @param string|null $error reason, if the command could not be started, if the pool has ended the command, or if
     *        its exit status is unknown. Also the reason if its input stream could not be read, or if its output could
     *        not be stored or written to its stream. Otherwise null
     * @param float $startedAt Unix time of the start of the last attempt; 0.0 without an attempt, and when the command
     *        was cancelled between two attempts
     * @param float $duration duration of the last attempt, in seconds; 0.0 if the command could not be started
     * @param int $attempts number of attempts, including failed starts; 0 if no start was attempted
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

    /** Returns whether the exit code is 0 and {@see $error} is null. A timeout and lost output also set an error. */
    public function succeeded(): bool
    {
        return $this->exitCode === 0 && $this->error === null;
    }

    /**
     * Returns the standard output, byte for byte; '' unless it was captured.
     *
     * @throws StreamException when the output is too large for the free memory; then use {@see stdoutStream()}
     */
    public function stdout(): string
    {
        return $this->output->toString();
    }

    /**
     * Returns the standard error, byte for byte; '' unless it was captured.
     *
     * @throws StreamException when the output is too large for the free memory; then use {@see stderrStream()}
     */
    public function stderr(): string
    {
        return $this->errors->toString();
    }

    /** @return resource standard output as a stream at its first byte, for output that does not fit into memory */
    public function stdoutStream(): mixed
    {
        return $this->output->toStream();
    }

    /** @return resource standard error as a stream at its first byte, for output that does not fit into memory */
    public function stderrStream(): mixed
    {
        return $this->errors->toStream();
    }

    /** Returns one line for a log: the command and how it ended. A long command is shortened. */
    public function describe(): string
    {
        $how = $this->error ?? match (true) {
            $this->signal !== null => "killed by signal {$this->signal}",
            default => "exit code {$this->exitCode}",
        };
        $time = $this->duration > 0.0 ? \sprintf(' after %.3F s', $this->duration) : '';
        $attempt = $this->attempts > 1 ? ", attempt {$this->attempts}" : '';

        return addcslashes("{$this->command->summary()}: {$how}{$time}{$attempt}", "\0..\37\177");
    }

    /**
     * @return $this
     *
     * @throws CommandFailedException unless the command succeeded
     */
    public function orThrow(): self
    {
        return $this->succeeded() ? $this : throw CommandFailedException::of($this);
    }

    /** @internal Returns a copy with an error about the command's input or output; this object if the error is null. */
    public function withError(?string $error): self
    {
        return $error === null || $error === $this->error ? $this : new self(...[
            ...get_object_vars($this),
            'exitCode' => $this->exitCode === 0 ? null : $this->exitCode,
            'error' => $error,
        ]);
    }

    /** @internal Returns whether the result has open temporary files that {@see moveOutput()} would close. */
    public function holdsFiles(): bool
    {
        return $this->output->hasOwnFile() || $this->errors->hasOwnFile();
    }

    /**
     * @internal Moves the output from temporary files of this result to a file that several results share.
     *
     * @param resource $shared file that is open for reading and writing
     *
     * @throws StreamException when the file can't be written
     */
    public function moveOutput(mixed $shared): void
    {
        $file = new SharedFile($shared);
        $this->output->moveTo($file);
        $this->errors->moveTo($file);
    }

    /** @return array<array-key, mixed> properties without output, which may be large or secret */
    public function __debugInfo(): array
    {
        return ['output' => "{$this->output->length} bytes", 'errors' => "{$this->errors->length} bytes"]
            + get_object_vars($this);
    }
}
