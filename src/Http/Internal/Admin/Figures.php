<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\HttpServerStatistics;

/** What processes do, and have done. */
final readonly class Figures
{
    public Totals $totals;

    /**
     * @param list<HttpServerStatistics> $processes of this moment, one for each that has answered
     * @param Totals                     $others    what all others had counted: a total that falls is taken for a restart of all (https://prometheus.io/docs/concepts/metric_types/#counter)
     */
    public function __construct(public array $processes, Totals $others = new Totals())
    {
        $this->totals = clone $others;
        array_map($this->totals->add(...), $processes);
    }

    /** Whether one takes requests at least. */
    public function isReady(): bool
    {
        return \in_array(false, array_column($this->processes, 'stopping'), true);
    }
}
