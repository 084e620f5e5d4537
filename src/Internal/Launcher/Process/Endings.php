<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\Protocol;

/**
 * Ends jobs with all that descends from them: those that reach a time limit and those that the pool cancels.
 *
 * A job goes through these states, and its properties tell which one it is in:
 *
 * - Running. One that ends by itself is over with its exit, and what it leaves behind is left alone.
 * - Ending, when `ending` says why: its tree has got TERM and CONT, and until `killAt` it has its grace to end in.
 * - Killed, when `killed` is set: the grace was over, and what was left of its tree has got KILL. What is still there at
 *   the next `killAt` can't be killed: the job is given up, and its report says so.
 * - Lingering, when `ended` is set: in one of the last two states its own process has gone. It is over as soon as a look
 *   at the machine's processes finds nothing of its tree; until then its `killAt` holds.
 *
 * A job that is over is handed to the caller once, to be reported.
 */
final class Endings
{
    /** Of the grace that jobs get to end, at most this remains, in seconds, when the pool itself is gone. */
    private const LAST_GRACE = 0.5;

    /** A killed process is gone within this time, in nanoseconds, or it can't be killed. */
    private const KILLED_WITHIN = 1_000_000_000;

    /** Between two looks at what is left of an ended job: at first and at most, in nanoseconds. */
    private const FIRST_LOOK = 1_000_000;
    private const LAST_LOOK = 50_000_000;

    /** For points in time on the monotonic clock. */
    private const AT_ONCE = 1;
    private const NEVER = \PHP_INT_MAX;

    /** What jobs get to end by themselves when they are asked to, in seconds. */
    public float $grace = 2.0;

    /** @var array<int, Job> to be ended for the pool with the next {@see enforceLimits()}, by id */
    private array $cancelled = [];

    /** @var array<int, Job> of the running ones: ended, their own process gone */
    private array $lingering = [];

    /** No time limit, grace or wait for a killed one is over before this, on the monotonic clock. */
    private int $deadline = self::NEVER;
    private int $lookAt = self::NEVER;
    private int $look = self::FIRST_LOOK;

    public function __construct(private readonly Backend $backend, private readonly Trees $trees) {}

    /** Its time limits count from now on. */
    public function started(Job $job): void
    {
        if ($job->timeout > 0 || $job->idleTimeout > 0) {
            $this->expect(min(self::timeoutOf($job), self::silenceOf($job)));
        }
    }

    /** @param Job $job that runs */
    public function cancel(Job $job): void
    {
        if ($job->ending === 0) {
            $this->cancelled[$job->id] = $job;
        }
    }

    /** The own process of a job that is being ended has gone. */
    public function linger(Job $job): void
    {
        $this->lingering[$job->id] = $job;
        $this->lookAt = self::AT_ONCE;
    }

    /** A descendant of some job, adopted by this process, is over. */
    public function orphanEnded(): void
    {
        if ($this->lingering !== []) {
            $this->lookAt = self::AT_ONCE;
        }
    }

    /** When {@see enforceLimits()} has something to do, on the monotonic clock in nanoseconds; 0 for never. */
    public function nextDeadline(): int
    {
        $next = min($this->deadline, $this->lookAt);

        return $next === self::NEVER ? 0 : $next;
    }

    /**
     * Does what is due. Mostly nothing is, and then it is a matter of a few comparisons.
     *
     * @param array<int, Job> $running  started and not yet reported, by id
     * @param bool            $onlyPool nothing is heard of the jobs' output now, for the pool takes none
     *
     * @return list<Job> of them: those that are over
     */
    public function enforceLimits(array $running, bool $onlyPool): array
    {
        if ($this->cancelled !== []) {
            // Together, for each look at the processes of the machine takes milliseconds.
            $this->end(array_values(array_intersect_key($this->cancelled, $running)), Protocol::CANCELLED);
            $this->cancelled = [];
        }
        if ($this->deadline === self::NEVER && $this->lookAt === self::NEVER) {
            return [];
        }
        $now = hrtime(true);
        $over = $this->deadline <= $now ? $this->endOverdue($running, $onlyPool, $now) : [];

        return $this->lookAt <= $now ? [...$over, ...$this->lookForSurvivors($now)] : $over;
    }

