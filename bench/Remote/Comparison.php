<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Revolt\EventLoop;
use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Package;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;
use Spindle\Bench\Support\UsageException;
use Spindle\Remote\Durability;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Remote\Testing\TemporaryRedisException;

/** Runs the selected measurements in turn. */
final class Comparison
{
    /** Number of values below which the 99th percentile is the largest one. */
    private const MIN_VALUES_FOR_P99 = 100;

    /** Factor for the tasks of a local pool, which would finish too soon to be timed. */
    private const LOCAL_FACTOR = 10;

    private const LOCAL = 'WorkerPool, this machine alone';

    /** Measurements that run in this process, so that another checkout can't take part. */
    private const PRESENT_CHECKOUT_ONLY = [Measurement::Recovery, Measurement::Backlog];

    public function __construct(private readonly ComparisonOptions $options) {}

    /**
     * Measures, prints, and writes the raw data into a file if one is given.
     *
     * @throws UsageException when a required program or package is missing
     */
    public function run(string $json = ''): void
    {
        $facts = self::describe();
        $report = new Report($this->options->toArray() + $facts, $this->options->entrants);
        foreach ($facts as $name => $text) {
            printf("%-8s %s\n", $name, $text);
        }
        foreach ($this->options->only as $what) {
            match ($what) {
                Measurement::Bulk => $this->bulk($report),
                Measurement::Single => $this->single($report),
                Measurement::Recovery => $this->recovery($report),
                Measurement::Backlog => $this->backlog($report),
            };
            if ($this->options->entrants->other() !== null && \in_array($what, self::PRESENT_CHECKOUT_ONLY, true)) {
                echo "\n{$what->value}: measured for this checkout only\n";
            }
            $report->write($json);
        }
        $report->finish($json);
    }

    private function bulk(Report $report): void
    {
        $series = $this->durabilities(Measurement::Bulk);
        $report->table(
            \sprintf(
                'No-op tasks in bulk, %s of them, one agent with %d workers',
                number_format($this->options->tasks),
                Rig::WORKERS,
            ),
            $series,
            [
                Column::median('tasks/s'),
                Column::range(),
                ...array_map(
                    static fn(Series $one): Column => Column::ratioTo("÷ {$one->label}", $one),
                    self::local($series),
                ),
                Column::raw('CPU µs each, of the script', 'cpu script', 1, 1e6),
                Column::raw('of the agent and workers', 'cpu workers', 1, 1e6),
                Column::raw('of the engine', 'cpu engine', 1, 1e6),
                Column::raw('bytes each, to the engine', 'bytes in', 0),
                Column::raw('from it', 'bytes out', 0),
                Column::raw('in its file', 'bytes file', 0),
                Column::raw("the disk's fsync/s", 'fsync', 0),
            ],
            Metric::figure('tasks/s'),
            Metric::cpu(['cpu script', 'cpu workers']),
        );
    }

    private function single(Report $report): void
    {
        $series = $this->durabilities(Measurement::Single);
        $report->table('One task at a time: from submit() to its result, milliseconds', $series, [
            Column::median('p50', 3),
            Column::range(3),
            Column::raw('p99', 'p99', 3),
            Column::raw('longest', 'longest', 2),
            Column::raw(Script::CONCURRENT_FIBERS . ' submitters at once, tasks/s', 'crowd', 0),
            Column::raw("the disk's fsync/s", 'fsync', 0),
        ], Metric::figure('p50 ms', 3));
    }

    private function recovery(Report $report): void
    {
        $kills = [
            'a worker is killed' => [$this->options->kills, Recovery::ofWorkers(...)],
            'an agent and its workers are killed' => [$this->options->agentKills(), Recovery::ofAgents(...)],
        ];
        $series = [];
        foreach ($kills as $label => [$count, $measure]) {
            $series[] = Outcome::series($label, static fn(): Outcome => $measure($count), 'recovery');
            if ($count < self::MIN_VALUES_FOR_P99) {
                $report->warn(
                    "{$label}: the 99th percentile of {$count} values is the longest one; give a larger --kills",
                );
            }
        }
        $report->table('From SIGKILL until the task runs again, milliseconds', Rounds::run($series, 1), [
            Column::median('p50', 1),
            Column::raw('p99', 'p99', 1),
            Column::raw('longest', 'longest', 1),
            Column::raw('times', 'count', 0),
        ]);
    }

