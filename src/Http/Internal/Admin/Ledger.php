<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\HttpServerStatistics;

/**
 * Sums up processes that come and go: what one has counted still counts when it has ended, as a total that falls is taken
 * for a restart of all (https://prometheus.io/docs/concepts/metric_types/#counter).
 */
final class Ledger
{
    /** Processes that are told apart after their end: one that was silent for a while is no other when it speaks again. */
    private const ENDED = 64;

    /** @var array<string, HttpServerStatistics> what each process has told last, those of now behind others */
    private array $last = [];

    /** What others had counted. */
    private Totals $past;

    public function __construct()
    {
        $this->past = new Totals();
    }

    /** @param list<HttpServerStatistics> $processes that there are now */
    public function sum(array $processes): Totals
    {
        foreach ($processes as $process) {
            $key = "{$process->pid} {$process->started}";
            unset($this->last[$key]);
            $this->last[$key] = $process;
        }
        $ended = \array_slice($this->last, 0, \count($this->last) - \count($processes));
        foreach (\array_slice($ended, 0, max(0, \count($ended) - self::ENDED)) as $key => $process) {
            $this->past->addCounts($process);
            unset($this->last[$key], $ended[$key]);
        }
        $totals = clone $this->past;
        array_map($totals->addCounts(...), $ended);
        array_map($totals->add(...), $processes);

        return $totals;
    }
}
