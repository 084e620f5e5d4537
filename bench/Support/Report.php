<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Output of a benchmark: its environment, tables and warnings; optionally raw data as JSON, and a page. */
final class Report
{
    /** Number of rounds below which quartiles mean little. */
    private const MIN_ROUNDS = 5;

    /** @var list<Series> */
    private array $series = [];

    /** @var list<string> */
    private array $warnings = [];

    /** @var list<string> fragments of the page */
    private array $html = [];

    /** @var array<string, string> the environment before the measurements */
    private readonly array $environment;

    /** @var list<Line> */
    private array $lines = [];

    /**
     * @param array<string, mixed> $options  options of the benchmark
     * @param Entrants|null        $entrants null when no checkouts are compared
     */
    public function __construct(private readonly array $options, private readonly ?Entrants $entrants = null)
    {
        $checkouts = $entrants?->describe() ?? [];
        $this->environment = Environment::describe() + $checkouts;
        Environment::print();
        foreach ($checkouts as $name => $text) {
            printf("%-8s %s\n", $name, $text);
        }
        $warning = Environment::warning();
        $this->warnings = $warning === null ? [] : [$warning];
    }

    /**
     * @param list<Series> $series one row each
     * @param list<Column> $columns
     * @param Metric|null  $figure compares checkouts; null without a comparison
     * @param Metric|null  $cpu    the same for CPU time
     */
    public function table(
        string $title,
        array $series,
        array $columns,
        ?Metric $figure = null,
        ?Metric $cpu = null,
    ): void {
        $rows = array_map(
            static fn(Series $one): array
                => [$one->label, ...array_map(static fn(Column $column): string => $column->cell($one), $columns)],
            $series,
        );
        $this->rows($title, ['', ...array_map(static fn(Column $column): string => $column->title, $columns)], $rows);
        $this->series = [...$this->series, ...$series];
        $this->warnings = array_merge(
            $this->warnings,
            ...array_map(static fn(Series $one): array => $one->problems(), $series),
        );
        if ($figure !== null && $this->entrants?->areCompared() === true) {
            $this->compare($series, $figure, $cpu);
        }
    }

    /**
     * @param list<string>       $titles
     * @param list<list<string>> $rows
     */
    public function rows(string $title, array $titles, array $rows): void
    {
        echo "\n{$title}\n\n", Table::markdown($titles, $rows);
        $this->html[] = Table::html($title, $titles, $rows);
    }

    /** @param string $svg shown on the page below the last table */
    public function chart(string $svg): void
    {
        $this->html[] = "<figure>\n{$svg}</figure>\n";
    }

    public function warn(string $warning): void
    {
        $this->warnings[] = $warning;
    }

    /** Adds a line to the table that {@see finish()} prints. */
    public function addLine(Line $line): void
    {
        $this->lines[] = $line;
    }

    /**
     * @param string $json file for the raw data; '' for none
     * @param string $html file for the page; '' for none
     */
    public function finish(string $json = '', string $html = '', string $title = ''): void
    {
        $this->printLines();
        $this->warnOfWideRanges();
        foreach ($this->warnings as $number => $warning) {
            echo $number === 0 ? "\n" : '', "Warning: {$warning}\n";
        }
        $this->write($json, $html, $title);
    }

    /** Writes the data so far, so that an interrupted run keeps its results. */
    public function write(string $json, string $html = '', string $title = ''): void
    {
        if ($json !== '') {
            $data = [
                'environment' => $this->environment,
                'options' => $this->options,
                'series' => array_map(static fn(Series $one): array => $one->toArray(), $this->series),
                'warnings' => $this->warnings,
            ];
            if ($this->lines !== []) {
                $data['lines'] = array_map(static fn(Line $one): array => $one->toArray(), $this->lines);
            }
            // JSON has no infinity, the time of a request without an answer.
            array_walk_recursive($data, static function (mixed &$value): void {
                $value = \is_float($value) && !is_finite($value) ? null : $value;
            });
            file_put_contents(
                $json,
                json_encode(
                    $data,
                    \JSON_PRETTY_PRINT | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_THROW_ON_ERROR,
                ) . "\n",
            );
        }
        if ($html !== '') {
            file_put_contents(
                $html,
                Page::of($title, $this->environment + $this->options, $this->html, $this->warnings),
            );
        }
    }

    /** @param list<Series> $series */
    private function compare(array $series, Metric $figure, ?Metric $cpu): void
    {
        $that = [];
        foreach ($series as $one) {
            if ($one->checkout?->isOther === true) {
                $that[$one->subject()] = $one;
            }
        }
        foreach ($series as $one) {
            $isCompared = $this->entrants?->other() === null || isset($that[$one->subject()]);
            if ($one->checkout?->isOther === false && $isCompared) {
                $this->lines[] = Line::of($one, $that[$one->subject()] ?? null, $figure, $cpu);
            }
        }
    }

    private function printLines(): void
    {
        $other = $this->entrants?->other()?->revision;
        if ($this->lines !== [] && ($other !== null || $this->series === [])) {
            $this->rows(
                $other === null ? 'This checkout' : "This checkout beside {$other}",
                Line::titles($other),
                array_map(static fn(Line $line): array => $line->cells($other), $this->lines),
            );
            $this->warnOfFewRounds();
        }
    }

    private function warnOfFewRounds(): void
    {
        $rounds = max([0, ...array_map(static fn(Line $line): int => $line->rounds(), $this->lines)]);
        if ($rounds < self::MIN_ROUNDS) {
            $this->warn(\sprintf(
                'quartiles of fewer than %d rounds say little: use more --rounds',
                self::MIN_ROUNDS,
            ));
        }
    }

    /** Warns like hyperfine: a median means little when the measurements vary widely. */
    private function warnOfWideRanges(): void
    {
        $wide = [];
        foreach ($this->series as $one) {
            $statistics = $one->statistics();
            if ($statistics?->isWide() === true) {
                $wide[] = \sprintf('%s (%.0f %%)', $one->name(), 100 * $statistics->spread());
            }
        }
        if ($wide !== []) {
            $this->warn(
                'the slowest and the fastest round differ too much for '
                    . implode(', ', $wide)
                    . ': stop other programs on this machine, or use more --rounds',
            );
        }
    }
}
