<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * Starts processes with proc_open and waits in stream_select, for a PHP without FFI. Each child has the writing end of
 * an additional pipe, the exit pipe. So the end of file of this pipe announces the exit of the child. If a descendant
 * keeps the pipe open, SIGCHLD announces the exit (with ext-pcntl), or a periodic check finds the exit
 * (docs/decisions/0003-without-ffi.md).
 */
final class ProcOpenBackend implements Backend
{
    private const READ_BYTES = 1 << 16;

    /** Largest capacity that a process without privileges can give a pipe, in bytes (default of pipe-max-size). */
    private const MAX_PIPE_BYTES = 1 << 20;

    /** Intervals between two checks of all jobs for exits, with ext-pcntl and without it. */
    private const PCNTL_CHECK_NANOSECONDS = 1_000_000_000;
    private const NO_PCNTL_CHECK_NANOSECONDS = 100_000_000;

    /** First and longest interval between two checks of jobs whose exit pipe was closed. */
    private const MIN_CHECK_NANOSECONDS = 1_000_000;
    private const MAX_CHECK_NANOSECONDS = 50_000_000;

    private readonly ProcessOpener $opener;

    /** @var array<int, LauncherJob> by id */
    private array $jobs = [];

    /** @var array<int, LauncherJob> jobs whose exit was announced but not collected, by id */
    private array $exiting = [];

    /** @var array<int, array{running: bool, exitcode: int, signaled: bool, termsig: int}> unhandled exits, by job id */
    private array $statuses = [];

    /** @var array<int, resource> streams to read from, by resource id */
    private array $reads = [];

    /** @var array<int, resource> streams with bytes to write, by resource id */
    private array $writes = [];

    /** @var array<int, array{LauncherJob, int}> job and descriptor in the child, by the resource id of the stream */
    private array $jobOf = [];

    private int $openDescriptors = 0;

    private int $checkInterval = self::MIN_CHECK_NANOSECONDS;

    /** @var list<resource|null> handles of processes that can't be killed */
    private array $abandoned = [];

    /** Whether SIGCHLD was received since the last check of all jobs. One signal may announce several exits. */
    private bool $childEnded = false;

    /** Time of the last check of all jobs, in ns of the monotonic clock. */
    private int $checkedAt = 0;

    private bool $hasStarted = false;

    public function __construct(private readonly JobScheduler $scheduler, string $token, private readonly int $poolPid)
    {
        $this->opener = new ProcessOpener($token);
        stream_set_blocking(\STDIN, false);
        stream_set_blocking(\STDOUT, false);
        stream_set_read_buffer(\STDIN, 0);
        stream_set_write_buffer(\STDOUT, 0);
        if (\function_exists('posix_setsid')) {
            posix_setsid();
        }
        if (\function_exists('pcntl_signal')) {
            $this->handleSignals();
        }
    }

    /** Kills this process if process handles are left, because PHP would wait for the exit of each process. */
    public function __destruct()
    {
        if ($this->abandoned !== [] || $this->jobs !== []) {
            Signals::send((int) getmypid(), 9);
        }
    }

    public function name(): string
    {
        return 'proc_open';
    }

    public function maxConcurrency(): int
    {
        return intdiv($this->opener->maxDescriptors, 3);
    }

    public function useEnvironment(array $environment): void
    {
        $this->opener->useEnvironment($environment);
    }

    public function start(LauncherJob $job): bool
    {
        if (!$this->opener->start($job, $this->openDescriptors)) {
            return false;
        }
        $this->hasStarted = true;
        $this->jobs[$job->id] = $job;
        $this->openDescriptors += \count($job->pipes);
        foreach ($job->pipes as $descriptor => $pipe) {
            $this->jobOf[(int) $pipe] = [$job, $descriptor];
        }
        $exitPipe = $job->pipes[ProcessOpener::EXIT_PIPE];
        $this->reads[(int) $exitPipe] = $exitPipe;
        $this->listen($job, true);
        $this->feed($job);

        return true;
    }

    public function processes(): array
    {
        $processes = [];
        foreach ($this->jobs as $job) {
            $processes[$this->pidOf($job)] = $job->id;
        }

        return $processes;
    }

