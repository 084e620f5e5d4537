<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;
use Spindle\Worker\WorkerContext;

/** Prints a table per measurement, with its contestants in alternating rounds. */
final readonly class TaskComparison
{
    /** Divisors of the number of tasks for slow contestants, which is possible because rates are compared. */
    private const DIVISORS = [
        'bulk' => ['amp' => 50],
        'objects' => ['amp' => 20, Python::EXECUTOR => 10],
    ];

    /** Prefix of the names of Spindle's contestants. */
    private const SPINDLE = 'spindle-';

    private TaskProcess $process;
    private Report $report;

    public function __construct(private TaskOptions $options)
    {
        $this->process = new TaskProcess($options);
        $this->report = new Report($options->toArray(), $options->entrants);
    }

    /** Measures, prints, and writes the raw data into a file if one is given. */
    public function run(string $json = ''): void
    {
        foreach ($this->options->only as $what) {
            match ($what) {
                TaskMeasurement::Bulk => array_map($this->bulk(...), $this->options->workers),
                TaskMeasurement::Single => $this->single(),
                TaskMeasurement::Objects => $this->objects(),
                TaskMeasurement::Mix => $this->mix(),
                TaskMeasurement::Cpu => $this->cpu(),
                TaskMeasurement::Echo => $this->echo(),
                TaskMeasurement::Memory => $this->memory(),
                TaskMeasurement::Start => $this->start(),
                TaskMeasurement::Death => $this->death(),
            };
        }
        $this->report->finish($json);
    }

    private function bulk(int $workers): void
    {
        $what = TaskMeasurement::Bulk;
        $names = [...$this->spindle(true), ...$this->peers('amp', Python::POOL, Python::EXECUTOR)];
        $series = $this->measured($what, $this->series($what, $names, $workers), $this->options->rounds);
        $this->report->table("{$what->title()}, workers: {$workers}", $series, [
            Column::median('tasks/s'),
            Column::range(),
            Column::ratioTo('÷ ' . $series[0]->label, $series[0]),
            Column::ratioOf('Spindle ÷ it', $series[0]),
            self::microseconds('CPU µs each'),
            self::megabytes(),
        ], Metric::figure('tasks/s'), self::cpuEach());
    }

    private function single(): void
    {
        $what = TaskMeasurement::Single;
        $series = [];
        foreach ($this->spindle(false) as $name) {
            $label = TaskContestants::named($name)->label;
            $ways = [["{$label}, a function's name", false], ["{$label}, a static closure", true]];
            $count = $this->count($what, $name);
            foreach ($this->options->entrants->some($ways) as [$title, $closure]) {
                foreach ($this->options->entrants->checkouts as $checkout) {
                    $series[] = $this->process->series(
                        $what,
                        $name,
                        $count,
                        2,
                        $what->value,
                        $title,
                        $closure,
                        $checkout,
                    );
                }
            }
        }
        $series = $this->measured(
            $what,
            [...$series, ...$this->series($what, $this->peers('amp', Python::EXECUTOR), 2)],
            $this->options->rounds,
        );
        $this->report->table($what->title(), $series, [
            Column::median('µs', 1),
            Column::range(1),
            Column::figure('tasks/s', static fn(Series $one): ?float => $one->medianOf('rate'), 0),
            Column::ratioTo('÷ ' . $series[0]->label, $series[0]),
            self::microseconds('CPU µs each'),
        ], Metric::raw('tasks/s', 'rate'), self::cpuEach());
    }

    private function objects(): void
    {
        $what = TaskMeasurement::Objects;
        $names = [...$this->spindle(false), ...$this->peers('amp', Python::EXECUTOR)];
        $series = $this->measured($what, $this->series($what, $names, 2), $this->options->rounds);
        $this->report->table($what->title(), $series, [
            Column::median('tasks/s'),
            Column::range(),
            Column::ratioOf('Spindle ÷ it', $series[0]),
            self::microseconds('CPU µs each'),
            self::megabytes(),
        ], Metric::figure('tasks/s'), self::cpuEach());
    }

    private function mix(): void
    {
        $what = TaskMeasurement::Mix;
        $names = [...$this->limit('forks'), ...$this->spindle(true), ...$this->peers('amp', Python::POOL)];
        $series = $this->measured($what, $this->series($what, $names, 2), $this->options->rounds);
        $count = $this->count($what, '');
        $long = (int) ceil($count / Work::TASKS_PER_LONG_TASK);
        $ideal = Series::constant('ideal', ($long * Work::LONG_SECONDS + ($count - $long) * Work::SHORT_SECONDS) / 2);
        for ($round = 1; $round <= $this->options->rounds; ++$round) {
            $ideal->measure($round);
        }
        $columns = [Column::median('s', 3), Column::range(3), Column::ratioTo('÷ ideal', $ideal)];
        if ($names[0] === 'forks') {
            $columns[] = Column::ratioTo('÷ plain forks', $series[0]);
        }
        $this->report->table(
            "{$what->title()}; {$count} tasks, workers: 2",
            [$ideal, ...$series],
            $columns,
            Metric::figure('s', 3),
            self::cpuEach(),
        );
    }

    private function cpu(): void
    {
        $what = TaskMeasurement::Cpu;
        $names = [
            ...$this->limit('sequential'), ...$this->spindle(false),
            ...$this->options->entrants->peers(['spindle-tasks', 'process-per-task']), ...$this->peers('pumice'),
        ];
        $spindle = $names[0] === 'sequential' ? 1 : 0;
        $series = $this->measured($what, $this->series($what, $names, 2), $this->options->rounds);
        $totals = array_unique(array_map(static fn(Series $one): string => (string) $one->medianOf('total'), $series));
        if (\count($totals) > 1) {
            $this->report->warn('the sums of the CPU-bound tasks differ: ' . implode(', ', $totals));
        }
        $this->report->table(
            "{$what->title()}: {$this->count($what, '')} tasks, workers: 2,"
                . " iterations of each: {$this->options->iterations}",
            $series,
            [
                Column::median('s', 3),
                Column::range(3),
                Column::ratioOf('times as fast as one after the other', $series[0]),
                Column::ratioTo('÷ ' . $series[$spindle]->label, $series[$spindle]),
                Column::figure('CPU s', static fn(Series $one): ?float => $one->medianOf('cpu'), 2),
            ],
            Metric::figure('s', 3),
            self::cpuEach(),
        );
    }

    private function echo(): void
    {
        $what = TaskMeasurement::Echo;
        $names = [
            ...$this->limit('socket'),
            ...$this->spindle(false),
            ...$this->peers('amp', Python::POOL, Python::EXECUTOR),
        ];
        $series = $this->measured($what, $this->series($what, $names, 2), $this->options->rounds);
        $this->report->table("{$what->title()}, {$this->options->bytes} bytes, workers: 2", $series, [
            Column::median('strings/s', 1),
            Column::range(1),
            Column::ratioTo('÷ ' . $series[0]->label, $series[0]),
            Column::figure('CPU ms each', static fn(Series $one): ?float => self::each($one, 1e3), 2),
            self::megabytes(),
        ], Metric::figure('strings/s', 1), self::cpuEach());
    }

    private function memory(): void
    {
        $what = TaskMeasurement::Memory;
        $series = $this->measured($what, $this->series($what, $this->spindle(true), 2), 1);
        $column = static fn(string $title, string $figure): Column
            => Column::figure($title, static fn(Series $one): ?float => $one->medianOf($figure), 1);
        $this->report->table(
            \sprintf('%s: MB of %s tasks, workers: 2', $what->title(), number_format($this->count($what, ''))),
            $series,
            [
                $column('peak after a tenth', 'first peak'),
                Column::median('at the end', 1),
                $column('of PHP after a tenth', 'first php'),
                $column('at the end', 'php'),
                Column::figure('tasks/s', static fn(Series $one): ?float => $one->medianOf('rate'), 0),
            ],
            Metric::figure('MB', 1),
            self::cpuEach(),
        );
    }

    private function start(): void
    {
        $what = TaskMeasurement::Start;
        $names = [...$this->everyContext(), ...$this->peers(Python::POOL, Python::EXECUTOR)];
        $series = $this->measured($what, $this->series($what, $names, 8), $this->options->rounds);
        $column = static fn(string $title, string $figure): Column
            => Column::figure($title, static fn(Series $one): ?float => $one->medianOf($figure), 1);
        $this->report->table("{$what->title()}, milliseconds", $series, [
            Column::median('of one task', 1),
            Column::range(1),
            $column('of 8 at once, the first', 'first'),
            $column('the last', 'last'),
        ], Metric::figure('ms', 1));
    }

    private function death(): void
    {
        $what = TaskMeasurement::Death;
        $series = $this->measured(
            $what,
            $this->series($what, [...$this->everyContext(), ...$this->peers(Python::EXECUTOR)], 2),
            $this->options->rounds,
        );
        $this->report->table("{$what->title()}, milliseconds", $series, [
            Column::median('median', 2),
            Column::range(2),
            Column::figure('slowest', static fn(Series $one): ?float => $one->medianOf('slowest'), 2),
        ], Metric::figure('ms', 2));
    }

    /**
     * @param list<Series> $series
     *
     * @return non-empty-list<Series> the same series
     */
    private function measured(TaskMeasurement $what, array $series, int $rounds): array
    {
        \assert($series !== []);

        return Rounds::run($series, $rounds) === []
            ? throw new \LogicException("No contestant takes part in {$what->value}")
            : $series;
    }

    /**
     * @param list<string> $names
     *
     * @return list<Series>
     */
    private function series(TaskMeasurement $what, array $names, int $workers): array
    {
        $series = [];
        foreach ($names as $name) {
            $checkouts = str_starts_with($name, self::SPINDLE) ? $this->options->entrants->checkouts : [null];
            array_push($series, ...array_map(
                fn(?Checkout $checkout): Series => $this->process->series(
                    $what,
                    $name,
                    $this->count($what, $name),
                    $workers,
                    "{$what->value}, workers: {$workers}",
                    checkout: $checkout,
                ),
                $checkouts,
            ));
        }

        return $series;
    }

    private function count(TaskMeasurement $what, string $contestant): int
    {
        return max(1, intdiv($this->options->count ?? $what->count(), self::DIVISORS[$what->value][$contestant] ?? 1));
    }

    /** @return non-empty-list<string> */
    private function spindle(bool $withMap): array
    {
        $names = [];
        foreach ($this->options->contexts as $context) {
            $name = self::SPINDLE . strtolower($context->name);
            array_push($names, $name, ...($withMap ? ["{$name}-map"] : []));
        }

        return $this->options->entrants->some($names);
    }

    /** @return non-empty-list<string> */
    private function everyContext(): array
    {
        $there = array_filter(
            WorkerContext::cases(),
            static fn(WorkerContext $context): bool => TaskContestants::missing($context) === null,
        );

        $names = array_values(array_map(
            static fn(WorkerContext $context): string => self::SPINDLE . strtolower($context->name),
            $there,
        ));
        \assert($names !== []);

        return $this->options->entrants->some($names);
    }

    /** @return list<string> */
    private function limit(string $name): array
    {
        return $this->options->entrants->peers($this->process->missing($name) === null ? [$name] : []);
    }

    /** @return list<string> the selected ones of these names that are available */
    private function peers(string ...$names): array
    {
        return $this->options->entrants->peers(array_values(array_filter(
            array_values($names),
            fn(string $name): bool
                => \in_array(explode('-', $name)[0], $this->options->peers, true)
                && $this->process->missing($name) === null,
        )));
    }

    /** Returns the CPU time while tasks run, without the start and end of the pool. */
    private static function cpuEach(): Metric
    {
        return Metric::cpu(['cpu running'], 1e6, 'count');
    }

    private static function microseconds(string $title): Column
    {
        return Column::figure($title, static fn(Series $one): ?float => self::each($one, 1e6), 2);
    }

    private static function megabytes(): Column
    {
        return Column::figure(
            'peak MB',
            static fn(Series $one): ?float => self::scaled($one->medianOf('peak'), 1 / (1 << 20)),
            0,
        );
    }

    /** Returns the CPU time per task. */
    private static function each(Series $series, float $factor): ?float
    {
        return self::scaled($series->medianOf('cpu'), $factor / max(1.0, $series->medianOf('count') ?? 1.0));
    }

    private static function scaled(?float $value, float $factor): ?float
    {
        return $value === null ? null : $value * $factor;
    }
}
