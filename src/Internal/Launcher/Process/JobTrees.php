<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** The process trees of a launcher's jobs: finds live processes and ends them. */
final class JobTrees
{
    private const MAX_SEARCH_INTERVAL_NANOSECONDS = 50_000_000;
    private const MIN_SEARCH_INTERVAL_NANOSECONDS = 1_000_000;
    private const SIGTERM = 15;
    private const SIGCONT = 18;

    /** @var array<string, int> result of an earlier search, for processes whose parents are gone */
    private array $known = [];

    /** @var array<int, int> live processes that were asked to end: job by pid */
    private array $terminated = [];

    /** @param \Closure(): array<int, int> $roots returns the jobs' own processes: job by pid */
    public function __construct(
        private readonly Backend $backend,
        private readonly string $token,
        private readonly \Closure $roots,
    ) {}

    /** @return array<int, int> job by pid */
    public function alive(): array
    {
        return ProcessTree::find($this->token, ($this->roots)(), (int) getmypid(), $this->known);
    }

    /**
     * Asks the jobs' processes to end, each once. A process that was being started is found next time.
     *
     * @param array<int, mixed> $jobs  by id
     * @param array<int, int>   $alive as {@see alive()} returns it
     */
    public function terminate(array $jobs, array $alive): void
    {
        $this->terminated = array_intersect_key($this->terminated, $alive);
        $new = array_diff_key(array_filter($alive, static fn(int $job): bool => isset($jobs[$job])), $this->terminated);
        $this->requestEnd(array_keys($new));
        $this->terminated += $new;
    }

    /**
     * Kills the jobs' processes.
     *
     * @param array<int, true> $jobs by id
     */
    public function kill(array $jobs): void
    {
        if ($jobs !== []) {
            ProcessTree::kill(fn(): array => $this->pidsOf($jobs), $this->backend->signal(...));
        }
    }

    /**
     * Ends all live processes and returns when they are gone.
     *
     * @param float $grace        seconds before they are killed
     * @param int   $killedWithin nanoseconds after which the rest can't be killed
     */
    public function endAll(float $grace, int $killedWithin): void
    {
        if ($this->backend->hasNoProcesses()) {
            return;
        }
        $everything = fn(): array => ProcessTree::findStable(fn(): array => array_keys($this->alive()));
        $this->requestEnd($everything());
        $killAt = hrtime(true) + (int) ($grace * 1e9);
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
                // Counted from the first kill, because this process may have been stopped before it.
                $giveUpAt = min($giveUpAt, hrtime(true) + $killedWithin);
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
        foreach ([self::SIGTERM, self::SIGCONT] as $signal) { // a stopped process handles only CONT
            foreach ($pids as $pid) {
                $this->backend->signal($pid, $signal);
            }
        }
    }
}
