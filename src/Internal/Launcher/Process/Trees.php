<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** The process trees of a launcher's jobs: what of them is alive, and how it is ended. */
final class Trees
{
    private const LAST_LOOK = 50_000_000;
    private const FIRST_LOOK = 1_000_000;
    private const TERM = 15;
    private const CONT = 18;

    /** @var array<string, int> what an earlier look found, which holds when its parents are gone */
    private array $known = [];

    /** @var array<int, int> those that were asked to end and are alive: job by pid */
    private array $asked = [];

    /** @param \Closure(): array<int, int> $roots the jobs' own processes: job by pid */
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
     * Asks the jobs' processes to end, each once: one that was being started is found the next time.
     *
     * @param array<int, mixed> $jobs  by id
     * @param array<int, int>   $alive as {@see alive()} has found them
     */
    public function terminate(array $jobs, array $alive): void
    {
        $this->asked = array_intersect_key($this->asked, $alive);
        $new = array_diff_key(array_filter($alive, static fn(int $job): bool => isset($jobs[$job])), $this->asked);
        $this->ask(array_keys($new));
        $this->asked += $new;
    }

    /**
     * Leaves the jobs' processes no choice.
     *
     * @param array<int, true> $jobs by id
     */
    public function kill(array $jobs): void
    {
        if ($jobs !== []) {
            ProcessTree::kill(fn(): array => $this->of($jobs), $this->backend->signal(...));
        }
    }

    /**
     * Ends everything that is alive, whatever it belongs to, and returns when it is gone.
     *
     * @param float $grace        in seconds, before it is killed
     * @param int   $killedWithin in nanoseconds, after which what is left can't be killed
     */
    public function endAll(float $grace, int $killedWithin): void
    {
        if ($this->backend->isDeserted()) {
            return;
        }
        $everything = fn(): array => ProcessTree::look(fn(): array => array_keys($this->alive()));
        $this->ask($everything());
        $killAt = hrtime(true) + (int) ($grace * 1e9);
        $giveUpAt = \PHP_INT_MAX;
        for ($pause = self::FIRST_LOOK; $everything() !== []; $pause = min($pause * 2, self::LAST_LOOK)) {
            if (hrtime(true) >= $giveUpAt) {
                return;
            }
            if (hrtime(true) >= $killAt) {
                ProcessTree::kill($everything, $this->backend->signal(...));
                // From the first kill on: this process may itself have been stopped until now.
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
    private function of(array $jobs): array
    {
        return array_keys(array_filter($this->alive(), static fn(int $job): bool => isset($jobs[$job])));
    }

    /** @param list<int> $pids */
    private function ask(array $pids): void
    {
        foreach ([self::TERM, self::CONT] as $signal) { // a stopped process takes no other signal than CONT
            foreach ($pids as $pid) {
                $this->backend->signal($pid, $signal);
            }
        }
    }
}
