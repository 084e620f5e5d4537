<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** What clients that never come to the end of their request do to the others. */
final readonly class Slow
{
    /** Of the deadline, after which no more of them is expected to be closed. */
    private const LIMIT = 1.5;

    /** @param float $seconds for which the healthy clients are alone */
    public function __construct(
        private Throughput $throughput,
        private Wrk $wrk,
        private float $seconds,
        private int $count,
    ) {}

    /** @return Outcome with how many times as long the slowest answer of 99 in 100 took */
    public function measure(Server $server, Load $load): Outcome
    {
        $this->throughput->warmUp($server, $load);
        $before = $this->wrk->run($server, $load, $this->seconds);
        $limit = self::LIMIT * $server->site->deadline;
        // A child inherits all connections that are open at its start, and wrk has no place for so many.
        $run = $this->wrk->start($server, $load, $limit);
        $slow = new SlowClients($server->site, $this->count);
        $slow->send($limit);
        $during = $run->stop();

        return new Outcome(
            $before->p99 > 0.0 ? $during->p99 / $before->p99 : 0.0,
            ['before' => $before->p99, 'during' => $during->p99, 'slow' => $this->count, 'closed' => $slow->closed(), 'last' => $slow->last()],
            [...$before->problems(), ...$during->problems()],
        );
    }
}
