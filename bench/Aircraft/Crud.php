<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Postgres\Pgbench;
use Spindle\Bench\Support\BarChart;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\LineChart;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

/** Clients that add, read, change and delete aircraft as fast as the server answers. */
final readonly class Crud
{
    /** Numbers of workers to try for FPM, until two in a row bring no improvement. */
    private const TRIED_WORKERS = [2, 4, 6, 8, 12, 16, 24, 32];

    /** Divisors of the number of cycles: of a trial, and of the warm-up before each measurement. */
    private const TRIAL_DIVISOR = 10;
    private const WARM_UP_DIVISOR = 20;

    /** Database connections per process of Spindle. */
    private const CONNECTIONS = 10;

    private const RUNS = 3;

    /**
     * The statements of the application. pgbench has only numeric and predefined variables, but a number is a valid
     * number of an aircraft, too.
     */
    private const STATEMENTS = <<<'SQL'
        \set cycle :cycle + 1
        \set number :client_id * 1000000 + :cycle
        INSERT INTO aircraft (number, title, serial_number, assembly_date)
            VALUES (:number, :title, :serial, :date)
            RETURNING number, title, serial_number, assembly_date, added_at;
        SELECT number, title, serial_number, assembly_date, added_at FROM aircraft WHERE number = :number;
        UPDATE aircraft SET title = :changed, serial_number = :serial, assembly_date = :date
            WHERE number = :number
            RETURNING number, title, serial_number, assembly_date, added_at;
        DELETE FROM aircraft WHERE number = :number;
        SQL;

    private const VARIABLES = [
        'cycle' => '0',
        'title' => 'Airbus A320',
        'changed' => 'Airbus A321neo',
        'serial' => 'MSN 1',
        'date' => '1998-04-30',
    ];

    private Load $load;

    public function __construct(private Bench $bench)
    {
        $this->load = new Load($bench->database, $bench->options->clients);
    }

    public function run(): void
    {
        $this->findWorkers();
        $all = [Contestant::Spindle, Contestant::SpindleOnTwo, Contestant::SpindleAnnouncing];
        $series = [];
        foreach ([...$this->bench->options->entrants->some($all), ...$this->bench->peers] as $one) {
            $of = fn(?Checkout $checkout): Setup => $this->bench->setup($one, checkout: $checkout);
            foreach ($this->bench->ofEach($one, $of) as $setup) {
                $series[] = $this->bench->series($setup, $this->measure(...), 'crud');
            }
        }
        $series = [...$series, ...$this->ceilings()];
        $options = $this->bench->options;
        $this->bench->report->table(
            "Create, read, update, delete: {$options->clients} clients, {$options->cycles} cycles each",
            $this->bench->rounds($series),
            [
                Column::median('cycles/s'),
                Column::range(),
                Column::ratioOf('Spindle ÷ it', $series[0]),
                Column::raw('p50 ms', 'p50', 2),
                Column::raw('p99 ms', 'p99', 2),
                Column::raw('p99.9 ms', 'p999', 2),
                Column::raw('CPU ms a cycle', 'cpu', 3),
                Column::rawRatioOf('CPU, Spindle ÷ it', 'cpu', $series[0]),
                Column::megabytes('MB', 'memory'),
                Column::raw('connections', 'connections', 0),
                Column::percent('client, % of a core', 'client'),
            ],
            Metric::figure('cycles/s'),
            Metric::cpu(['cpu'], 1e3),
        );
        $this->bench->report->chart(BarChart::svg(
            'Cycles a second',
            Bench::figures($series, static fn(Series $one): ?float => $one->statistics()?->median),
        ));
        $this->bench->report->chart(BarChart::svg(
            'CPU of the server for a cycle, ms',
            Bench::figures($series, static fn(Series $one): ?float => $one->medianOf('cpu')),
            3,
        ));
        $this->bench->report->chart(BarChart::svg(
            'Proportional memory of all processes of the server, MB',
            Bench::figures($series, static fn(Series $one): ?float => self::megabytes($one->medianOf('memory'))),
            1,
        ));
        if (!$options->entrants->isFirstOnly) {
            $this->chartMemory();
        }
    }

    private function measure(Served $served): Outcome
    {
        $cycles = $this->bench->options->cycles;
        $warmUp = $this->load->count($served, max(2, intdiv($cycles, self::WARM_UP_DIVISOR)));
        $outcome = $this->load->count($served, $cycles);
        $problems = [
            ...array_map(static fn(string $problem): string => "in the warm-up: {$problem}", $warmUp->problems),
            ...$outcome->problems,
            ...($this->bench->database->isRestored() ? [] : ['the table is not in its initial state afterwards']),
        ];

        return new Outcome($outcome->figure, $outcome->raw, $problems, $outcome->more);
    }

    private function findWorkers(): void
    {
        $rows = [];
        foreach ($this->bench->fpmPeers(withPlain: true) as $peer) {
            $rates = [];
            foreach (self::TRIED_WORKERS as $workers) {
                Rounds::say("{$peer->label($workers)}: a trial");
                $cycles = max(2, intdiv($this->bench->options->cycles, self::TRIAL_DIVISOR));
                try {
                    $outcome = $this->bench->with(
                        $this->bench->setup($peer, workers: $workers),
                        function (Served $served) use ($cycles): Outcome {
                            $this->load->count($served, 2);

                            return $this->load->count($served, $cycles);
                        },
                    );
                } catch (\RuntimeException $failure) {
                    $outcome = new Outcome(0.0, [], [$failure->getMessage()]);
                }
                $rates[$workers] = $outcome->figure;
                $rows[] = [$peer->label($workers), number_format($outcome->figure), implode(', ', $outcome->problems)];
                if (array_search(max($rates), array_values($rates), true) < \count($rates) - 2) {
                    break;
                }
            }
            $this->bench->chooseWorkers($peer, (int) array_search(max($rates), $rates, true));
        }
        Rounds::say('');
        if ($rows !== []) {
            $this->bench->report->rows(
                'Numbers of workers that were tried; each contestant runs with its best number',
                ['', 'cycles/s', 'errors'],
                $rows,
            );
        }
    }

    /** @return list<Series> the same statements without a server in between */
    private function ceilings(): array
    {
        if (!$this->bench->options->hasPgbench() || Pgbench::missing() !== null) {
            return [];
        }
        $all = $this->bench->options->clients;

        return array_map(
            fn(int $connections): Series => Outcome::series(
                "pgbench, {$connections} connections, the same statements",
                fn(): Outcome => $this->ceiling($connections),
                'crud',
            ),
            array_values(array_unique([$all, min($all, self::CONNECTIONS)])),
        );
    }

    private function ceiling(int $connections): Outcome
    {
        $this->bench->database->restore();
        $cycles = intdiv($this->bench->options->cycles * $this->bench->options->clients, $connections);
        $result = (new Pgbench($this->bench->database->target(), $connections, false))->runScript(
            self::STATEMENTS,
            $cycles,
            self::VARIABLES,
        );
        $isRight = $result['right'] && $this->bench->database->isRestored();

        return new Outcome(
            $result['rate'],
            ['cycles' => $result['count'], 'connections' => $connections],
            $isRight ? [] : ['pgbench has not run everything, or the table is not in its initial state'],
        );
    }

    /** Charts the memory of a server over several runs. It should stay constant. */
    private function chartMemory(): void
    {
        [$series, $lines] = [[], []];
        foreach ([Contestant::Spindle, ...$this->bench->peers] as $contestant) {
            $setup = $this->bench->setup($contestant);
            $series[] = $one = $this->bench->series($setup, function (Served $served) use ($setup, &$lines): Outcome {
                [$outcome, $samples] = $this->runRepeatedly($served);
                $lines[$setup->label()] = array_map(
                    static fn(array $sample): array => [$sample[0], $sample[1] / (1 << 20)],
                    $samples,
                );

                return $outcome;
            }, 'memory');
            Rounds::say("memory: {$one->label}");
            $one->measure(1);
        }
        Rounds::say('');
        $this->bench->report->table('Memory over ' . self::RUNS . ' runs one after the other on one server', $series, [
            Column::median('growth, %', 2),
            Column::megabytes('MB after the first', 'run1', 2),
            Column::megabytes('after the second', 'run2', 2),
            Column::megabytes('after the third', 'run3', 2),
            Column::megabytes('at most', 'most', 2),
        ]);
        $this->bench->report->chart(LineChart::svg(
            'Proportional memory of all processes over ' . self::RUNS . ' runs, MB',
            $lines,
        ));
    }

    /** @return array{Outcome, list<array{float, int}>} */
    private function runRepeatedly(Served $served): array
    {
        [$raw, $samples, $problems, $before] = [[], [], [], 0.0];
        for ($run = 1; $run <= self::RUNS; ++$run) {
            $outcome = $this->load->count($served, $this->bench->options->cycles, 0.2);
            $problems = [...$problems, ...$outcome->problems];
            $raw["run{$run}"] = $served->processes->memory();
            /** @var list<array{float, int}> $seen */
            $seen = $outcome->more['samples'];
            $samples = [
                ...$samples,
                ...array_map(static fn(array $sample): array => [$before + $sample[0], $sample[1]], $seen),
            ];
            $before = $samples[\count($samples) - 1][0] ?? $before;
        }
        $raw['most'] = max([$raw['run1'], ...array_column($samples, 1)]);
        $growth = 100 * ($raw['run' . self::RUNS] - $raw['run1']) / max(1, $raw['run1']);

        return [new Outcome($growth, $raw, $problems, ['samples' => $samples]), $samples];
    }

    private static function megabytes(?float $bytes): ?float
    {
        return $bytes === null ? null : $bytes / (1 << 20);
    }
}
