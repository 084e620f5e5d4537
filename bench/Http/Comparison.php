<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Revolt\EventLoop;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Package;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

/** Prints a table per measurement, with its contestants in alternating rounds. */
final readonly class Comparison
{
    /** Numbers of connections for {@see Measurement::Connections}. */
    private const CONNECTIONS = [32, 256];

    /** Concurrent requests of {@see Measurement::Wait}. */
    private const WAIT_CONNECTIONS = 256;

    /** Connections of {@see Measurement::Idle} and {@see Measurement::Slow}. */
    private const IDLE_CONNECTIONS = 500;

    /** Idle connections of {@see Measurement::Crowd}: more than stream_select() can watch. */
    private const CROWD_CONNECTIONS = 1_100;

    private const PROCESSES = [1, 2];

    /** Share of a core above which the single-threaded client may limit a rate. */
    private const BUSY_CORE_SHARE = 0.9;

    private Wrk $wrk;
    private Throughput $throughput;
    private Servers $servers;
    private Report $report;

    /** @var list<Contestant> available contestants */
    private array $contestants;

    public function __construct(private ComparisonOptions $options)
    {
        $this->wrk = new Wrk();
        $this->throughput = new Throughput($this->wrk, $options->seconds);
        $this->servers = new Servers(
            $options->autoloaders,
            $options->headTimeout,
            \in_array(Measurement::Tls, $options->only, true) && self::hasTls(),
        );
        foreach ($options->contestants() as $one) {
            $one->find($options->autoloaders);
        }
        $this->contestants = array_values(array_filter(
            $options->contestants(),
            static fn(Contestant $one): bool => $one->missing() === null,
        ));
        $description = $this->describe();
        $this->report = new Report($options->toArray() + $description, $options->entrants);
        foreach ($description as $name => $text) {
            printf("%-8s %s\n", $name, $text);
        }
    }

    /** Measures, prints, and writes the raw data into a file if one is given. */
    public function run(string $json = ''): void
    {
        $this->reportMissing();
        foreach ($this->options->only as $what) {
            if ($what === Measurement::Tls && !self::hasTls()) {
                echo "\n{$what->title()}: not available: ext-openssl is not loaded\n";
                continue;
            }
            match ($what) {
                Measurement::One => $this->latency(),
                Measurement::Connections => array_map(
                    fn(int $connections) => $this->rates($what, $connections),
                    self::CONNECTIONS,
                ),
                Measurement::Wait => $this->rates($what, self::WAIT_CONNECTIONS),
                Measurement::Two => $this->processes(),
                Measurement::Psr7 => $this->responses(),
                Measurement::Collide => $this->collide(),
                Measurement::Crowd => $this->crowd(),
                Measurement::Idle => $this->idle(),
                Measurement::Soak => $this->soak(),
                Measurement::Slow => $this->slow(),
                default => $this->rates($what, $this->options->connections),
            };
        }
        $this->report->finish($json);
    }

    private function rates(Measurement $what, int $connections): void
    {
        $load = new Load($what->work(), $connections, isIdentical: $what === Measurement::TextSame);
        $series = $this->series(
            $what,
            fn(Server $server): Outcome => $this->throughput->rate($server, $load),
            "{$what->value}, {$connections} connections",
        );
        $this->table($series, "{$what->title()}, {$connections} connections", [
            Column::median('requests/s'),
            Column::range(),
            Column::ratioOf('Spindle ÷ it', $series[0]),
            ...self::costs($series[0]),
            ...($what->isStreamed() ? [Column::raw('bytes each', 'bytes', 0)] : []),
            Column::raw('p50 ms', 'p50', 2),
            Column::raw('p99 ms', 'p99', 2),
            ...self::memoryAndClient(),
        ], Metric::figure('requests/s'), self::cpuEach());
    }

    private function latency(): void
    {
        $what = Measurement::One;
        $load = new Load($what->work(), 1);
        $series = $this->series(
            $what,
            fn(Server $server): Outcome => $this->throughput->latency($server, $load),
            $what->value,
        );
        $this->table($series, $what->title(), [
            Column::median('p50 ms', 3),
            Column::range(3),
            Column::raw('p99 ms', 'p99', 3),
            Column::raw('requests/s', 'rate', 0),
            ...self::costs($series[0]),
            ...self::memoryAndClient(),
        ], Metric::figure('p50 ms', 3), self::cpuEach());
    }

    private function processes(): void
    {
        $what = Measurement::Two;
        $load = new Load($what->work(), $this->options->connections);
        $series = $alone = [];
        foreach ($this->options->entrants->checkouts as $checkout) {
            $own = array_map(fn(int $processes): Series => $this->one(
                $processes === 1 ? '1 process' : "{$processes} processes",
                fn(): Server => $this->servers->startProcesses($processes, $checkout),
                fn(Server $server): Outcome => $this->throughput->rate($server, $load),
                $what->value,
                $checkout,
            ), self::PROCESSES);
            foreach ($own as $one) {
                $series[] = $one;
                $alone[$one->label] = $own[0];
            }
        }
        $this->table($series, "{$what->title()}, {$load->connections} connections", [
            Column::median('requests/s'),
            Column::range(),
            Column::figure(
                '÷ one process',
                static fn(Series $one): ?float => $one->ratioTo($alone[$one->label])?->median,
                3,
            ),
            Column::raw('CPU µs each', 'cpu', 1),
            Column::percent('of the busiest process, %', 'busiest'),
            Column::raw('p50 ms', 'p50', 2),
            Column::raw('p99 ms', 'p99', 2),
            ...self::memoryAndClient(),
        ], Metric::figure('requests/s'), self::cpuEach());
    }

    private function responses(): void
    {
        $what = Measurement::Psr7;
        $load = new Load($what->work(), $this->options->connections);
        $series = $native = [];
        foreach ($this->options->entrants->checkouts as $checkout) {
            $own = array_map(fn(string $label, Work $work): Series => $this->one(
                $label,
                fn(): Server => $this->servers->start(Contestant::Spindle, $work, checkout: $checkout),
                fn(Server $server): Outcome => $this->throughput->rate($server, $load),
                $what->value,
                $checkout,
            ), ['native', Package::label('nyholm/psr7')], [Work::Text, Work::Nyholm]);
            foreach ($own as $one) {
                $series[] = $one;
                $native[$one->label] = $own[0];
            }
        }
        $this->table($series, "{$what->title()}, {$load->connections} connections", [
            Column::median('requests/s'),
            Column::range(),
            Column::figure(
                '÷ native',
                static fn(Series $one): ?float => $one->ratioTo($native[$one->label])?->median,
                3,
            ),
            Column::raw('CPU µs each', 'cpu', 1),
            Column::raw('p50 ms', 'p50', 2),
            Column::raw('p99 ms', 'p99', 2),
            ...self::memoryAndClient(),
        ], Metric::figure('requests/s'), self::cpuEach());
    }

    private function collide(): void
    {
        $what = Measurement::Collide;
        $this->table($this->series($what, (new Collide())->measure(...), $what->value), $what->title(), [
            Column::median('CPU ms each', 1),
            Column::range(1),
            Column::raw('ms each', 'milliseconds', 1),
        ], Metric::figure('CPU ms each', 1));
    }

    private function crowd(): void
    {
        $what = Measurement::Crowd;
        $crowd = new Crowd(self::CROWD_CONNECTIONS);
        $this->table(
            $this->series($what, $crowd->measure(...), $what->value),
            "{$what->title()}: " . number_format(self::CROWD_CONNECTIONS),
            [
                Column::median('p99 ms', 2),
                Column::range(2),
                Column::raw('p50 ms', 'p50', 2),
            ],
            Metric::figure('p99 ms', 2),
        );
    }

    private function idle(): void
    {
        $what = Measurement::Idle;
        $idle = new Idle($this->throughput, self::IDLE_CONNECTIONS);
        $series = $this->series($what, $idle->measure(...), $what->value);
        $this->table($series, "{$what->title()}: " . self::IDLE_CONNECTIONS, [
            Column::median('KB each', 2),
            Column::range(2),
            Column::megabytes('MB before', 'before'),
            Column::megabytes('MB with them', 'after'),
        ], Metric::figure('KB each', 2));
    }

    private function soak(): void
    {
        $what = Measurement::Soak;
        $soak = new Soak($this->wrk, $this->options->count);
        $connections = $this->options->connections;
        $series = array_map(fn(Checkout $checkout): Series => $this->one(
            Contestant::Spindle->label(),
            fn(): Server => $this->servers->start(Contestant::Spindle, $what->work(), checkout: $checkout),
            static fn(Server $server): Outcome => $soak->measure($server, $connections),
            $what->value,
            $checkout,
        ), $this->options->entrants->checkouts);
        $this->report->table(
            \sprintf(
                '%s, %d connections: %s requests',
                $what->title(),
                $connections,
                number_format($this->options->count),
            ),
            Rounds::run($series, 1),
            [
                Column::median('growth, %', 2),
                Column::megabytes('MB after a tenth', 'tenth', 2),
                Column::megabytes('at the end', 'end', 2),
                Column::megabytes('at most', 'most', 2),
                Column::raw('requests', 'requests', 0),
                Column::raw('requests/s', 'rate', 0),
            ],
            Metric::raw('requests/s', 'rate'),
        );
    }

    private function slow(): void
    {
        $what = Measurement::Slow;
        $load = new Load($what->work(), $this->options->connections);
        $slow = new Slow($this->throughput, $this->wrk, $this->options->seconds, self::IDLE_CONNECTIONS);
        $series = $this->series(
            $what,
            static fn(Server $server): Outcome => $slow->measure($server, $load),
            $what->value,
        );
        $this->table(
            $series,
            \sprintf(
                '%s: %d and %d, a head timeout of %d s',
                $what->title(),
                $load->connections,
                self::IDLE_CONNECTIONS,
                $this->options->headTimeout,
            ),
            [
                Column::median('p99 ÷ without them', 2),
                Column::range(2),
                Column::raw('p99 ms without', 'before', 2),
                Column::raw('with them', 'during', 2),
                Column::raw('closed', 'closed', 0),
                Column::raw('last one closed after, s', 'last', 1),
            ],
            Metric::figure('p99 ÷ without', 2),
        );
    }

    /**
     * @param \Closure(Server): Outcome $measure
     *
     * @return non-empty-list<Series> Spindle's series is the first
     */
    private function series(Measurement $what, \Closure $measure, string $context): array
    {
        $series = [];
        foreach ($this->contestants as $contestant) {
            $checkouts = $contestant === Contestant::Spindle ? $this->options->entrants->checkouts : [null];
            foreach ($contestant->takesPart($what) ? $checkouts : [] as $checkout) {
                $withTls = $what === Measurement::Tls;
                $start = fn(): Server => $this->servers->start($contestant, $what->work(), $withTls, $checkout);
                $series[] = $this->one($contestant->label(), $start, $measure, $context, $checkout);
            }
        }
        \assert($series !== []);

        return $series;
    }

    /**
     * @param \Closure(): Server        $start
     * @param \Closure(Server): Outcome $measure
     */
    private function one(
        string $label,
        \Closure $start,
        \Closure $measure,
        string $context,
        ?Checkout $checkout,
    ): Series {
        return Outcome::series($label, static function () use ($start, $measure): Outcome {
            $server = $start();
            try {
                return $measure($server);
            } finally {
                $server->stop();
            }
        }, $context, $checkout);
    }

    /**
     * @param list<Series> $series
     * @param list<Column> $columns
     */
    private function table(array $series, string $title, array $columns, Metric $figure, ?Metric $cpu = null): void
    {
        $this->report->table($title, Rounds::run($series, $this->options->rounds), $columns, $figure, $cpu);
        $limited = array_filter(
            $series,
            static fn(Series $one): bool => ($one->medianOf('client') ?? 0.0) > self::BUSY_CORE_SHARE,
        );
        if ($limited !== []) {
            $this->report->warn(
                'the client was at its limit for '
                    . implode(', ', array_map(static fn(Series $one): string => $one->name(), $limited))
                    . ': compare their CPU time for each request, not their rate',
            );
        }
    }

    /** @return list<Column> CPU cost of a request, and how it compares with Spindle's */
    private static function costs(Series $spindle): array
    {
        return [
            Column::raw('CPU µs each', 'cpu', 1),
            Column::rawRatioOf('CPU, Spindle ÷ it', 'cpu', $spindle),
        ];
    }

    private static function cpuEach(): Metric
    {
        return Metric::cpu(['cpu'], 1.0);
    }

    /** @return list<Column> peak memory of the server's processes, and the client's share of a core */
    private static function memoryAndClient(): array
    {
        return [
            Column::megabytes('MB', 'memory'),
            Column::percent('client, % of a core', 'client'),
        ];
    }

    /** @return array<string, string> the client, and relevant settings of the servers */
    private function describe(): array
    {
        return [
            'Client' => $this->wrk->describe() . ', 1 thread, on the same machine',
            'Loop' => (new \ReflectionClass(EventLoop::getDriver()))->getShortName(),
        ] + (\in_array(Contestant::Fpm, $this->contestants, true) ? ['FPM' => Fpm::describe()] : []);
    }

    private function reportMissing(): void
    {
        $reasons = [];
        foreach ($this->options->contestants() as $one) {
            if ($one->missing() !== null) {
                $reasons[] = "{$one->label()}: not available: {$one->missing()}\n";
            }
        }
        echo $reasons === [] ? '' : "\n" . implode('', $reasons);
    }

    private static function hasTls(): bool
    {
        return \extension_loaded('openssl');
    }
}
