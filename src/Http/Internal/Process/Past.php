<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Admin\Totals;

/** What processes had counted that are no more: their sum, so that it takes no more memory with each. */
final class Past
{
    /** Routes that are told apart: as many as one process does. */
    private const ROUTES = 500;

    private Totals $totals;

    public function __construct()
    {
        $this->totals = new Totals(self::ROUTES);
    }

    /**
     * Of one that goes on: its routes are counted where they will be when it is no more, or their counts would fall then.
     *
     * @param string $counted {@see HttpServerStatistics::toJson()}
     */
    public function heard(string $counted): void
    {
        self::read($counted, $this->totals->knowRoutes(...));
    }

    /** @param string $counted the last that it has told, {@see HttpServerStatistics::toJson()} */
    public function add(string $counted): void
    {
        self::read($counted, $this->totals->addCounts(...));
    }

    public function totals(): Totals
    {
        return $this->totals;
    }

    /** @param \Closure(HttpServerStatistics): void $take */
    private static function read(string $counted, \Closure $take): void
    {
        try {
            $take(HttpServerStatistics::fromJson($counted));
        } catch (\JsonException|\Error) {
            // Nothing that comes from such a process must end this one.
        }
    }
}
