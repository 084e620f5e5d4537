<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\HttpServerStatistics;

final readonly class CombinedStatistics
{
    public Totals $totals;

    /**
     * @param list<HttpServerStatistics> $processes one for each process that has answered
     * @param Totals $others last known counters of all other processes, including ended processes. Without these
     *     counters, totals could decrease. Prometheus would treat the decrease as a restart:
     *     https://prometheus.io/docs/concepts/metric_types/#counter
     */
    public function __construct(public array $processes, Totals $others = new Totals())
    {
        $this->totals = clone $others;
        array_map($this->totals->add(...), $processes);
    }

    public function isReady(): bool
    {
        return \in_array(false, array_column($this->processes, 'stopping'), true);
    }
}
