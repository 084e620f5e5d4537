<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** The memory of a server while very many requests come on kept connections. */
final readonly class Soak
{
    /** Looks at the memory, evenly. */
    private const LOOKS = 10;

    /** Seconds that it may take. */
    private const LIMIT = 7_200;

    public function __construct(private Wrk $wrk, private int $count) {}

    /** @return Outcome with the growth from a tenth of the requests to their end, in percent */
    public function measure(Server $server, int $connections): Outcome
    {
        $load = new Load($server->site->work, $connections, mark: max(1, intdiv($this->count, self::LOOKS)));
        $run = $this->wrk->start($server, $load, self::LIMIT);
        $memory = [];
        while (\count($memory) < self::LOOKS && $run->awaitMark()) {
            $memory[] = $server->memory();
        }
        $result = $run->stop();
        if ($memory === []) {
            throw new \RuntimeException('wrk ended before a tenth of the requests: ' . implode(', ', $result->problems()));
        }
        [$first, $last] = [max(1, $memory[0]), $memory[\count($memory) - 1]];

        return new Outcome(
            100 * ($last - $first) / $first,
            ['requests' => $result->requests, 'rate' => $result->rate(), 'tenth' => $first, 'end' => $last, 'most' => max($memory)],
            [...$result->problems(), ...(\count($memory) < self::LOOKS ? ["it was not done after {$result->requests} requests"] : [])],
        );
    }
}
