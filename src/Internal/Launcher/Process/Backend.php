<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * Starts and watches processes, and writes to the pool: {@see SpawnBackend} with FFI, {@see ProcOpenBackend} without.
 */
interface Backend
{
    public function name(): string;

    /** Number of commands that the descriptors allow at once. */
    public function capacity(): int;

    /** @param list<string> $environment `NAME=value`, for all jobs that follow */
    public function useEnvironment(array $environment): void;

    /**
     * Starts the job and opens its pipes.
     *
     * @return bool false when there are no descriptors or processes now and nothing was started
     *
     * @throws StartFailure when it can't be started at all
     */
    public function start(LauncherJob $job): bool;

    /**
     * Waits for the next event, and reports all that have occurred to the supervisor.
     *
     * @param int $deadline on the monotonic clock in nanoseconds; 0 for none
     * @param bool $onlyPool ignore the jobs' output, because the pool does not receive now
     */
    public function wait(int $deadline, bool $onlyPool): void;

    /** Returns the process id, as long as no exit was reported. */
    public function pidOf(LauncherJob $job): int;

    /**
     * Waits for an exit, without events of the pool.
     *
     * @param int $nanoseconds maximum time
     */
    public function awaitExit(int $nanoseconds): void;

    /** Writes as much as the pool can receive now, without blocking; returns the rest. */
    public function send(string $bytes): string;

    /** Writes as much input as the job can receive now; closes the pipe after the end of the input. */
    public function feed(LauncherJob $job): void;

    /** Starts or stops reading the job's output. */
    public function listen(LauncherJob $job, bool $listen): void;

    /** Gives up a job whose process can't be ended. Its exit will not be reported. */
    public function abandon(LauncherJob $job): void;

    public function signal(int $pid, int $signal): void;

    /** Whether nothing that was started here is left. */
    public function hasNoProcesses(): bool;
}
