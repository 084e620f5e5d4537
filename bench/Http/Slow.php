<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Effect of clients that never finish their request on other clients. */
final readonly class Slow
{
    /** Multiple of the deadline after which no more slow clients are expected to be closed. */
    private const DEADLINE_FACTOR = 1.5;

    /** @param float $seconds seconds for which the healthy clients are alone */
    public function __construct(
        private Throughput $throughput,
        private Wrk $wrk,
        private float $seconds,
        private int $count,
    ) {}

    /** @return Outcome factor by which the 99th percentile of the latency has grown */
    public function measure(Server $server, Load $load): Outcome
    {
        $this->throughput->warmUp($server, $load);
        $before = $this->wrk->run($server, $load, $this->seconds);
        $limit = self::DEADLINE_FACTOR * $server->site->deadline;
        // wrk starts first. Otherwise it would inherit the open connections, which are too many for it.
        $run = $this->wrk->start($server, $load, $limit);
        $slow = new SlowClients($server->site, $this->count);
        $slow->send($limit);
        $during = $run->stop();

        return new Outcome(
            $before->p99 > 0.0 ? $during->p99 / $before->p99 : 0.0,
            [
                'before' => $before->p99,
                'during' => $during->p99,
                'slow' => $this->count,
                'closed' => $slow->closed(),
                'last' => $slow->last(),
            ],
            [...$before->problems(), ...$during->problems()],
        );
    }
}
