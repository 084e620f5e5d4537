<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Admin\CombinedStatistics;
use Spindle\Http\Internal\Admin\Readiness;
use Spindle\Http\Internal\Admin\ServerOverview;

/** Returns fixed values, and counts the calls. */
final class FixedOverview implements ServerOverview
{
    public int $asked = 0;

    /**
     * @param list<HttpServerStatistics>|null $statistics null for one process that has done nothing
     * @param array<string, string|null>      $checks
     * @param Readiness|null                  $condition null for ready with these checks
     */
    public function __construct(
        private readonly ?array $statistics = null,
        public array $checks = [],
        private readonly ?Readiness $condition = null,
    ) {}

    public function statistics(): CombinedStatistics
    {
        ++$this->asked;

        return new CombinedStatistics($this->statistics ?? [self::process()]);
    }

    public function readiness(): Readiness
    {
        return $this->condition ?? new Readiness('', $this->checks);
    }

    /** Returns a name that PHP converts to a number as an array key. */
    public static function numeric(string $name): string
    {
        return $name;
    }

    /**
     * @param array<int, int>                                 $answered
     * @param array<string, array{int, float, int}>           $routes
     * @param array<string, array<string, int|float>>         $pools
     * @param array<int, int>                                 $durationCounts by bucket
     */
    public static function process(
        int $pid = 100,
        float $started = 1_700_000_000.5,
        bool $stopping = false,
        int $count = 0,
        array $answered = [],
        array $routes = [],
        array $pools = [],
        array $durationCounts = [],
        bool $full = false,
    ): HttpServerStatistics {
        return new HttpServerStatistics(
            pid: $pid,
            startedAt: $started,
            stopping: $stopping,
            inFlight: $count,
            sendingResponses: $count + 16,
            connections: $count + 1,
            acceptedConnections: $count + 2,
            rejectedConnections: $count + 3,
            evictedConnections: $count + 7,
            maxConnections: $count + 8,
            full: $full,
            failedHandshakes: $count + 4,
            answeredRequests: $answered,
            refusedRequests: [400 => $count + 5],
            abandonedRequests: $count + 6,
            cutOffResponses: $count + 15,
            durationCounts: array_values(array_replace(
                array_fill(0, \count(HttpServerStatistics::DURATION_BOUNDS) + 1, 0),
                $durationCounts,
            )),
            totalDuration: $count / 2,
            routes: $routes,
            lag: $count / 100,
            maxLag: $count / 10,
            memory: $count * 1000,
            pools: $pools,
        );
    }
}
