<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * How a launcher starts processes, hears of them and speaks to its pool. One for each means that PHP may have:
 * {@see SpawnBackend} through FFI, {@see ProcOpenBackend} without.
 */
interface Backend
{
    public function name(): string;

    /** Commands that may run at once before descriptors run out. */
    public function capacity(): int;

    /** @param list<string> $environment `NAME=value`, what every job starts from */
    public function useEnvironment(array $environment): void;

    /**
     * Starts the job and opens its pipes.
     *
     * @return bool false when descriptors or processes have run out for now and nothing was started
     *
     * @throws StartFailure when it can't be started at all
     */
    public function start(Job $job): bool;

    /**
     * Waits for the first of the events, at most until the deadline, and reports all that are there to the supervisor.
     *
     * @param int $deadline on the monotonic clock in nanoseconds; 0 for none
     * @param bool $onlyPool hear nothing of the jobs' output, for the pool takes none
     */
    public function wait(int $deadline, bool $onlyPool): void;

    /** The job's process, while its exit was not reported. */
    public function pidOf(Job $job): int;

    /**
     * Waits for an exit, when the pool is of no more interest.
     *
     * @param int $nanoseconds the longest that it waits
     */
    public function awaitExit(int $nanoseconds): void;

    /** Writes what the pool takes now, without blocking; returns the rest. */
    public function send(string $bytes): string;

    /** Writes what the job takes of its input now; closes it when all is written and none follows. */
    public function feed(Job $job): void;

    /** Stops or starts hearing of the job's output. */
    public function listen(Job $job, bool $listen): void;

    /** Gives up a job whose process can't be ended: its exit, if it comes, is nobody's. */
    public function abandon(Job $job): void;

    public function signal(int $pid, int $signal): void;

    /** Whether nothing that was started here is left. */
    public function isDeserted(): bool;
}