    public function wait(int $deadline, bool $isOutputPaused): void
    {
        self::dispatchSignals(); // a signal that came since the last call does not interrupt stream_select
        $now = hrtime(true);
        $nextCheck = $this->jobs === [] ? \PHP_INT_MAX : $now + match (true) {
            $this->exiting !== [] => $this->checkInterval,
            $this->childEnded => self::MAX_CHECK_NANOSECONDS,
            \function_exists('pcntl_signal') => self::PCNTL_CHECK_NANOSECONDS,
            default => self::NO_PCNTL_CHECK_NANOSECONDS,
        };
        $until = $deadline === 0 ? $nextCheck : min($deadline, $nextCheck);
        $left = (int) max(0, $until - $now);
        $reads = $isOutputPaused ? [\STDIN] : [\STDIN, ...$this->reads];
        $writes = $isOutputPaused ? [] : $this->writes;
        if ($isOutputPaused && $deadline !== 1) {
            $writes[] = \STDOUT;
        }
        $none = null;
        [$seconds, $microseconds] = $until === \PHP_INT_MAX
            ? [null, null]
            : [intdiv($left, 1_000_000_000), intdiv($left % 1_000_000_000, 1000) + 1];
        $count = @stream_select($reads, $writes, $none, $seconds, $microseconds);
        self::dispatchSignals();
        $exits = $count !== false && $count > 0 ? $this->handle($reads, $writes) : [];
        $this->collectExits($exits, $count === 0 && $until === $nextCheck);
    }

    public function awaitExit(int $nanoseconds): void
    {
        usleep(max(1, intdiv($nanoseconds, 1000))); // with ext-pcntl, SIGCHLD interrupts the sleep
        self::dispatchSignals();
        $this->collectExits([], true);
    }

    public function send(string $bytes): string
    {
        $written = @fwrite(\STDOUT, $bytes);
        if ($written === false) {
            $this->scheduler->poolEnded();

            return '';
        }
        if ($written < \strlen($bytes)) {
            $this->writes[(int) \STDOUT] = \STDOUT;
        } else {
            unset($this->writes[(int) \STDOUT]);
        }

        return substr($bytes, $written);
    }

    public function feed(LauncherJob $job): void
    {
        $pipe = $job->pipes[0] ?? null;
        if ($pipe === null) {
            return;
        }
        $written = $job->input === '' ? 0 : @fwrite($pipe, $job->input);
        if ($written === false) {
            $job->input = '';
            $this->scheduler->inputRefused($job);
            $this->close($job, 0);

            return;
        }
        $job->input = substr($job->input, $written);
        if ($written > 0) {
            $this->scheduler->inputAccepted($job, $written);
        }
        if ($job->input !== '') {
            $this->writes[(int) $pipe] = $pipe;
        } elseif ($job->inputFollows) {
            unset($this->writes[(int) $pipe]);
        } else {
            $this->close($job, 0);
        }
    }

    public function listen(LauncherJob $job, bool $listen): void
    {
        foreach (array_intersect_key($job->pipes, [1 => true, 2 => true]) as $pipe) {
            if ($listen) {
                $this->reads[(int) $pipe] = $pipe;
            } else {
                unset($this->reads[(int) $pipe]);
            }
        }
    }

    public function abandon(LauncherJob $job): void
    {
        unset($this->jobs[$job->id], $this->exiting[$job->id]);
        $this->readRest($job);
        // The handle is kept. If PHP released the handle, PHP would wait for the exit of the process.
        $this->abandoned[] = $job->process;
        $job->process = null;
    }

    public function signal(int $pid, int $signal): void
    {
        Signals::send($pid, $signal);
    }

    public function hasNoProcesses(): bool
    {
        return !$this->hasStarted;
    }

    private function pidOf(LauncherJob $job): int
    {
        if ($job->pid === 0 && $job->process !== null) {
            $status = proc_get_status($job->process);
            $job->pid = $status['pid'];
            if (!$status['running']) {
                // PHP before 8.3 reports an exit only once, and the call above has received it.
                $this->statuses[$job->id] = $status;
                $this->exiting[$job->id] = $job;
                $this->checkInterval = 0;
            }
        }

        return $job->pid;
    }

    /** Sets handlers and unblocks all signals. A child would inherit ignored and blocked signals, but no handlers. */
    private function handleSignals(): void
    {
        pcntl_sigprocmask(\SIG_SETMASK, []);
        pcntl_signal(\SIGPIPE, static fn() => null);
        pcntl_signal(\SIGCHLD, function (): void {
            $this->childEnded = true;
        }, false);
        foreach ([\SIGTERM, \SIGINT, \SIGHUP] as $signal) {
            pcntl_signal($signal, $this->scheduler->poolEnded(...), false);
        }
    }

    private static function dispatchSignals(): void
    {
        if (\function_exists('pcntl_signal_dispatch')) {
            pcntl_signal_dispatch();
        }
    }

