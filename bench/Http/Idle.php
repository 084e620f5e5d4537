<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Memory of an idle persistent connection that was answered once. */
final readonly class Idle
{
    public function __construct(private Throughput $throughput, private int $count) {}

    /** @return Outcome kilobytes per connection */
    public function measure(Server $server): Outcome
    {
        $this->throughput->warmUp($server, new Load($server->site->work, 1));
        $before = $server->memory();
        $connections = [];
        for ($i = 0; $i < $this->count; ++$i) {
            $connections[] = $connection = new Connection($server->site);
            $connection->isAnswered(Work::FIRST_NUMBER + $i);
        }
        $after = $server->memory();
        $kept = \count(array_filter(
            $connections,
            static fn(Connection $one): bool => $one->isAnswered(Work::FIRST_NUMBER),
        ));

        return new Outcome(
            ($after - $before) / 1024 / $this->count,
            ['before' => $before, 'after' => $after, 'connections' => $this->count, 'kept' => $kept],
            $kept === $this->count ? [] : [($this->count - $kept) . ' connections were not kept'],
        );
    }
}