    private function backlog(Report $report): void
    {
        $lengths = array_values(array_unique([Backlog::SHORT_QUEUE_JOBS, $this->options->backlog]));
        $queues = array_map(Backlog::of(...), $lengths);
        $outcomes = [];
        $series = [];
        foreach ($lengths as $which => $jobs) {
            // The first series measures all queues, because their claims alternate.
            $series[] = Outcome::series(
                number_format($jobs) . ' jobs are queued',
                static function () use ($which, $queues, &$outcomes): Outcome {
                    if ($which === 0) {
                        $outcomes = []; // drops those of the last round, in case this one fails
                        $outcomes = Backlog::claims($queues);
                    }

                    return $outcomes[$which] ?? throw new \RuntimeException('the claims failed');
                },
                'backlog',
            );
        }
        $report->table(
            \sprintf('A claim of %d jobs, milliseconds', Backlog::JOBS_PER_CLAIM),
            Rounds::run($series, $this->options->rounds),
            [
                Column::median('p99', 3),
                Column::range(3),
                Column::ratioTo('÷ ' . number_format(Backlog::SHORT_QUEUE_JOBS), $series[0]),
                Column::raw('p50', 'p50', 3),
                Column::raw('longest', 'longest', 2),
                Column::raw('bytes of the engine for each job', 'bytes', 0),
                Column::megabytes('MB of the engine', 'memory'),
            ],
        );
    }

    /**
     * Measures each durability with a fresh engine, agent and script; also a local pool.
     *
     * @return list<Series> measured
     */
    private function durabilities(Measurement $what): array
    {
        $measured = fn(Durability $durability, Checkout $checkout): Series => self::series(
            "Spindle, {$durability->value}",
            $what,
            $checkout,
            function () use ($what, $durability, $checkout): array {
                $rig = Rig::start($durability, $checkout);
                $disk = $durability === Durability::Durable ? ['fsync' => Disk::syncs($rig->data())] : [];

                return $rig->measure($what, $this->options->tasks) + $disk;
            },
        );
        $tasks = self::LOCAL_FACTOR * $this->options->tasks;
        $local = static fn(Checkout $checkout): Series => self::series(
            self::LOCAL,
            $what,
            $checkout,
            static fn(): array => Rig::local($what, $tasks, $checkout),
        );
        $ways = [
            static fn(Checkout $checkout): Series => $measured(Durability::Durable, $checkout),
            static fn(Checkout $checkout): Series => $measured(Durability::Fast, $checkout),
            $local,
        ];
        $series = [];
        foreach ($this->options->entrants->some($ways) as $way) {
            array_push($series, ...array_map($way, $this->options->entrants->checkouts));
        }

        return Rounds::run($series, $this->options->rounds);
    }

    /**
     * @param list<Series> $series
     *
     * @return list<Series> the local pool, if it takes part
     */
    private static function local(array $series): array
    {
        return array_values(array_filter($series, static fn(Series $one): bool => $one->label === self::LOCAL));
    }

    /** @param \Closure(): array<string, mixed> $measure */
    private static function series(string $label, Measurement $what, Checkout $checkout, \Closure $measure): Series
    {
        return new Series($label, static function (Series $series) use ($measure): float {
            $figures = $measure();
            $series->record($figures);
            if ($figures['right'] !== true) {
                $series->note('not all results are right: results are missing or wrong');
            }

            return \is_float($figures['figure'])
                ? $figures['figure']
                : throw new \RuntimeException('the script printed no figure');
        }, $what->value, $checkout);
    }

    /**
     * @return array<string, string>
     *
     * @throws UsageException
     */
    private static function describe(): array
    {
        if (!class_exists(\Predis\Client::class)) {
            throw new UsageException(
                'connections to the engine need predis/predis; install it with composer require predis/predis',
            );
        }
        try {
            $info = TemporaryRedis::start()->command('INFO', 'server');
        } catch (TemporaryRedisException $failure) {
            throw new UsageException($failure->getMessage());
        }
        $info = \is_string($info) ? $info : '';
        $version = static fn(string $of): ?string
            => preg_match("/^{$of}_version:(\S+)/m", $info, $match) === 1 ? $match[1] : null;
        $valkey = $version('valkey');

        return [
            'Engine' => ($valkey === null ? 'Redis ' . $version('redis') : "Valkey {$valkey}")
                . ' on the same machine, by TCP',
            'Client' => Package::label('predis/predis'),
            'Loop' => (new \ReflectionClass(EventLoop::getDriver()))->getShortName(),
        ];
    }
}
