<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

use Spindle\Bench\Contestant\Contestants;
use Spindle\Command\StartMethod;

/** Compares contestants that run the same commands, at one or several sizes of the process that they run in. */
final readonly class Comparison
{
    private const IDEAL = 'ideal';

    /**
     * @param non-empty-list<string> $spindle names of contestants, the best first
     * @param list<string>        $peers
     * @param non-empty-list<int> $memories megabytes
     * @param array<string, string> $work   options of contestant.php that are the same for all
     */
    private function __construct(
        private array $spindle,
        private array $peers,
        private array $memories,
        private int $rounds,
        private array $work,
        private Entrants $entrants,
    ) {}

    /** @throws UsageException when a value is not allowed, or not available here */
    public static function of(Options $options): self
    {
        $work = [
            'n' => (string) $options->int('n'),
            'j' => (string) $options->int('j'),
            'command' => $options->text('command'),
            'tasks' => $options->text('workload'),
        ];
        Workload::of($work['tasks'], $work['command'], 1);

        $entrants = Entrants::of($options);

        return new self(
            $entrants->some(self::spindle($options->start())),
            $entrants->peers(self::peers($options)),
            $options->ints('memory'),
            $options->int('rounds'),
            $options->has('cold') ? $work + ['cold' => ''] : $work,
            $entrants,
        );
    }

    /** Measures, prints, and writes the raw data into a file if one is given. */
    public function run(string $json = ''): void
    {
        $series = $this->series();
        $report = new Report(['memory' => $this->memories, 'rounds' => $this->rounds] + $this->work, $this->entrants);
        $missing = $this->entrants->isFirstOnly ? null : Contestants::named(Contestants::LIMIT)->missing();
        if ($missing !== null) {
            $report->warn("the limit program is not available: {$missing}");
        }
        $this->warmUp();
        Rounds::run(array_merge(...array_map(array_values(...), array_values($series))), $this->rounds);
        foreach ($this->memories as $memory) {
            $report->table(
                "The process holds {$memory} MB",
                array_values($series[$memory]),
                $this->columns($series, $memory),
                Metric::figure('commands/s'),
                Metric::cpu(['cpu running'], 1e6 / (int) $this->work['n']),
            );
        }
        $report->finish($json);
    }

    /** @return array<int, array<string, Series>> by memory and name, in the order of measurement */
    private function series(): array
    {
        $series = [];
        foreach ($this->memories as $memory) {
            foreach ($this->contestants() as $key => [$name, $checkout]) {
                $options = $this->work + ['memory' => (string) $memory];
                $series[$memory][$key] = ContestantProcess::series($name, $options, "{$memory} MB", $checkout);
            }
            if ($this->work['tasks'] === 'sleep') {
                $series[$memory][self::IDEAL] = Series::constant(
                    'ideal: sleep alone',
                    (int) $this->work['j'] / Workload::meanSleep((int) $this->work['n']),
                );
            }
        }

        return $series;
    }

    /**
     * Returns contestants with their checkouts. The key is the name, except for those of another checkout.
     *
     * @return array<string, array{string, Checkout|null}>
     */
    private function contestants(): array
    {
        $all = array_map(
            static fn(string $name): array => [$name, null],
            array_combine($this->limit(), $this->limit()),
        );
        foreach ($this->spindle as $name) {
            foreach ($this->entrants->checkouts as $checkout) {
                $all[$name . ($checkout->isOther ? ' of the other' : '')] = [$name, $checkout];
            }
        }
        foreach ($this->peers as $name) {
            $all[$name] = [$name, null];
        }

        return $all;
    }

    /** Runs each contestant for a moment without measuring, to fill the file cache and raise the clock of the CPU. */
    private function warmUp(): void
    {
        $count = max(1, intdiv((int) $this->work['n'], 10));
        foreach ($this->contestants() as [$name, $checkout]) {
            $warmUp = ContestantProcess::series($name, ['n' => (string) $count] + $this->work, '', $checkout);
            Rounds::say("warm-up: {$warmUp->label}");
            $warmUp->measure(0);
        }
    }

    /**
     * @param array<int, array<string, Series>> $series
     *
     * @return list<Column>
     */
    private function columns(array $series, int $memory): array
    {
        $columns = [Column::median('commands/s'), Column::range()];
        foreach ([Contestants::LIMIT => '÷ limit', self::IDEAL => '÷ ideal'] as $name => $title) {
            if (isset($series[$memory][$name])) {
                $columns[] = Column::ratioTo($title, $series[$memory][$name]);
            }
        }
        $columns[] = Column::ratioOf('Spindle ÷ it', $series[$memory][$this->spindle[0]]);
        $first = $this->memories[0];
        if ($memory !== $first) {
            $columns[] = Column::figure(
                "÷ own at {$first} MB",
                static fn(Series $one): ?float
                    => $one->ratioTo($series[$first][(string) array_search($one, $series[$memory], true)])?->median,
                3,
            );
        }

        return [
            ...$columns,
            Column::figure('start ms', static fn(Series $one): ?float => self::scale($one->medianOf('start'), 1000), 1),
            Column::figure(
                'CPU ms each',
                fn(Series $one): ?float => self::scale($one->medianOf('cpu'), 1000 / (int) $this->work['n']),
                2,
            ),
            Column::figure(
                'peak MB',
                static fn(Series $one): ?float => self::scale($one->medianOf('peak'), 1 / (1 << 20)),
                0,
            ),
        ];
    }

    private static function scale(?float $value, float $factor): ?float
    {
        return $value === null ? null : $value * $factor;
    }

    /** @return list<string> */
    private function limit(): array
    {
        return !$this->entrants->isFirstOnly && Contestants::isAvailable(Contestants::LIMIT)
            ? [Contestants::LIMIT]
            : [];
    }

    /** @return non-empty-list<string> */
    private static function spindle(StartMethod $start): array
    {
        if ($start !== StartMethod::Auto) {
            return [Contestants::checked("spindle-{$start->value}")];
        }

        return Contestants::isAvailable('spindle-posix_spawn')
            ? ['spindle-posix_spawn', 'spindle-proc_open']
            : ['spindle-proc_open'];
    }

    /** @return list<string> */
    private static function peers(Options $options): array
    {
        return match ($options->text('peers')) {
            'none' => [],
            'all' => array_values(array_filter(array_keys(Contestants::peers()), Contestants::isAvailable(...))),
            default => array_map(Contestants::checked(...), $options->list('peers')),
        };
    }
}
