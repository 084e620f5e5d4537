<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/**
 * Ends jobs with all their descendants, after a time limit or when the pool cancels them.
 *
 * The tree of a job consists of its own process and the descendants of that process. A job has one of these states:
 * - Running. When the job's own process exits, the job is over. Its descendants continue to run.
 * - Ending, when `endReason` is set: the tree has received TERM and CONT, and must end before `killAt`.
 * - Killed, when `killed` is set: the rest of the tree has received KILL, and `killAt` has a later value. If a process
 *   still exists at `killAt`, it counts as unkillable. Then the job is over, and is reported with the flag SURVIVED.
 * - Lingering, when `endedAt` is set: the job's own process has exited while the job was ending or killed. The job is
 *   over when no process of its tree is found. Until then `killAt` still applies.
 *
 * {@see enforceLimits()} returns each ending, killed or lingering job once it is over, and the caller reports it.
 */
final class JobTermination
{
    /** Maximum seconds between SIGTERM and SIGKILL when the pool has ended. */
    private const MAX_LAST_GRACE_SECONDS = 0.5;

    /** Nanoseconds after which a process that has received SIGKILL counts as unkillable. */
    private const KILL_TIMEOUT_NANOSECONDS = 1_000_000_000;

    /** First and longest interval between two searches for the processes of lingering jobs, in nanoseconds. */
    private const MIN_SEARCH_INTERVAL_NANOSECONDS = 1_000_000;
    private const MAX_SEARCH_INTERVAL_NANOSECONDS = 50_000_000;

    /** Points in time on the monotonic clock: IMMEDIATELY has always passed, and NEVER is never reached. */
    private const IMMEDIATELY = 1;
    private const NEVER = \PHP_INT_MAX;

    public float $gracePeriod = 2.0;

    /** @var array<int, LauncherJob> jobs that the pool has cancelled since the last {@see enforceLimits()}, by id */
    private array $cancelled = [];

    /** @var array<int, LauncherJob> lingering jobs, by id */
    private array $lingering = [];

    /** Earliest end of a time limit, a grace period or a wait for a killed process; monotonic clock, in nanoseconds. */
    private int $deadline = self::NEVER;
    private int $nextSearch = self::NEVER;
    private int $searchInterval = self::MIN_SEARCH_INTERVAL_NANOSECONDS;

    public function __construct(private readonly Backend $backend, private readonly JobTrees $trees) {}

    public function started(LauncherJob $job): void
    {
        if ($job->timeout > 0 || $job->idleTimeout > 0) {
            $this->lowerDeadline(min(self::timeoutDeadline($job), self::idleDeadline($job)));
        }
    }

    /** Makes the next {@see enforceLimits()} end a running job. */
    public function cancel(LauncherJob $job): void
    {
        if ($job->endReason === 0) {
            $this->cancelled[$job->id] = $job;
        }
    }

    /** Records that an ending or killed job lingers, because the job's own process has exited. */
    public function linger(LauncherJob $job): void
    {
        $this->lingering[$job->id] = $job;
        $this->nextSearch = self::IMMEDIATELY;
    }

    /** Makes the next {@see enforceLimits()} search for processes of lingering jobs, because an orphan has ended. */
    public function orphanEnded(): void
    {
        if ($this->lingering !== []) {
            $this->nextSearch = self::IMMEDIATELY;
        }
    }

    /** Returns the time at which {@see enforceLimits()} is due, in ns of the monotonic clock; 0 for never. */
    public function nextDeadline(): int
    {
        $next = min($this->deadline, $this->nextSearch);

        return $next === self::NEVER ? 0 : $next;
    }

