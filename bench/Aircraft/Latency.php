<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Support\BarChart;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

/** The load of {@see Crud} with a distant database. A process of FPM waits for each of its answers. */
final readonly class Latency
{
    /** Factor for the number of clients, by milliseconds of latency. */
    private const CLIENT_FACTORS = [5 => 1, 50 => 8];

    /** Largest duration of the warm-up and of a trial, in seconds. */
    private const MAX_WARM_UP_SECONDS = 1.0;

    /** The memory of one more worker is calculated from these two numbers. FPM never gets fewer than MIN_WORKERS. */
    private const MIN_WORKERS = 2;
    private const MORE_WORKERS = 8;

    public function __construct(private Bench $bench) {}

    public function run(): void
    {
        foreach (self::CLIENT_FACTORS as $milliseconds => $times) {
            $far = new FarDatabase($this->bench->database->endpoint(), $milliseconds / 1e3);
            try {
                $this->compare(
                    $milliseconds,
                    $far,
                    new Load($this->bench->database, $times * $this->bench->options->clients),
                );
            } finally {
                $far->close();
            }
        }
    }

    private function compare(int $milliseconds, FarDatabase $far, Load $load): void
    {
        $context = "{$milliseconds} ms";
        $spindle = $this->bench->setup(
            Contestant::Spindle,
            $far->endpoint,
            connections: $this->bench->options->connections,
        );
        $other = $this->bench->options->entrants->other();
        [$fits, $setups] = [[], [$spindle]];
        $peers = $this->bench->fpmPeers(withPlain: true);
        $memory = $peers === [] ? 0 : $this->memory($spindle, $load);
        foreach ($peers as $peer) {
            [$first, $more] = array_map(
                fn(int $workers): int => $this->memory($this->bench->setup($peer, $far->endpoint, $workers), $load),
                [self::MIN_WORKERS, self::MORE_WORKERS],
            );
            $each = max(1, ($more - $first) / (self::MORE_WORKERS - self::MIN_WORKERS));
            $workers = max(self::MIN_WORKERS, self::MIN_WORKERS + (int) floor(($memory - $first) / $each));
            $fits[] = [$workers, $each];
            $setups[] = $this->bench->setup($peer, $far->endpoint, $workers);
        }
        if ($other !== null) {
            $connections = $this->bench->options->connections;
            $setups[] = $this->bench->setup(
                Contestant::Spindle,
                $far->endpoint,
                connections: $connections,
                checkout: $other,
            );
        }
        Rounds::say('');
        $series = array_map(
            fn(Setup $setup): Series
                => $this->bench->series(
                    $setup,
                    fn(Served $served): Outcome => $this->measure($served, $load, $far),
                    $context,
                ),
            $setups,
        );
        $this->bench->report->table(
            "Create, read, update, delete with {$milliseconds} ms round trip to the database: {$load->clients} clients,"
                . " FPM with as many workers as fit into Spindle's memory, at least " . self::MIN_WORKERS,
            $this->bench->rounds($series),
            [
                Column::median('cycles/s', 1),
                Column::range(1),
                Column::ratioOf('Spindle ÷ it', $series[0]),
                Column::raw('p50 ms', 'p50', 1),
                Column::raw('p99 ms', 'p99', 1),
                Column::raw('CPU ms a cycle', 'cpu', 3),
                Column::megabytes('MB', 'memory'),
                Column::raw('connections', 'connections', 0),
                Column::percent('client, % of a core', 'client'),
                Column::percent('the delay, %', 'line'),
            ],
            Metric::figure('cycles/s', 1),
            Metric::cpu(['cpu'], 1e3),
        );
        $this->bench->report->chart(BarChart::svg(
            "Cycles a second, {$milliseconds} ms on the way to the database and back",
            Bench::figures($series, static fn(Series $one): ?float => $one->statistics()?->median),
            1,
        ));
        $this->reportNeeds($milliseconds, $series, $fits);
    }

    /** @return int peak memory of all processes under load, in bytes */
    private function memory(Setup $setup, Load $load): int
    {
        Rounds::say("{$setup->label()}: its memory");

        try {
            return (int) $this->bench->with(
                $setup,
                fn(Served $served): Outcome
                    => $load->last($served, min(2 * self::MAX_WARM_UP_SECONDS, $this->bench->options->seconds)),
            )->raw['memory'];
        } catch (\RuntimeException) {
            return 0; // the measurement will report the reason
        }
    }

    private function measure(Served $served, Load $load, FarDatabase $far): Outcome
    {
        $before = $this->bench->database->count();
        $load->last($served, min(self::MAX_WARM_UP_SECONDS, $this->bench->options->seconds));
        // A server may still process requests of disconnected clients. It answers this one after them.
        $served->isRight();
        $cpu = $far->cpu();
        $outcome = $load->last($served, $this->bench->options->seconds);
        $line = ($far->cpu() - $cpu) / max(1e-3, (float) $outcome->raw['seconds']);
        $served->isRight();
        $left = $this->bench->database->count() - $before;
        $most = 2 * $load->clients; // per client, one from the warm-up and one from the measurement

        return new Outcome($outcome->figure, $outcome->raw + ['line' => $line], [
            ...$outcome->problems,
            ...($left >= 0 && $left <= $most ? [] : ["{$left} aircraft are left, of {$most} at most"]),
        ], $outcome->more);
    }

    /**
     * Prints how many workers FPM would need to be as fast, if a worker cost only memory.
     *
     * @param list<Series>             $series
     * @param list<array{int, float}>  $fits   number of workers, and bytes of each further one
     */
    private function reportNeeds(int $milliseconds, array $series, array $fits): void
    {
        $rate = $series[0]->statistics()?->median;
        $own = $series[0]->medianOf('memory');
        $rows = [];
        foreach ($fits as $i => [$workers, $each]) {
            $theirs = $series[$i + 1]->statistics()?->median;
            $memory = $series[$i + 1]->medianOf('memory');
            if ($rate !== null && $own !== null && $theirs > 0.0 && $memory !== null) {
                $needed = max($workers, (int) ceil($rate / ($theirs / $workers)));
                $bytes = $memory + ($needed - $workers) * $each;
                $rows[] = [
                    $series[$i + 1]->label,
                    (string) $needed,
                    number_format($bytes / (1 << 20), 1),
                    number_format($own / $bytes, 2),
                ];
            }
        }
        if ($rows !== []) {
            $this->bench->report->rows(
                "What FPM would need for Spindle's rate at {$milliseconds} ms. Extrapolated: each further worker is"
                    . ' assumed to make as many cycles and to need as much memory as the measured ones, and no CPU',
                ['', 'workers', 'MB', "Spindle's MB ÷ that"],
                $rows,
            );
        }
    }
}
