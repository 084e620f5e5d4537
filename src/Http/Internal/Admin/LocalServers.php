<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Amp\Future;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerStatistics;

use function Amp\async;

/** Reports on the servers of this process. A pool that several servers share is reported once. */
final readonly class LocalServers implements ServerOverview
{
    /**
     * @param non-empty-list<HttpServer> $servers
     *
     * @throws \ValueError when different pools have the same name
     */
    public function __construct(private array $servers)
    {
        $known = [];
        foreach ($servers as $server) {
            foreach ($server->pools() as $name => $pool) {
                if (($known[$name] ??= $pool) !== $pool) {
                    throw new \ValueError(
                        "Two servers have different statistics named \"{$name}\". Register them under different names"
                            . ' in Application, or register the same object',
                    );
                }
            }
        }
    }

    public function statistics(): CombinedStatistics
    {
        return new CombinedStatistics([$this->combined()]);
    }

    public function readiness(): Readiness
    {
        $statistics = $this->combined();

        return match (true) {
            $statistics->stopping => new Readiness('draining'),
            $statistics->full => new Readiness('full'),
            default => new Readiness('', ...$this->checks()),
        };
    }

    private function combined(): HttpServerStatistics
    {
        $servers = array_map(
            static fn(HttpServer $server): HttpServerStatistics => $server->statistics(),
            $this->servers,
        );
        if (\count($servers) === 1) {
            return $servers[0];
        }
        $totals = new Totals();
        array_map($totals->add(...), $servers);

        return new HttpServerStatistics(
            pid: $servers[0]->pid,
            startedAt: min(array_column($servers, 'startedAt')),
            stopping: \in_array(true, array_column($servers, 'stopping'), true),
            inFlight: $totals->inFlight,
            sendingResponses: $totals->sending,
            connections: $totals->connections,
            acceptedConnections: $totals->accepted,
            rejectedConnections: $totals->rejected,
            evictedConnections: $totals->evicted,
            maxConnections: $totals->maxConnections,
            full: $totals->fullServers > 0,
            failedHandshakes: $totals->handshakesFailed,
            answeredRequests: $totals->answered,
            refusedRequests: $totals->refused,
            abandonedRequests: $totals->abandoned,
            cutOffResponses: $totals->cutOff,
            durationCounts: $totals->durationCounts,
            totalDuration: $totals->totalDuration,
            routes: $totals->routes,
            lag: max(array_column($servers, 'lag')),
            maxLag: max(array_column($servers, 'maxLag')),
            memory: max(array_column($servers, 'memory')),
            pools: array_replace(...array_column($servers, 'pools')), // unlike array_merge(), keeps numeric names
        );
    }

    /** @return list<array<string, string|null>> by server and check name: why the check failed; null if it passed */
    private function checks(): array
    {
        /** @var non-empty-list<Future<array<string, string|null>>> $running */
        $running = array_map(static fn(HttpServer $server) => async($server->runHealthChecks(...)), $this->servers);

        return array_map(static fn(Future $checks): array => $checks->await(), $running);
    }
}
