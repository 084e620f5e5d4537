<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Admin\Totals;

/** Adds up the counters of all ended processes. Separate counters would need memory for each ended process. */
final class EndedProcessTotals
{
    private const MAX_ROUTES = 500;

    public Totals $totals;

    public function __construct()
    {
        $this->totals = new Totals(self::MAX_ROUTES);
    }

    /** Reserves places within {@see MAX_ROUTES} for the routes in a running process's report, with counts of 0. */
    public function addRoutes(string $statistics): void
    {
        self::read($statistics, $this->totals->addRoutes(...));
    }

    /** @param string $statistics last report of an ended process, {@see HttpServerStatistics::toJson()} */
    public function add(string $statistics): void
    {
        self::read($statistics, $this->totals->addCounters(...));
    }

    /** @param \Closure(HttpServerStatistics): void $useStatistics */
    private static function read(string $statistics, \Closure $useStatistics): void
    {
        try {
            $useStatistics(HttpServerStatistics::fromJson($statistics));
        } catch (\JsonException|\Error) {
            // A malformed report must not end the supervisor.
        }
    }
}
