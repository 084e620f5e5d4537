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
        $this->totals = new Totals();
    }

    /** @param string $counted the last that it has told, {@see HttpServerStatistics::toJson()} */
    public function add(string $counted): void
    {
        try {
            $this->totals->addCounts(HttpServerStatistics::fromJson($counted));
        } catch (\JsonException|\Error) {
            return; // nothing that came from such a process must end this one
        }
        foreach (\array_slice($this->totals->routes, self::ROUTES, null, true) as $name => $figures) {
            unset($this->totals->routes[$name]);
            $others = $this->totals->routes['other'] ?? [0, 0.0, 0];
            $this->totals->routes['other'] = [$others[0] + $figures[0], $others[1] + $figures[1], $others[2] + $figures[2]];
        }
    }

    public function totals(): Totals
    {
        return $this->totals;
    }
}
