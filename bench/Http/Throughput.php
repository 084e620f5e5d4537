<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Rate and latency of a server's answers, and their cost. */
final readonly class Throughput
{
    /** Largest duration of the warm-up, in seconds. */
    private const MAX_WARM_UP_SECONDS = 1.0;

    /** @param float $seconds duration of a measurement */
    public function __construct(private Wrk $wrk, private float $seconds) {}

    /** Sends load that is not measured: it loads code and fills caches. */
    public function warmUp(Server $server, Load $load): void
    {
        $this->wrk->run($server, $load, min(self::MAX_WARM_UP_SECONDS, $this->seconds));
        // A server may still process requests of disconnected clients. It answers this one after them.
        $server->isRight();
    }

    /** @return Outcome requests per second */
    public function rate(Server $server, Load $load): Outcome
    {
        $this->warmUp($server, $load);
        $before = $server->cpu();
        $run = $this->wrk->start($server, $load, $this->seconds);
        $run->last($this->seconds);
        $memory = $server->memory();
        $result = $run->stop();
        $after = $server->cpu();
        $used = array_map(
            static fn(int $pid, float $seconds): float => $seconds - ($before[$pid] ?? 0.0),
            array_keys($after),
            $after,
        );
        $raw = [
            'rate' => $result->rate(),
            'requests' => $result->requests,
            'bytes' => $result->bytes / max(1, $result->requests),
            'cpu' => 1e6 * array_sum($used) / max(1, $result->requests),
            'busiest' => max([0.0, ...$used]) / max(1e-9, array_sum($used)),
            'p50' => $result->p50,
            'p99' => $result->p99,
            'memory' => $memory,
            'client' => $run->cpu() / max(1e-3, $result->seconds),
        ];

        return new Outcome(
            $result->rate(),
            $raw,
            [...$result->problems(), ...($server->isRight() ? [] : ['no right answer afterwards'])],
        );
    }

    /** @return Outcome median latency in milliseconds */
    public function latency(Server $server, Load $load): Outcome
    {
        $outcome = $this->rate($server, $load);

        return new Outcome((float) $outcome->raw['p50'], $outcome->raw, $outcome->problems);
    }
}
