<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/**
 * Ends jobs with all their descendants, after a time limit or when the pool cancels them.
 *
 * A job has these states, which its properties show:
 * - Running. When it ends by itself, it is over, and its descendants are left alone.
 * - Ending, when `ending` has the reason: its tree has received TERM and CONT, and has time until `killAt`.
 * - Killed, when `killed` is set: the rest of its tree has received KILL. If some of it exists at the next `killAt`, it
 *   can't be killed. The job is given up, and reported with the flag SURVIVED.
 * - Lingering, when `ended` is set: its own process has ended in one of the last two states. The job is over when
 *   nothing of its tree is found any more. Until then `killAt` still applies.
 *
 * A job that is over is returned to the caller once, to be reported.
 */
final class JobTermination
{
    /** Maximum grace of jobs when the pool itself is gone, in seconds. */
    private const MAX_LAST_GRACE_SECONDS = 0.5;

    /** Nanoseconds within which a killed process ends, if it can be killed. */
    private const KILL_TIMEOUT_NANOSECONDS = 1_000_000_000;

    /** First and longest interval between two searches for the rest of ended jobs, in nanoseconds. */
    private const MIN_SEARCH_INTERVAL_NANOSECONDS = 1_000_000;
    private const MAX_SEARCH_INTERVAL_NANOSECONDS = 50_000_000;

    /** Points in time on the monotonic clock. */
    private const IMMEDIATELY = 1;
    private const NEVER = \PHP_INT_MAX;

    /** Seconds that jobs have to end after SIGTERM. */
    public float $grace = 2.0;

    /** @var array<int, LauncherJob> jobs that the next {@see enforceLimits()} ends for the pool, by id */
    private array $cancelled = [];

    /** @var array<int, LauncherJob> running jobs that are ended and whose own process is gone */
    private array $lingering = [];

    /** Earliest end of any time limit, grace or wait for a killed process, on the monotonic clock. */
    private int $deadline = self::NEVER;
    private int $nextSearch = self::NEVER;
    private int $searchInterval = self::MIN_SEARCH_INTERVAL_NANOSECONDS;

    public function __construct(private readonly Backend $backend, private readonly JobTrees $trees) {}

    /** Starts the job's time limits. */
    public function started(LauncherJob $job): void
    {
        if ($job->timeout > 0 || $job->idleTimeout > 0) {
            $this->lowerDeadline(min(self::timeoutDeadline($job), self::idleDeadline($job)));
        }
    }

    /** @param LauncherJob $job running job */
    public function cancel(LauncherJob $job): void
    {
        if ($job->ending === 0) {
            $this->cancelled[$job->id] = $job;
        }
    }

    /** Notes that the own process of a job that is being ended is gone. */
    public function linger(LauncherJob $job): void
    {
        $this->lingering[$job->id] = $job;
        $this->nextSearch = self::IMMEDIATELY;
    }

    /** Notes that a descendant of some job, adopted by this process, has ended. */
    public function orphanEnded(): void
    {
        if ($this->lingering !== []) {
            $this->nextSearch = self::IMMEDIATELY;
        }
    }

    /** Returns when {@see enforceLimits()} is due, on the monotonic clock in nanoseconds; 0 for never. */
    public function nextDeadline(): int
    {
        $next = min($this->deadline, $this->nextSearch);

        return $next === self::NEVER ? 0 : $next;
    }

    /**
     * Does everything that is due. Mostly this is nothing, at the cost of a few comparisons.
     *
     * @param array<int, LauncherJob> $running  jobs that were started and not reported, by id
     * @param bool            $onlyPool the jobs' output is ignored now, because the pool does not receive
     *
     * @return list<LauncherJob> jobs of these that are over
     */
    public function enforceLimits(array $running, bool $onlyPool): array
    {
        if ($this->cancelled !== []) {
            // All at once, because each search through the machine's processes takes milliseconds.
            $this->end(array_values(array_intersect_key($this->cancelled, $running)), LauncherProtocol::CANCELLED);
            $this->cancelled = [];
        }
        if ($this->deadline === self::NEVER && $this->nextSearch === self::NEVER) {
            return [];
        }
        $now = hrtime(true);
        $over = $this->deadline <= $now ? $this->endOverdue($running, $onlyPool, $now) : [];

        return $this->nextSearch <= $now ? [...$over, ...$this->findSurvivors($now)] : $over;
    }

