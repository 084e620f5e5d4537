<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\HttpServerStatistics;

/** Sums of several servers' {@see HttpServerStatistics}. */
final class Totals
{
    public int $inFlight = 0;
    public int $connections = 0;
    public int $accepted = 0;
    public int $rejected = 0;
    public int $evicted = 0;
    public int $maxConnections = 0;

    public int $full = 0;

    public int $handshakesFailed = 0;

    /** @var array<int, int> by status */
    public array $answered = [];

    /** @var array<int, int> by status */
    public array $refused = [];

    public int $abandoned = 0;

    /** @var list<int> */
    public array $durations = [];

    public float $duration = 0.0;

    /** @var array<string, array{int, float, int}> by name */
    public array $routes = [];

    /** @var array<string, array<string, int|float>> by name */
    public array $pools = [];

    /** @param int $maxRoutes routes that are counted separately: the first ones, even with a count of 0 */
    public function __construct(private readonly int $maxRoutes = \PHP_INT_MAX) {}

    public function add(HttpServerStatistics $server): void
    {
        $this->addCounts($server);
        $this->inFlight += $server->inFlight;
        $this->connections += $server->connections;
        $this->maxConnections += $server->maxConnections;
        $this->full += (int) $server->full;
        $this->addPools($server, false);
    }

    /** Adds counters, but no current state. For servers that have ended, too. */
    public function addCounts(HttpServerStatistics $server): void
    {
        $this->accepted += $server->accepted;
        $this->rejected += $server->rejected;
        $this->evicted += $server->evicted;
        $this->handshakesFailed += $server->handshakesFailed;
        $this->answered = self::sum($this->answered, $server->answered);
        $this->refused = self::sum($this->refused, $server->refused);
        $this->abandoned += $server->abandoned;
        $this->durations = array_values(self::sum($this->durations, $server->durations));
        $this->duration += $server->duration;
        $this->reserveRoutes($server);
        foreach ($server->routes as $name => [$answers, $seconds, $failed]) {
            $name = isset($this->routes[$name]) ? $name : 'other';
            $before = $this->routes[$name] ?? [0, 0.0, 0];
            $this->routes[$name] = [$before[0] + $answers, $before[1] + $seconds, $before[2] + $failed];
        }
        $this->addPools($server, true);
    }

    /** Reserves places for the routes of a server among those that are counted separately. */
    public function reserveRoutes(HttpServerStatistics $server): void
    {
        foreach ($server->routes as $name => $_) {
            if (\count($this->routes) < $this->maxRoutes) {
                $this->routes[$name] ??= [0, 0.0, 0];
            }
        }
    }

    /** @param bool $growing whether to add counters, or all other values */
    private function addPools(HttpServerStatistics $server, bool $growing): void
    {
        foreach ($server->pools as $pool => $values) {
            foreach ($values as $name => $value) {
                if (str_ends_with("{$name}", '_total') === $growing) {
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