    /**
     * @param array<resource> $reads
     * @param array<resource> $writes
     *
     * @return array<int, LauncherJob> jobs whose exit pipe was closed, by id
     */
    private function handle(array $reads, array $writes): array
    {
        $exits = [];
        foreach ($reads as $stream) {
            [$job, $descriptor] = $this->jobOf[(int) $stream] ?? [null, 0];
            if ($stream === \STDIN) {
                $this->receive();
            } elseif ($job !== null && $descriptor === ProcessOpener::EXIT_PIPE) {
                $this->close($job, $descriptor);
                $exits[$job->id] = $job;
            } elseif ($job !== null) {
                $this->read($job, $descriptor);
            }
        }
        foreach ($writes as $stream) {
            if (isset($this->jobOf[(int) $stream])) {
                $this->feed($this->jobOf[(int) $stream][0]);
            }
        }

        return $exits;
    }

    private function receive(): void
    {
        $bytes = @fread(\STDIN, self::READ_BYTES);
        if ($bytes !== '' && $bytes !== false) {
            $this->scheduler->received($bytes);
        } elseif (feof(\STDIN)) {
            $this->scheduler->poolEnded();
        }
    }

    /** @param array<int, LauncherJob> $announced jobs whose exit pipe was closed */
    private function collectExits(array $announced, bool $checksAll): void
    {
        if ($checksAll && \function_exists('posix_getppid') && posix_getppid() !== $this->poolPid) {
            $this->scheduler->poolEnded(); // STDIN does not end while a fork of the pool's process has the pipe open
        }
        $candidates = $announced + $this->exiting;
        // Most signals announce only exits of candidates. So while there are candidates, all jobs are checked rarely.
        $isDue = $this->childEnded
            && ($candidates === [] || hrtime(true) - $this->checkedAt > self::MAX_CHECK_NANOSECONDS);
        if ($checksAll || $isDue) {
            $candidates = $this->jobs;
            $this->childEnded = false;
            $this->checkedAt = hrtime(true);
        }
        foreach ($candidates as $id => $job) {
            if ($job->process === null) {
                continue;
            }
            $status = $this->statuses[$id] ?? proc_get_status($job->process);
            // A process closes its exit pipe a moment before its exit can be collected, so the loop asks repeatedly.
            for ($i = 0; $status['running'] && isset($announced[$id]) && $i < 20; ++$i) {
                $status = proc_get_status($job->process);
            }
            if (!$status['running']) {
                unset($this->statuses[$id], $this->exiting[$id]);
                $this->exited($job, $status);
            } elseif (isset($announced[$id])) {
                $this->exiting[$id] = $job;
                $this->checkInterval = self::MIN_CHECK_NANOSECONDS;
            }
        }
        if ($checksAll) {
            $doubled = max(self::MIN_CHECK_NANOSECONDS, $this->checkInterval * 2);
            $this->checkInterval = min($doubled, self::MAX_CHECK_NANOSECONDS);
        }
    }

    /** @param array{exitcode: int, signaled: bool, termsig: int} $status */
    private function exited(LauncherJob $job, array $status): void
    {
        unset($this->jobs[$job->id]);
        $this->readRest($job);
        \assert(\is_resource($job->process));
        proc_close($job->process);
        $job->process = null;
        $this->scheduler->exited(
            $job,
            $status['signaled'] ? -1 : $status['exitcode'],
            $status['signaled'] ? $status['termsig'] : 0,
        );
    }

    /** Reads at most as much as two pipes can contain, because a descendant may still be writing. Closes all pipes. */
    private function readRest(LauncherJob $job): void
    {
        $rest = 0;
        $none = null;
        while (
            $rest < 2 * self::MAX_PIPE_BYTES
            && ($readable = array_intersect_key($job->pipes, [1 => true, 2 => true])) !== []
        ) {
            if (@stream_select($readable, $none, $none, 0) < 1) {
                break;
            }
            foreach (array_keys($readable) as $descriptor) {
                $rest += $this->read($job, $descriptor);
            }
        }
        foreach (array_keys($job->pipes) as $descriptor) {
            $this->close($job, $descriptor);
        }
    }

    /** @return int number of bytes that were read */
    private function read(LauncherJob $job, int $descriptor): int
    {
        $pipe = $job->pipes[$descriptor];
        $bytes = @fread($pipe, self::READ_BYTES);
        $length = \strlen((string) $bytes);
        if ($length > 0) {
            $this->scheduler->output($job, $descriptor === 2, (string) $bytes);
        } elseif (feof($pipe)) {
            $this->close($job, $descriptor);
        }

        return $length;
    }

    private function close(LauncherJob $job, int $descriptor): void
    {
        $pipe = $job->pipes[$descriptor];
        $id = (int) $pipe;
        unset($this->reads[$id], $this->writes[$id], $this->jobOf[$id], $job->pipes[$descriptor]);
        fclose($pipe);
        --$this->openDescriptors;
    }
}
