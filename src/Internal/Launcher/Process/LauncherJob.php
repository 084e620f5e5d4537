<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/** A command in the launcher, from the frame that requests the command to the frame that reports its end. */
final class LauncherJob
{
    /** Process id; 0 before the start and after the exit. With proc_open, {@see Backend::processes()} sets the id. */
    public int $pid = 0;

    public float $unixStart = 0.0;

    /** Times of the start and of the last output, in nanoseconds of the monotonic clock. */
    public int $startedAt = 0;
    public int $lastOutputAt = 0;

    /** Why the launcher ends the job: TIMED_OUT, IDLE or CANCELLED; else 0. SURVIVED is added if a process remains. */
    public int $endReason = 0;

    /** Time of SIGKILL; after SIGKILL, time at which the job counts as unkillable. In ns of the monotonic clock. */
    public int $killAt = 0;

    public bool $killed = false;

    /** Exit code; -1 before the exit, and if a signal ended the process. */
    public int $exitCode = -1;

    public int $signal = 0;

    /** Time at which the job's own process exited or was given up, in nanoseconds of the monotonic clock; 0 before. */
    public int $endedAt = 0;

    /** Peak memory of the job's own process, in bytes; 0 when unknown. */
    public int $memoryPeak = 0;

    public string $stdout = '';
    public string $stderr = '';

    public int $unacknowledged = 0;

    /** Whether the launcher reads no output of the job, because too many bytes are unacknowledged. */
    public bool $isOutputPaused = false;

    /** Whether an older job, of another lane, waits while this job starts. */
    public bool $overtakesOthers = false;

    public bool $inputFollows;

    /** With FFI: the launcher's ends of the pipes, as descriptors; -1 for none. */
    public int $stdoutPipe = -1;
    public int $stderrPipe = -1;
    public int $stdinPipe = -1;

    /** @var array<int, int> with FFI: child's ends of the pipes, by descriptor in the child; open during the start */
    public array $childEnds = [];

    /** @var array<int, resource> without FFI: the launcher's ends of the pipes, by the child's descriptor */
    public array $pipes = [];

    /** @var list<string> inherited environment as `NAME=value`: the last one that the pool sent before the job */
    public array $inherited = [];

    /** @var resource|null without FFI: process handle */
    public mixed $process = null;

    /**
     * @param int          $lane      number of the run() or execute() call of the job; lanes are served in rotation
     * @param list<string> $changes   changes of the inherited environment: `NAME=value` to set, `NAME` to remove
     * @param string       $arguments program and arguments, separated by NUL; '' for a line that only a shell can run
     * @param float        $timeout   in seconds; 0 for none
     * @param float        $idleTimeout in seconds; 0 for none
     * @param string       $line      shell line, even if it was split into `$arguments`; '' for other commands
     * @param string       $input     input that was received but not yet written to the job's pipe
     */
    public function __construct(
        public readonly int $id,
        public readonly int $lane,
        public readonly int $flags,
        public readonly float $timeout,
        public readonly float $idleTimeout,
        public readonly string $directory,
        public readonly array $changes,
        public string $arguments,
        public readonly string $line,
        public string $input,
        public readonly int $umask,
    ) {
        $this->inputFollows = ($flags & LauncherProtocol::INPUT_FOLLOWS) !== 0;
    }

    public function end(): string
    {
        return pack(
            'CllddPV',
            $this->endReason,
            $this->exitCode,
            $this->signal,
            $this->unixStart,
            ($this->endedAt - $this->startedAt) / 1e9,
            $this->memoryPeak,
            \strlen($this->stdout),
        ) . $this->stdout . $this->stderr;
    }

    public function program(): string
    {
        return $this->arguments === '' ? Programs::SHELL : substr($this->arguments, 0, strcspn($this->arguments, "\0"));
    }

    /** @return list<string> the program first; empty for a line that only a shell can run */
    public function argumentList(): array
    {
        return $this->arguments === '' ? [] : explode("\0", $this->arguments);
    }

    /**
     * @param array<string, string> $variables inherited environment, as name => `NAME=value`
     *
     * @return array<string, string> environment of the job, without the variable that marks its processes
     */
    public function environment(array $variables): array
    {
        foreach ($this->changes as $change) {
            [$name, $value] = explode('=', $change, 2) + [1 => null];
            if ($value === null) {
                unset($variables[$name]);
            } else {
                $variables[$name] = $change;
            }
        }
        unset($variables[LauncherProtocol::MARKER]);

        return $variables;
    }

    /**
     * Returns the job's value of PATH, the directories to search for its program; null when the job has no PATH.
     *
     * @param array<string, string> $variables see {@see environment()}
     */
    public function path(array $variables): ?string
    {
        $variable = ($this->changes === [] ? $variables : $this->environment($variables))['PATH'] ?? null;

        return $variable === null ? null : substr($variable, 5);
    }
}
