<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\HttpServerStatistics;

/** The numbers from which {@see HttpServerStatistics} are created. */
final class Counters
{
    /** {@see HttpServerStatistics::DURATION_BOUNDS} in nanoseconds. */
    private const BUCKET_BOUNDS_NANOSECONDS = [
        100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
        250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ];

    private const MAX_ROUTES = 500;

    public int $connections = 0;

    /** Connections closed immediately, because their IPv4 address or IPv6 /64 network had too many connections. */
    public int $rejected = 0;

    public int $evicted = 0;

    /** @var array<int, int> responses by status */
    public array $answered = [];

    /** @var array<int, int> messages refused before a handler was called, by status */
    public array $refused = [];

    public int $handshakesFailed = 0;

    /** Requests that got no response, because the client or the server closed the connection. */
    public int $abandoned = 0;

    public int $cutOff = 0;

    /** @var array<int, int> responses by bucket of duration; the last bucket is for durations above all bounds */
    public array $durationCounts = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    public int $totalNanoseconds = 0;

    /** @var array<string, array{int, int, int}> by route: responses, total nanoseconds, errors (5xx or cut off) */
    public array $routes = [];

    /** @param int $nanoseconds time from the arrival of the request's head to the response */
    public function countAnswer(int $status, int $nanoseconds, ?string $route): void
    {
        if ($route !== null) {
            $this->countAnswerOfRoute($route, $status, $nanoseconds);
        }
        $this->answered[$status] = ($this->answered[$status] ?? 0) + 1;
        $this->totalNanoseconds += $nanoseconds;
        $bucket = 0;
        while ($bucket < 16 && $nanoseconds > self::BUCKET_BOUNDS_NANOSECONDS[$bucket]) {
            ++$bucket;
        }
        ++$this->durationCounts[$bucket];
    }

    public function countRefusal(int $status): void
    {
        $this->refused[$status] = ($this->refused[$status] ?? 0) + 1;
    }

    /** Counts a cut-off response as an error. {@see countAnswer()} has already counted its status, such as 200. */
    public function countCutOff(?string $route): void
    {
        ++$this->cutOff;
        if ($route !== null) {
            $route = isset($this->routes[$route]) ? $route : 'other';
            $this->routes[$route] ??= [0, 0, 0]; // the body's code may have renamed the route since countAnswer()
            ++$this->routes[$route][2];
        }
    }

    /** Counts a response of a route, or of "other" after MAX_ROUTES routes: a handler may use each path as a route. */
    private function countAnswerOfRoute(string $route, int $status, int $nanoseconds): void
    {
        $route = isset($this->routes[$route]) || \count($this->routes) < self::MAX_ROUTES ? $route : 'other';
        [$count, $duration, $failed] = $this->routes[$route] ?? [0, 0, 0];
        $this->routes[$route] = [$count + 1, $duration + $nanoseconds, $failed + (int) ($status >= 500)];
    }
}
