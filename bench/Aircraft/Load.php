<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Http\WrkRun;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Signals;

/** Clients that repeatedly add, read, change and delete aircraft. */
final readonly class Load
{
    /** Time limit for all cycles, in seconds. */
    private const TIMEOUT = 1_200.0;

    public function __construct(private Database $database, public int $clients) {}

    /** Runs a number of cycles per client, as fast as the server answers. */
    public function count(Served $served, int $cycles, float $interval = 0.5): Outcome
    {
        return $this->measure($served, $cycles, self::TIMEOUT, $interval);
    }

    /** Runs cycles for a number of seconds. */
    public function last(Served $served, float $seconds): Outcome
    {
        return $this->measure($served, 0, $seconds, 0.5);
    }

    private function measure(Served $served, int $cycles, float $seconds, float $interval): Outcome
    {
        $watch = new Watch($served, $this->database, $interval);
        $before = $served->processes->cpu();
        $tag = 'L' . strtoupper(bin2hex(random_bytes(2)));
        $run = Signals::withoutInterruption(
            fn(): WrkRun => new WrkRun(
                [
                    \PHP_BINARY,
                    ...Program::PHP_OPTIONS,
                    __DIR__ . '/crud-clients.php',
                    $served->address,
                    $tag,
                    (string) $this->clients,
                    (string) $cycles,
                    (string) $seconds,
                ],
            ),
        );
        $isDone = $run->awaitMark($watch->sample(...));
        $watch->sample();
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
            'memory' => $watch->peakMemory(),
            'connections' => $watch->connections(),
            'client' => $run->cpu() / max(1e-3, $result->seconds),
        ], [
            ...$result->problems(),
            ...($isDone ? [] : ['not all clients have finished']),
            ...(
                $cycles > 0
                && $result->cycles !== $cycles * $this->clients ? ["only {$result->cycles} cycles were completed"] : []
            ),
        ], ['samples' => $watch->memory()]);
    }
}
