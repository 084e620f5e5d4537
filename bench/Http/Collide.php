<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** The cost of a body with colliding keys. */
final readonly class Collide
{
    private const REQUESTS = 3;

    /** @return Outcome CPU milliseconds per request */
    public function measure(Server $server): Outcome
    {
        $before = array_sum($server->cpu());
        $begin = hrtime(true);
        $connection = new Connection($server->site);
        $answered = 0;
        for ($i = 0; $i < self::REQUESTS; ++$i) {
            $answered += $connection->isAnswered(Work::FIRST_NUMBER + $i) ? 1 : 0;
        }
        $milliseconds = (hrtime(true) - $begin) / 1e6 / self::REQUESTS;
        $used = array_sum($server->cpu()) - $before;

        return new Outcome(
            1e3 * $used / self::REQUESTS,
            ['milliseconds' => $milliseconds],
            $answered === self::REQUESTS ? [] : [(self::REQUESTS - $answered) . ' were not answered'],
        );
    }
}