    /** Ends all processes, because the pool is gone; returns when they have ended. */
    public function endAll(): void
    {
        $this->trees->endAll(min($this->grace, self::MAX_LAST_GRACE_SECONDS), self::KILL_TIMEOUT_NANOSECONDS);
    }

    /** Returns the time at which it has run for too long. */
    private static function timeoutDeadline(LauncherJob $job): int
    {
        return $job->timeout > 0 ? $job->started + self::nanoseconds($job->timeout) : self::NEVER;
    }

    /** Returns the time at which it has been silent for too long. */
    private static function idleDeadline(LauncherJob $job): int
    {
        return $job->idleTimeout > 0 ? $job->lastOutput + self::nanoseconds($job->idleTimeout) : self::NEVER;
    }

    /** Returns 30 years at most, so that a sum with the clock never overflows. */
    private static function nanoseconds(float $seconds): int
    {
        return (int) (min($seconds, 1e9) * 1e9);
    }

    private function lowerDeadline(int $deadline): void
    {
        $this->deadline = min($this->deadline, $deadline);
    }

    /** @param list<LauncherJob> $jobs */
    private function end(array $jobs, int $reason): void
    {
        if ($jobs === []) {
            return;
        }
        $ids = [];
        foreach ($jobs as $job) {
            $job->ending = $reason;
            $job->killAt = hrtime(true) + self::nanoseconds($this->grace);
            $this->lowerDeadline($job->killAt);
            $ids[$job->id] = true;
        }
        $this->trees->terminate($ids, $this->trees->alive());
    }

    /**
     * @param array<int, LauncherJob> $running
     *
     * @return list<LauncherJob> jobs that can't be ended
     */
    private function endOverdue(array $running, bool $onlyPool, int $now): array
    {
        // The next deadline is found below. It may be too early, but not too late.
        $this->deadline = self::NEVER;
        $timedOut = $idle = $kill = $over = [];
        foreach ($running as $job) {
            if ($job->ending === 0) {
                if ($onlyPool || $job->unacknowledged > LauncherProtocol::OUTPUT_WINDOW) {
                    $job->lastOutput = $now; // not silent, but ignored
                }
                $timeout = self::timeoutDeadline($job);
                $idleAt = self::idleDeadline($job);
                if ($timeout <= $now) {
                    $timedOut[] = $job;
                } elseif ($idleAt <= $now) {
                    $idle[] = $job;
                } else {
                    $this->lowerDeadline(min($timeout, $idleAt));
                }
            } elseif ($job->killAt > $now) {
                $this->lowerDeadline($job->killAt);
            } elseif ($job->killed) {
                $this->abandon($job);
                $over[] = $job;
            } else {
                $job->killed = true;
                $job->killAt = $now + self::KILL_TIMEOUT_NANOSECONDS;
                $this->lowerDeadline($job->killAt);
                $kill[$job->id] = true;
            }
        }
        $this->end($timedOut, LauncherProtocol::TIMED_OUT);
        $this->end($idle, LauncherProtocol::IDLE);
        $this->trees->kill($kill);

        return $over;
    }

    /** Frees the slot of a job that neither ends nor can be ended, and reports it. */
    private function abandon(LauncherJob $job): void
    {
        $job->ending |= LauncherProtocol::SURVIVED;
        if (isset($this->lingering[$job->id])) {
            unset($this->lingering[$job->id]);
        } else {
            $this->backend->abandon($job);
            $job->ended = hrtime(true);
        }
    }

    /** @return list<LauncherJob> jobs without any process left */
    private function findSurvivors(int $now): array
    {
        $alive = $this->trees->alive();
        $this->trees->terminate($this->lingering, $alive);
        $alive = array_flip($alive);
        $left = array_intersect_key($this->lingering, $alive);
        $over = array_values(array_diff_key($this->lingering, $alive));
        $this->lingering = $left;
        // Adopted orphans report their end. Without adoption, searches become less frequent.
        $this->searchInterval = $left === []
            ? self::MIN_SEARCH_INTERVAL_NANOSECONDS
            : min($this->searchInterval * 2, self::MAX_SEARCH_INTERVAL_NANOSECONDS);
        $this->nextSearch = $left === [] ? self::NEVER : $now + $this->searchInterval;

        return $over;
    }
}