    /**
     * Ends cancelled and overdue jobs, kills them after the grace period, and checks lingering jobs when a search is
     * due. A call is cheap when nothing is due: it only compares numbers.
     *
     * @param array<int, LauncherJob> $running        jobs that were started and whose end was not reported, by id
     * @param bool                    $isOutputPaused {@see Backend::wait()}; if true, no idle timeout ends a job
     *
     * @return list<LauncherJob> jobs that are over
     */
    public function enforceLimits(array $running, bool $isOutputPaused): array
    {
        if ($this->cancelled !== []) {
            // One call of end() for all jobs, because each call searches all processes, which takes milliseconds.
            $this->end(array_values(array_intersect_key($this->cancelled, $running)), LauncherProtocol::CANCELLED);
            $this->cancelled = [];
        }
        if ($this->deadline === self::NEVER && $this->nextSearch === self::NEVER) {
            return [];
        }
        $now = hrtime(true);
        $over = $this->deadline <= $now ? $this->endOverdue($running, $isOutputPaused, $now) : [];

        return $this->nextSearch <= $now ? [...$over, ...$this->searchLingering($now)] : $over;
    }

    /** Ends all processes, because the pool has ended. Returns when the processes have ended or can't be killed. */
    public function endAll(): void
    {
        $this->trees->endAll(min($this->gracePeriod, self::MAX_LAST_GRACE_SECONDS), self::KILL_TIMEOUT_NANOSECONDS);
    }

    private static function timeoutDeadline(LauncherJob $job): int
    {
        return $job->timeout > 0 ? $job->startedAt + self::nanoseconds($job->timeout) : self::NEVER;
    }

    private static function idleDeadline(LauncherJob $job): int
    {
        return $job->idleTimeout > 0 ? $job->lastOutputAt + self::nanoseconds($job->idleTimeout) : self::NEVER;
    }

    /** Converts at most 31 years, so that the sum of the result and a time of the clock does not overflow. */
    private static function nanoseconds(float $seconds): int
    {
        return (int) (min($seconds, 1e9) * 1e9);
    }

    private function lowerDeadline(int $deadline): void
    {
        $this->deadline = min($this->deadline, $deadline);
    }

    /** @param list<LauncherJob> $jobs jobs whose trees are asked to end */
    private function end(array $jobs, int $reason): void
    {
        if ($jobs === []) {
            return;
        }
        $ids = [];
        foreach ($jobs as $job) {
            $job->endReason = $reason;
            $job->killAt = hrtime(true) + self::nanoseconds($this->gracePeriod);
            $this->lowerDeadline($job->killAt);
            $ids[$job->id] = true;
        }
        $this->trees->terminate($ids, $this->trees->alive());
    }

    /**
     * @param array<int, LauncherJob> $running
     *
     * @return list<LauncherJob> jobs that can't be killed
     */
    private function endOverdue(array $running, bool $isOutputPaused, int $now): array
    {
        $this->deadline = self::NEVER;
        $timedOut = $idle = $kill = $over = [];
        foreach ($running as $job) {
            if ($job->endReason === 0) {
                if ($isOutputPaused || $job->isOutputPaused) {
                    $job->lastOutputAt = $now; // the job may have written output that is not read now
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

    private function abandon(LauncherJob $job): void
    {
        $job->endReason |= LauncherProtocol::SURVIVED;
        if (isset($this->lingering[$job->id])) {
            unset($this->lingering[$job->id]);
        } else {
            $this->backend->abandon($job);
            $job->endedAt = hrtime(true);
        }
    }

    /** @return list<LauncherJob> lingering jobs without processes; new processes of lingering jobs receive TERM */
    private function searchLingering(int $now): array
    {
        $alive = $this->trees->alive();
        $this->trees->terminate($this->lingering, $alive);
        $alive = array_flip($alive);
        $left = array_intersect_key($this->lingering, $alive);
        $over = array_values(array_diff_key($this->lingering, $alive));
        $this->lingering = $left;
        // The end of an adopted orphan causes an additional search. So regular searches can become less frequent.
        $this->searchInterval = $left === []
            ? self::MIN_SEARCH_INTERVAL_NANOSECONDS
            : min($this->searchInterval * 2, self::MAX_SEARCH_INTERVAL_NANOSECONDS);
        $this->nextSearch = $left === [] ? self::NEVER : $now + $this->searchInterval;

        return $over;
    }
}
