<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** How many requests a server answers, how fast, and what that costs it. */
final readonly class Throughput
{
    /** Seconds of load before it counts, at most. */
    private const WARM_UP = 1.0;

    /** @param float $seconds of load that count */
    public function __construct(private Wrk $wrk, private float $seconds) {}

    /** Load that does not count: code is loaded, caches are full. */
    public function warmUp(Server $server, Load $load): void
    {
        $this->wrk->run($server, $load, min(self::WARM_UP, $this->seconds));
        // Who queues requests still works on those whose clients have left, and comes to this one when they are done.
        $server->isRight();
    }

    /** @return Outcome with the requests a second */
    public function rate(Server $server, Load $load): Outcome
    {
        $this->warmUp($server, $load);
        $before = $server->cpu();
        $run = $this->wrk->start($server, $load, $this->seconds);
        $run->last($this->seconds);
        $memory = $server->memory();
        $result = $run->stop();
        $after = $server->cpu();
        $used = array_map(static fn(int $pid, float $seconds): float => $seconds - ($before[$pid] ?? 0.0), array_keys($after), $after);
        $raw = [
            'rate' => $result->rate(),
            'requests' => $result->requests,
            'cpu' => 1e6 * array_sum($used) / max(1, $result->requests),
            'busiest' => max([0.0, ...$used]) / max(1e-9, array_sum($used)),
            'p50' => $result->p50,
            'p99' => $result->p99,
            'memory' => $memory,
            'client' => $run->cpu() / max(1e-3, $result->seconds),
        ];

        return new Outcome($result->rate(), $raw, [...$result->problems(), ...($server->isRight() ? [] : ['no right answer afterwards'])]);
    }

    /** @return Outcome with the milliseconds that half of all answers took at most */
    public function latency(Server $server, Load $load): Outcome
    {
        $outcome = $this->rate($server, $load);

        return new Outcome((float) $outcome->raw['p50'], $outcome->raw, $outcome->problems);
    }
}
