<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Support\BarChart;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Series;

/** Requests that each run ten sleeping statements concurrently. */
final readonly class Sleeping
{
    private const SLEEPS_PER_REQUEST = 10;

    /** Factor for the number of clients. */
    private const CLIENT_FACTOR = 2;

    public function __construct(private Bench $bench) {}

    public function run(): void
    {
        $this->compare(1);
        $this->compare(self::CLIENT_FACTOR * $this->bench->options->clients);
    }

    private function compare(int $clients): void
    {
        // Plain PHP does not have this request.
        $contestants = [Contestant::Spindle, ...$this->bench->fpmPeers(withPlain: false)];
        $connections = $clients === 1 ? self::SLEEPS_PER_REQUEST : $this->bench->options->connections;
        $series = [];
        foreach ($contestants as $one) {
            $of = fn(?Checkout $checkout): Setup
                => $this->bench->setup($one, connections: $connections, checkout: $checkout);
            foreach ($this->bench->ofEach($one, $of) as $setup) {
                $measure = fn(Served $served): Outcome => $this->measure($served, $clients);
                $series[] = $this->bench->series($setup, $measure, "sleep, {$clients} clients");
            }
        }
        $title = \sprintf(
            'pg_sleep(1) %d times in each request: %d %s, %d connections for a process',
            self::SLEEPS_PER_REQUEST,
            $clients,
            $clients === 1 ? 'client' : 'clients at once',
            $connections,
        );
        $this->bench->report->table($title, $this->bench->rounds($series), [
            Column::median('seconds', 2),
            Column::range(2),
            Column::raw('connections', 'connections', 0),
            Column::megabytes('MB', 'memory'),
        ], Metric::figure('s', 2));
        $this->bench->report->chart(BarChart::svg(
            "Seconds: {$title}",
            Bench::figures($series, static fn(Series $one): ?float => $one->statistics()?->median),
            2,
        ));
    }

    private function measure(Served $served, int $clients): Outcome
    {
        $begin = hrtime(true);
        $bodies = Requests::get($served->address, '/sleep?n=' . self::SLEEPS_PER_REQUEST, $clients);
        $seconds = (hrtime(true) - $begin) / 1e9;
        $slept = $uuids = [];
        foreach ($bodies as $body) {
            $answers = json_decode($body, true);
            $slept[] = \is_array($answers)
                ? array_sum(array_filter(array_column($answers, 'affected'), is_int(...)))
                : 0;
            $uuids = [...$uuids, ...(\is_array($answers) ? array_column($answers, 'uuid') : [])];
        }
        $wanted = self::SLEEPS_PER_REQUEST * $clients;
        $problems = array_sum($slept) === $wanted && \count(array_unique($uuids, \SORT_REGULAR)) === $wanted
            ? []
            : [\sprintf('%d of %d were answered, with %d sleeps', \count($bodies), $clients, array_sum($slept))];

        return new Outcome(
            $seconds,
            ['connections' => $this->bench->database->connections(), 'memory' => $served->processes->memory()],
            $problems,
        );
    }
}
