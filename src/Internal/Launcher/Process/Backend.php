<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Starts and watches the processes of a launcher: {@see SpawnBackend} with FFI, {@see ProcOpenBackend} without. */
interface Backend
{
    /** Returns how processes are started: posix_spawn or proc_open. */
    public function name(): string;

    /** Returns how many jobs the descriptor limit allows to run at the same time. */
    public function maxConcurrency(): int;

    /** @param list<string> $environment `NAME=value`, for jobs that are started after this call */
    public function useEnvironment(array $environment): void;

    /**
     * @return bool false when nothing was started, because no descriptors or processes are available now
     *
     * @throws StartFailure when the job can't be started at all
     */
    public function start(LauncherJob $job): bool;

    /**
     * Waits until an event occurs, then reports all events to the scheduler.
     *
     * @param int  $deadline       time at which a wait without an event ends, in ns of the monotonic clock; 0 for no
     *                             deadline, 1 for a wait that ends immediately
     * @param bool $isOutputPaused true while the pool reads no frames: the pipes of jobs are then not read or written
     */
    public function wait(int $deadline, bool $isOutputPaused): void;

    /** @return array<int, int> job ids by the pid of the job's own process, for processes that have not exited */
    public function processes(): array;

    /** Waits at most `$nanoseconds` until a process exits, and reports its exit. Ignores other events. */
    public function awaitExit(int $nanoseconds): void;

    /** Writes to the pool without blocking. Returns the bytes for which the pipe has no space. */
    public function send(string $bytes): string;

    /** Writes the job's input without blocking. Closes the pipe after the end of the input. */
    public function feed(LauncherJob $job): void;

    /** Starts or stops reading the job's output. */
    public function listen(LauncherJob $job, bool $listen): void;

    /** Gives up a job whose process can't be killed. The exit of the process will not be reported. */
    public function abandon(LauncherJob $job): void;

    public function signal(int $pid, int $signal): void;

    /** Returns true only if it is certain that no process of any job exists. */
    public function hasNoProcesses(): bool;
}
