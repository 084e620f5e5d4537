<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** How long new connections take to be answered while others of the same address are idle. */
final readonly class Crowd
{
    private const CLIENTS = 300;

    /** Seconds for which the others have been idle. */
    private const IDLE = 1;

    public function __construct(private int $count) {}

    /** @return Outcome with the milliseconds from the connection to its answer: the 99th percentile */
    public function measure(Server $server): Outcome
    {
        $idle = [];
        for ($i = 0; $i < $this->count; ++$i) {
            $idle[] = $connection = new Connection($server->site);
            if (!$connection->isAnswered(Work::FIRST_NUMBER + $i)) {
                return new Outcome(\INF, ['p50' => \INF, 'idle' => $i], ["connection {$i} got no answer"]);
            }
        }
        sleep(self::IDLE);
        $times = [];
        for ($i = 0; $i < self::CLIENTS; ++$i) {
            $begin = hrtime(true);
            if (!(new Connection($server->site))->isAnswered(Work::FIRST_NUMBER + $i)) {
                return new Outcome(\INF, ['p50' => \INF, 'idle' => \count($idle)], ["client {$i} got no answer"]);
            }
            $times[] = (hrtime(true) - $begin) / 1e6;
        }
        sort($times);

        return new Outcome(
            $times[(int) (0.99 * self::CLIENTS)],
            ['p50' => $times[intdiv(self::CLIENTS, 2)], 'idle' => \count($idle)],
        );
    }
}
