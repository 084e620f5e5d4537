<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Load as HttpLoad;
use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Http\Wrk;
use Spindle\Bench\Http\WrkRun;

/** Clients that each add, read, change and delete aircraft, again and again: wrk with a thread for each. */
final readonly class Load
{
    /** Seconds for an answer. */
    private const PATIENCE = 60;

    /** Seconds for all cycles. */
    private const LIMIT = 1_200.0;

    public function __construct(private Wrk $wrk, private Database $database, public int $clients) {}

    /** So many cycles of each client, as fast as they are answered. */
    public function count(Served $served, int $cycles, float $interval = 0.5): Outcome
    {
        return $this->measure($served, $cycles, self::LIMIT, static fn(WrkRun $run, Watch $watch): bool => $run->awaitMark($watch->look(...)), $interval);
    }

    /** As many cycles as there are in so many seconds. */
    public function last(Served $served, float $seconds): Outcome
    {
        return $this->measure($served, 0, $seconds, static function (WrkRun $run, Watch $watch) use ($seconds): bool {
            for ($end = hrtime(true) + $seconds * 1e9; ($left = $end - hrtime(true)) > 0;) {
                $run->last(min(0.2, $left / 1e9));
                $watch->look();
            }

            return true;
        }, 0.5);
    }

    /**
     * @param \Closure(WrkRun, Watch): bool $wait whether it came to its end
     */
    private function measure(Served $served, int $cycles, float $limit, \Closure $wait, float $interval): Outcome
    {
        $watch = new Watch($served, $this->database, $interval);
        $before = $served->processes->cpu();
        $run = $this->wrk->startScript($this->script($served, $cycles), $served->directory, $served->url(), $this->clients, $this->clients, $limit, self::PATIENCE);
        $isDone = $wait($run, $watch);
        $watch->look();
        $cpu = array_sum($served->processes->cpu()) - array_sum($before);
        $result = LoadResult::of($run->finish());
        $done = $result->requests / LoadResult::REQUESTS;
        $rate = $result->seconds > 0.0 ? $done / $result->seconds : 0.0;

        return new Outcome($rate, [
            'cycles' => $done,
            'seconds' => $result->seconds,
            'p50' => $result->p50,
            'p99' => $result->p99,
            'p999' => $result->p999,
            'longest' => $result->longest,
            'cpu' => 1e3 * $cpu / max(1.0, $done),
            'memory' => $watch->most(),
            'connections' => $watch->connections(),
            'client' => $run->cpu() / max(1e-3, $result->seconds),
        ], [
            ...$result->problems(),
            ...($isDone ? [] : ['not all clients came to their end']),
            ...($cycles > 0 && $result->cycles !== $cycles * $this->clients ? ["{$result->cycles} cycles were done"] : []),
        ], ['samples' => $watch->memory()]);
    }

    private function script(Served $served, int $cycles): string
    {
        $values = ["'L" . strtoupper(bin2hex(random_bytes(2))) . "'", $this->clients, $cycles, "'{$served->address}'", "'" . HttpLoad::MARK . "'"];

        return 'TAG, CLIENTS, CYCLES, HOST, MARK = ' . implode(', ', $values) . "\n" . file_get_contents(__DIR__ . '/crud.lua');
    }
}