    /** Ends everything that is alive, whatever it belongs to, for the pool is gone; returns when that is done. */
    public function endAll(): void
    {
        $this->trees->endAll(min($this->grace, self::LAST_GRACE), self::KILLED_WITHIN);
    }

    /** When it has run for too long. */
    private static function timeoutOf(Job $job): int
    {
        return $job->timeout > 0 ? $job->started + self::nanoseconds($job->timeout) : self::NEVER;
    }

    /** When it has been silent for too long, unless it says something before. */
    private static function silenceOf(Job $job): int
    {
        return $job->idleTimeout > 0 ? $job->lastOutput + self::nanoseconds($job->idleTimeout) : self::NEVER;
    }

    /** At most thirty years, so that a sum with the clock never overflows. */
    private static function nanoseconds(float $seconds): int
    {
        return (int) (min($seconds, 1e9) * 1e9);
    }

    private function expect(int $deadline): void
    {
        $this->deadline = min($this->deadline, $deadline);
    }

    /** @param list<Job> $jobs */
    private function end(array $jobs, int $reason): void
    {
        if ($jobs === []) {
            return;
        }
        $ids = [];
        foreach ($jobs as $job) {
            $job->ending = $reason;
            $job->killAt = hrtime(true) + self::nanoseconds($this->grace);
            $this->expect($job->killAt);
            $ids[$job->id] = true;
        }
        $this->trees->terminate($ids, $this->trees->alive());
    }

    /**
     * @param array<int, Job> $running
     *
     * @return list<Job> those that can't be ended
     */
    private function endOverdue(array $running, bool $onlyPool, int $now): array
    {
        // The deadline was the earliest of all; the next one is found on the way, and is too early at worst.
        $this->deadline = self::NEVER;
        $timedOut = $idle = $kill = $over = [];
        foreach ($running as $job) {
            if ($job->ending === 0) {
                if ($onlyPool || $job->untaken > Protocol::OUTPUT_WINDOW) {
                    $job->lastOutput = $now; // it is not silent, it is not listened to
                }
                $timeout = self::timeoutOf($job);
                $silence = self::silenceOf($job);
                if ($timeout <= $now) {
                    $timedOut[] = $job;
                } elseif ($silence <= $now) {
                    $idle[] = $job;
                } else {
                    $this->expect(min($timeout, $silence));
                }
            } elseif ($job->killAt > $now) {
                $this->expect($job->killAt);
            } elseif ($job->killed) {
                $this->abandon($job);
                $over[] = $job;
            } else {
                $job->killed = true;
                $job->killAt = $now + self::KILLED_WITHIN;
                $this->expect($job->killAt);
                $kill[$job->id] = true;
            }
        }
        $this->end($timedOut, Protocol::TIMED_OUT);
        $this->end($idle, Protocol::IDLE);
        $this->trees->kill($kill);

        return $over;
    }

    /** What neither ends nor can be ended keeps no slot and nobody waiting. */
    private function abandon(Job $job): void
    {
        $job->ending |= Protocol::SURVIVED;
        if (isset($this->lingering[$job->id])) {
            unset($this->lingering[$job->id]);
        } else {
            $this->backend->abandon($job);
            $job->ended = hrtime(true);
        }
    }

    /** @return list<Job> those that nothing is left of */
    private function lookForSurvivors(int $now): array
    {
        $alive = $this->trees->alive();
        $this->trees->terminate($this->lingering, $alive);
        $alive = array_flip($alive);
        $left = array_intersect_key($this->lingering, $alive);
        $over = array_values(array_diff_key($this->lingering, $alive));
        $this->lingering = $left;
        // Adopted orphans announce their end; where there is no adoption, the looks get rarer.
        $this->look = $left === [] ? self::FIRST_LOOK : min($this->look * 2, self::LAST_LOOK);
        $this->lookAt = $left === [] ? self::NEVER : $now + $this->look;

        return $over;
    }
}
