<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

/** Prints a table per measurement, with its contestants in alternating rounds. */
final readonly class Comparison
{
    /** Divisors of the number of operations for slow contestants, which is possible because rates are compared. */
    private const DIVISORS = [
        'pgsql' => 2,
        'pgsql-blocking' => 4,
        'pdo' => 4,
        'amp' => 10,
    ];

    /** Bases of the ratios, by label, with their column titles. */
    private const BASES = [
        'pgsql, 8' => '÷ ext-pgsql by hand, 8',
        'pgsql-blocking, 1' => '÷ ext-pgsql, blocking',
        'pgbench, 8' => '÷ pgbench',
    ];

    /** Numbers of connections of contestants without fibers, if not one. */
    private const WITHOUT_FIBERS = ['pgsql' => [1, 8], 'pgbench' => [8], 'pgbench-pipeline' => [8]];

    private MeasuredProcess $process;
    private Report $report;

    public function __construct(private ComparisonOptions $options, private Server $server)
    {
        $description = $server->describe();
        $this->process = new MeasuredProcess($server, $options->limit);
        $this->report = new Report($options->toArray() + ['server' => $description], $options->entrants);
        foreach ($description as $name => $text) {
            printf("%-8s %s\n", $name, $text);
        }
    }

    /** Measures, prints, and writes the raw data into a file if one is given. */
    public function run(string $json = ''): void
    {
        $this->reportMissing();
        foreach ($this->options->only as $what) {
            match ($what) {
                Measurement::Select, Measurement::Unit, Measurement::Update => array_map(
                    fn(Variant $variant) => $this->rates($what, $variant),
                    $what->variants(),
                ),
                Measurement::Cells => $this->cells(),
                Measurement::Far => $this->far(),
                Measurement::Rows => $this->rows(),
                Measurement::Parameter => $this->parameter(),
                Measurement::Stream, Measurement::Copy => array_map(
                    fn(Variant $variant) => $this->memory($what, $variant),
                    $what->variants(),
                ),
                Measurement::Sleep => $this->sleep(),
                Measurement::Gaps => $this->gaps(),
                Measurement::Cancel => $this->endings(),
                Measurement::Acquire => $this->acquire(),
            };
        }
        $this->report->finish($json);
    }

    private function rates(Measurement $what, Variant $variant): void
    {
        $series = $bases = [];
        foreach ($this->rateJobs($what, $variant) as $job) {
            $shape = $job->contestant->hasFibers() ? $job->shape : $job->shape->connections;
            $measured = $this->series(
                $job,
                "{$job->contestant->label()}, {$shape}",
                "{$what->value}, {$variant->value}",
            );
            array_push($series, ...$measured);
            $base = self::BASES["{$job->contestant->value}, {$job->shape->connections}"] ?? null;
            if ($base !== null) {
                $bases[] = Column::ratioTo($base, $measured[0]);
            }
        }
        $unit = match ($what) {
            Measurement::Select => 'queries/s',
            Measurement::Unit => 'units/s',
            default => $variant === Variant::Transaction ? 'transactions/s' : 'updates/s',
        };
        $this->table(
            $series,
            $variant === Variant::Single && $what !== Measurement::Update
                ? $what->title()
                : "{$what->title()}; {$variant->label()}",
            [
                Column::median($unit),
                Column::range(),
                ...$bases,
                self::each('CPU µs each', 'cpu', 1e6),
                self::each('of the server', 'server', 1e6),
            ],
            Metric::figure($unit),
            self::cpuEach(),
        );
    }

    /** @return iterable<Job> */
    private function rateJobs(Measurement $what, Variant $variant): iterable
    {
        foreach ($this->available(Contestant::cases()) as $contestant) {
            if ($contestant === Contestant::PgbenchPipeline && $what !== Measurement::Select) {
                continue;
            }
            $withoutFibers = array_map(
                static fn(int $connections): Shape => new Shape($connections, 1),
                self::WITHOUT_FIBERS[$contestant->value] ?? [1],
            );
            $shapes = $contestant->hasFibers()
                ? $this->options->entrants->some($this->options->shapes($what))
                : $withoutFibers;
            foreach ($shapes as $shape) {
                yield $this->job($what, $contestant, $variant, $shape);
            }
        }
    }

    /** Prints each combination, and its ratio to the best number of connections for the same number of fibers. */
    private function cells(): void
    {
        $what = Measurement::Cells;
        $series = $alike = [];
        foreach ($this->options->entrants->some($this->options->shapes($what)) as $shape) {
            foreach ($this->series(
                $this->job($what, Contestant::Pool, Variant::Single, $shape),
                "Spindle, pool, {$shape}",
                $what->value,
            ) as $index => $one) {
                $series[] = $one;
                $alike["{$index}, {$shape->fibers}"][] = $one;
            }
        }
        $bases = [];
        foreach ($this->available([Contestant::Pgsql]) as $peer) {
            $bases = $this->series(
                $this->job($what, $peer, Variant::Single, new Shape(8, 1)),
                "{$peer->label()}, 8",
                $what->value,
            );
        }
        $this->table([...$series, ...$bases], $what->title(), [
            Column::median('queries/s'),
            Column::range(),
            Column::figure(
                '÷ the best for this number of fibers',
                static fn(Series $one): ?float => self::ratioToBest($one, $alike),
                2,
            ),
            ...array_map(static fn(Series $base): Column => Column::ratioTo('÷ ext-pgsql by hand, 8', $base), $bases),
            self::each('CPU µs each', 'cpu', 1e6),
            self::each('of the server', 'server', 1e6),
        ], Metric::figure('queries/s'), self::cpuEach());
    }

    private function far(): void
    {
        $what = Measurement::Far;
        $this->table(
            $this->series(
                $this->job($what, Contestant::Pool, Variant::Single, new Shape(2, $this->options->count($what))),
                Contestant::Pool->label(),
                $what->value,
            ),
            "{$what->title()}: {$this->options->count($what)}",
            [Column::median('ms until all are answered', 1), Column::range(1)],
            Metric::figure('ms', 1),
        );
    }

    /** @param array<string, list<Series>> $groups series with the same number of fibers */
    private static function ratioToBest(Series $one, array $groups): ?float
    {
        foreach ($groups as $group) {
            if (\in_array($one, $group, true)) {
                $best = max(array_map(static fn(Series $other): float => $other->statistics()->median ?? 0.0, $group));

                return $best > 0 ? ($one->statistics()->median ?? 0.0) / $best : null;
            }
        }

        return null;
    }

    private function rows(): void
    {
        $what = Measurement::Rows;
        $series = $this->bulk($what, Variant::Single);
        $this->table($series, $what->title(), [
            Column::median('ms', 2),
            Column::range(2),
            ...$this->ratiosToPgsql($series, 'times as fast as ext-pgsql'),
            self::each('CPU ms each', 'cpu', 1e3),
            self::each('of the server', 'server', 1e3),
        ], Metric::figure('ms', 2), self::cpuEach());
    }

    private function parameter(): void
    {
        $what = Measurement::Parameter;
        $this->table($this->bulk($what, Variant::Single), "{$what->title()}, {$this->options->bytes} bytes", [
            Column::median('ms', 1),
            Column::range(1),
            self::figure('longest gap between ticks, ms', 'gap', 1),
            self::each('CPU ms', 'cpu', 1e3),
            self::each('of the server', 'server', 1e3),
            self::figure('peak MB', 'peak', 0, 1 / (1 << 20)),
        ], Metric::figure('ms', 1), self::cpuEach());
    }

    private function memory(Measurement $what, Variant $variant): void
    {
        $title = $variant === Variant::Single ? $what->title() : "{$what->title()}, {$variant->label()}";
        $series = $this->bulk($what, $variant);
        $this->table($series, \sprintf('%s: %s rows', $title, number_format($this->options->count($what))), [
            Column::median('rows/s'),
            Column::range(),
            ...array_map(
                static fn(Series $one): Column => Column::ratioTo('÷ ext-pgsql', $one),
                self::labelled($series, Contestant::Pgsql->shortLabel()),
            ),
            self::figure('growth at most, MB', 'growth', 1),
            self::each('CPU µs each', 'cpu', 1e6),
            self::each('of the server', 'server', 1e6),
        ], Metric::figure('rows/s'), self::cpuEach());
    }

    private function sleep(): void
    {
        $what = Measurement::Sleep;
        $count = $this->options->count($what);
        $series = array_merge(...array_map(
            fn(Contestant $contestant): array => $this->series(
                $this->job($what, $contestant, Variant::Single, new Shape($count, $count)),
                $contestant->label(),
                $what->value,
            ),
            $this->available(
                [Contestant::Pool, Contestant::Connections, Contestant::Pgsql, Contestant::Amp],
            ),
        ));
        $this->table(
            $series,
            "{$what->title()}: {$count}",
            [Column::median('s', 3), Column::range(3)],
            Metric::figure('s', 3),
            self::cpuEach(),
        );
    }

    private function gaps(): void
    {
        $what = Measurement::Gaps;
        $columns = [Column::median('longest gap, ms', 1), Column::range(1), self::figure('the whole, ms', 'took', 1)];
        $this->table($this->scenarios($what), $what->title(), $columns, Metric::figure('ms', 1));
        if ($this->server->target->tls === null) {
            echo Variant::Tls->label(), ": not available: --dsn is given, or ext-openssl is not loaded\n";
        }
    }

    private function endings(): void
    {
        $what = Measurement::Cancel;
        $this->table($this->scenarios($what), "{$what->title()}, milliseconds", [
            Column::median('median', 1),
            Column::range(1),
            self::figure('slowest', 'slowest', 1),
        ], Metric::figure('ms', 1));
    }

    private function acquire(): void
    {
        $what = Measurement::Acquire;
        $series = $this->series($this->job($what, Contestant::Pool), Contestant::Pool->label(), $what->value);
        $this->table($series, "{$what->title()}: {$this->options->count($what)} fibers", [
            Column::median('latest timeout, ms late', 2),
            Column::range(2),
            self::figure('the first', 'first', 2),
        ], Metric::figure('ms', 2));
        foreach ($series as $one) {
            $raw = $one->toArray()['raw'];
            $waited = end($raw)['waited'] ?? [];
            $histogram = self::histogram(\is_array($waited) ? $waited : []);
            echo "{$one->label}, number of fibers by time of waiting in the last round: {$histogram}\n";
        }
    }

    /** @return list<Series> */
    private function bulk(Measurement $what, Variant $variant): array
    {
        return array_merge(...array_map(
            fn(Contestant $contestant): array => $this->series(
                new Job(
                    $what,
                    $variant,
                    $contestant,
                    $this->options->count($what),
                    new Shape(1, 1),
                    $this->options->bytes,
                ),
                $contestant->shortLabel(),
                "{$what->value}, {$variant->value}",
            ),
            $this->available([Contestant::Connections, Contestant::Pgsql, Contestant::Pdo]),
        ));
    }

    /** @return list<Series> */
    private function scenarios(Measurement $what): array
    {
        $series = [];
        foreach ($what->variants() as $variant) {
            if ($variant === Variant::Tls && $this->server->target->tls === null) {
                continue;
            }
            $job = $this->job($what, Contestant::Connections, $variant);
            array_push($series, ...$this->series($job, $variant->label(), $what->value));
        }

        return $series;
    }

    /** @return non-empty-list<Series> one per checkout, for Spindle */
    private function series(Job $job, string $label, string $context): array
    {
        return array_map(
            fn(?Checkout $checkout): Series => $this->process->series($job, $label, $context, $checkout),
            $job->contestant->isSpindle() ? $this->options->entrants->checkouts : [null],
        );
    }

    private function job(
        Measurement $what,
        Contestant $contestant,
        Variant $variant = Variant::Single,
        Shape $shape = new Shape(1, 1),
    ): Job {
        $isRate = \in_array(
            $what,
            [Measurement::Select, Measurement::Cells, Measurement::Unit, Measurement::Update],
            true,
        );
        $fewer = $isRate
            ? max(
                self::DIVISORS[$contestant->value] ?? 1,
                $shape->fibers * $shape->connections === 1 ? 4 : 1,
                $variant === Variant::Transaction ? 4 : 1,
            )
            : 1;

        return new Job(
            $what,
            $variant,
            $contestant,
            max(1, intdiv($this->options->count($what), $fewer)),
            $shape,
            $this->options->bytes,
        );
    }

    /**
     * @param array<Contestant> $contestants
     *
     * @return list<Contestant> the selected ones that are available
     */
    private function available(array $contestants): array
    {
        // Spindle's series come before those of its peers.
        return $this->options->entrants->some(array_values(array_filter(
            $contestants,
            fn(Contestant $one): bool
                => ($one->peer() === null || \in_array($one->peer(), $this->options->peers, true))
                && $one->missing() === null,
        )));
    }

    private function reportMissing(): void
    {
        $reasons = [];
        foreach (Contestant::cases() as $one) {
            if (
                $one->missing() !== null
                && ($one->peer() === null || \in_array($one->peer(), $this->options->peers, true))
            ) {
                $reasons[] = "{$one->label()}: not available: {$one->missing()}\n";
            }
        }
        echo $reasons === [] ? '' : "\n" . implode('', $reasons);
    }

    /**
     * @param list<Series> $series
     * @param list<Column> $columns
     */
    private function table(array $series, string $title, array $columns, Metric $figure, ?Metric $cpu = null): void
    {
        $this->report->table($title, Rounds::run($series, $this->options->rounds), $columns, $figure, $cpu);
    }

    /**
     * @param list<Series> $series
     *
     * @return list<Column> empty without ext-pgsql
     */
    private function ratiosToPgsql(array $series, string $title): array
    {
        return array_map(
            static fn(Series $one): Column => Column::ratioOf($title, $one),
            self::labelled($series, Contestant::Pgsql->shortLabel()),
        );
    }

    /**
     * @param list<Series> $series
     *
     * @return list<Series>
     */
    private static function labelled(array $series, string $label): array
    {
        return array_values(array_filter($series, static fn(Series $one): bool => $one->label === $label));
    }

    /** Returns a column with a figure of the raw data. */
    private static function figure(string $title, string $name, int $decimals, float $factor = 1.0): Column
    {
        return Column::figure(
            $title,
            static fn(Series $one): ?float => self::scaled($one->medianOf($name), $factor),
            $decimals,
        );
    }

    /** Returns a column with a figure of the raw data, divided by the number of operations. */
    private static function each(string $title, string $name, float $factor): Column
    {
        return Column::figure(
            $title,
            static fn(Series $one): ?float
                => self::scaled($one->medianOf($name), $factor / max(1.0, $one->medianOf('count') ?? 1.0)),
            2,
        );
    }

    private static function cpuEach(): Metric
    {
        return Metric::cpu(['cpu'], 1e6, 'count');
    }

    private static function scaled(?float $value, float $factor): ?float
    {
        return $value === null ? null : $value * $factor;
    }

    /** @param array<array-key, mixed> $waited */
    private static function histogram(array $waited): string
    {
        $parts = [];
        foreach ($waited as $bound => $count) {
            if (\is_int($count) && $count > 0) {
                $parts[] = "{$bound}: {$count}";
            }
        }

        return $parts === [] ? 'nobody' : implode(', ', $parts);
    }
}
