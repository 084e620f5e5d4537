<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\HttpServerStatistics;

/** Adds up {@see HttpServerStatistics} of several servers. The status page gets all properties by name, as JSON. */
final class Totals
{
    public int $inFlight = 0;
    public int $sending = 0;
    public int $connections = 0;
    public int $accepted = 0;
    public int $rejected = 0;
    public int $evicted = 0;
    public int $maxConnections = 0;

    public int $fullServers = 0;

    public int $handshakesFailed = 0;

    /** @var array<int, int> by status */
    public array $answered = [];

    /** @var array<int, int> by status */
    public array $refused = [];

    public int $abandoned = 0;
    public int $cutOff = 0;

    /** @var list<int> {@see HttpServerStatistics::$durationCounts} */
    public array $durationCounts = [];

    public float $totalDuration = 0.0;

    /** @var array<string, array{int, float, int}> {@see HttpServerStatistics::$routes} */
    public array $routes = [];

    /** @var array<string, array<string, int|float>> {@see HttpServerStatistics::$pools} */
    public array $pools = [];

    /** @param int $maxRoutes maximum number of separate routes. All further routes are added up as "other" */
    public function __construct(private readonly int $maxRoutes = \PHP_INT_MAX) {}

    public function add(HttpServerStatistics $server): void
    {
        $this->addCounters($server);
        $this->inFlight += $server->inFlight;
        $this->sending += $server->sendingResponses;
        $this->connections += $server->connections;
        $this->maxConnections += $server->maxConnections;
        $this->fullServers += (int) $server->full;
        $this->addPools($server, false);
    }

    /** Adds only counters. For a server that has ended or does not answer, no other values are known. */
    public function addCounters(HttpServerStatistics $server): void
    {
        $this->accepted += $server->acceptedConnections;
        $this->rejected += $server->rejectedConnections;
        $this->evicted += $server->evictedConnections;
        $this->handshakesFailed += $server->failedHandshakes;
        $this->answered = self::sum($this->answered, $server->answeredRequests);
        $this->refused = self::sum($this->refused, $server->refusedRequests);
        $this->abandoned += $server->abandonedRequests;
        $this->cutOff += $server->cutOffResponses;
        $this->durationCounts = array_values(self::sum($this->durationCounts, $server->durationCounts));
        $this->totalDuration += $server->totalDuration;
        $this->addRoutes($server);
        foreach ($server->routes as $name => [$answers, $seconds, $failed]) {
            $name = isset($this->routes[$name]) ? $name : 'other';
            $before = $this->routes[$name] ?? [0, 0.0, 0];
            $this->routes[$name] = [$before[0] + $answers, $before[1] + $seconds, $before[2] + $failed];
        }
        $this->addPools($server, true);
    }

    /** Adds a server's new routes with counts of 0, until there are `$maxRoutes`. Later routes count as "other". */
    public function addRoutes(HttpServerStatistics $server): void
    {
        foreach ($server->routes as $name => $_) {
            if (\count($this->routes) < $this->maxRoutes) {
                $this->routes[$name] ??= [0, 0.0, 0];
            }
        }
    }

    /** @param bool $counters true to add only counters (names that end with _total); false to add only other values */
    private function addPools(HttpServerStatistics $server, bool $counters): void
    {
        foreach ($server->pools as $pool => $values) {
            foreach ($values as $name => $value) {
                if (str_ends_with("{$name}", '_total') === $counters) {
                    $this->pools[$pool][$name] = ($this->pools[$pool][$name] ?? 0) + $value;
                }
            }
        }
    }

    /**
     * @param array<int, int> $counts
     * @param array<int, int> $more
     *
     * @return array<int, int>
     */
    private static function sum(array $counts, array $more): array
    {
        foreach ($more as $key => $count) {
            $counts[$key] = ($counts[$key] ?? 0) + $count;
        }

        return $counts;
    }
}
