<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** The memory of a server during very many requests on persistent connections. */
final readonly class Soak
{
    /** Number of memory samples, evenly spread. */
    private const MEMORY_SAMPLES = 10;

    /** Time limit in seconds. */
    private const TIMEOUT = 7_200;

    public function __construct(private Wrk $wrk, private int $count) {}

    /** @return Outcome growth after the first tenth of the requests, in percent */
    public function measure(Server $server, int $connections): Outcome
    {
        $load = new Load($server->site->work, $connections, mark: max(1, intdiv($this->count, self::MEMORY_SAMPLES)));
        $run = $this->wrk->start($server, $load, self::TIMEOUT);
        $memory = [];
        while (\count($memory) < self::MEMORY_SAMPLES && $run->awaitMark()) {
            $memory[] = $server->memory();
        }
        $result = $run->stop();
        if ($memory === []) {
            throw new \RuntimeException(
                'wrk ended before a tenth of the requests: ' . implode(', ', $result->problems()),
            );
        }
        [$first, $last] = [max(1, $memory[0]), $memory[\count($memory) - 1]];

        return new Outcome(
            100 * ($last - $first) / $first,
            [
                'requests' => $result->requests,
                'rate' => $result->rate(),
                'tenth' => $first,
                'end' => $last,
                'most' => max($memory),
            ],
            [
                ...$result->problems(),
                ...(\count($memory) < self::MEMORY_SAMPLES
                    ? ["it stopped before the end, after {$result->requests} requests"]
                    : []),
            ],
        );
    }
}
