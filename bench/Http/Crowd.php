<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Time until new connections are answered while other connections of the same address are idle. */
final readonly class Crowd
{
    private const CLIENTS = 300;

    /** Seconds for which the other connections have been idle. */
    private const IDLE = 1;

    /**
     * Microseconds between two idle connections. An address may have 450 connections. The server refuses another one
     * if none of these has been idle for 50 ms.
     */
    private const PAUSE_MICROSECONDS = 250;

    public function __construct(private int $count) {}

    /** @return Outcome 99th percentile of the milliseconds from connecting to the answer */
    public function measure(Server $server): Outcome
    {
        $idle = [];
        for ($i = 0; $i < $this->count; ++$i) {
            usleep(self::PAUSE_MICROSECONDS);
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
