<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Finds and ends the live processes of a launcher's jobs. */
final class JobTrees
{
    private const MAX_SEARCH_INTERVAL_NANOSECONDS = 50_000_000;
    private const MIN_SEARCH_INTERVAL_NANOSECONDS = 1_000_000;
    private const SIGTERM = 15;
    private const SIGCONT = 18;

    /** @var array<string, int> job ids by "pid.start" from the last search, see {@see ProcessTree::find()} */
    private array $known = [];

    /** @var array<int, int> processes that were asked to end: job ids by pid */
    private array $terminated = [];

    public function __construct(private readonly Backend $backend, private readonly string $token) {}

    /** @return array<int, int> live processes: job ids by pid */
    public function alive(): array
    {
        return ProcessTree::find($this->token, $this->backend->processes(), (int) getmypid(), $this->known);
    }

    /**
     * Asks each process of the jobs to end, but asks no process twice. If a search has missed a process that was just
     * started, the next call asks that process.
     *
     * @param array<int, mixed> $jobs  by job id; the values have no meaning
     * @param array<int, int>   $alive result of {@see alive()}
     */
    public function terminate(array $jobs, array $alive): void
    {
        $this->terminated = array_intersect_key($this->terminated, $alive);
        $new = array_diff_key(array_filter($alive, static fn(int $job): bool => isset($jobs[$job])), $this->terminated);
        $this->requestEnd(array_keys($new));
        $this->terminated += $new;
    }

    /** @param array<int, true> $jobs by job id */
    public function kill(array $jobs): void
    {
        if ($jobs !== []) {
            ProcessTree::kill(fn(): array => $this->pidsOf($jobs), $this->backend->signal(...));
        }
    }

    /**
     * Ends all processes. Returns when no process is left, or when the remaining ones count as unkillable.
     *
     * @param float $gracePeriod seconds between SIGTERM and SIGKILL
     * @param int   $killTimeout nanoseconds after SIGKILL until a process counts as unkillable
     */
    public function endAll(float $gracePeriod, int $killTimeout): void
    {
        if ($this->backend->hasNoProcesses()) {
            return;
        }
        $everything = fn(): array => ProcessTree::findStable(fn(): array => array_keys($this->alive()));
        $this->requestEnd($everything());
        $killAt = hrtime(true) + (int) ($gracePeriod * 1e9);
        $giveUpAt = \PHP_INT_MAX;
        for ($pause = self::MIN_SEARCH_INTERVAL_NANOSECONDS; $everything() !== []; $pause = min(
            $pause * 2,
            self::MAX_SEARCH_INTERVAL_NANOSECONDS,
        )) {
            if (hrtime(true) >= $giveUpAt) {
                return;
            }
            if (hrtime(true) >= $killAt) {
                ProcessTree::kill($everything, $this->backend->signal(...));
                // The timeout starts at the first SIGKILL, which is long after $killAt if this process was suspended.
                $giveUpAt = min($giveUpAt, hrtime(true) + $killTimeout);
            }
            $this->backend->awaitExit($pause);
        }
    }

    /**
     * @param array<int, true> $jobs
     *
     * @return list<int>
     */
    private function pidsOf(array $jobs): array
    {
        return array_keys(array_filter($this->alive(), static fn(int $job): bool => isset($jobs[$job])));
    }

    /** @param list<int> $pids */
    private function requestEnd(array $pids): void
    {
        foreach ([self::SIGTERM, self::SIGCONT] as $signal) { // a stopped process handles SIGTERM only after SIGCONT
            foreach ($pids as $pid) {
                $this->backend->signal($pid, $signal);
            }
        }
    }
}
