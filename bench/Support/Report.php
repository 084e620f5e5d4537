<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** What a benchmark prints: where it ran, tables, warnings; and the raw data as JSON, when a file is named. */
final class Report
{
    /** @var list<Series> */
    private array $series = [];

    /** @var list<string> */
    private array $warnings = [];

    /**
     * @param array<string, mixed> $options what was asked for
     */
    public function __construct(private readonly array $options)
    {
        Environment::print();
        $warning = Environment::warning();
        $this->warnings = $warning === null ? [] : [$warning];
    }

    /**
     * @param list<Series> $series a row each
     * @param list<Column> $columns
     */
    public function table(string $title, array $series, array $columns): void
    {
        $rows = array_map(
            static fn(Series $one): array => [$one->label, ...array_map(static fn(Column $column): string => $column->cell($one), $columns)],
            $series,
        );
        echo "\n{$title}\n\n", Table::markdown(['', ...array_map(static fn(Column $column): string => $column->title, $columns)], $rows);
        $this->series = [...$this->series, ...$series];
        $this->warnings = array_merge($this->warnings, ...array_map(static fn(Series $one): array => $one->problems(), $series));
    }

    public function warn(string $warning): void
    {
        $this->warnings[] = $warning;
    }

    /** @param string $json the file that raw data goes to; '' for none */
    public function finish(string $json = ''): void
    {
        $this->warnOfWideFigures();
        foreach ($this->warnings as $number => $warning) {
            echo $number === 0 ? "\n" : '', "Warning: {$warning}\n";
        }
        if ($json !== '') {
            $data = [
                'environment' => Environment::describe(),
                'options' => $this->options,
                'series' => array_map(static fn(Series $one): array => $one->toArray(), $this->series),
                'warnings' => $this->warnings,
            ];
            file_put_contents($json, json_encode($data, \JSON_PRETTY_PRINT | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_THROW_ON_ERROR) . "\n");
        }
    }

    /** As hyperfine does: a median says little where the measurements lie far apart. */
    private function warnOfWideFigures(): void
    {
        $wide = [];
        foreach ($this->series as $one) {
            $statistics = $one->statistics();
            if ($statistics?->isWide() === true) {
                $wide[] = \sprintf('%s (%.0f %%)', $one->name(), 100 * $statistics->spread());
            }
        }
        if ($wide !== []) {
            $this->warn('the slowest and the fastest lie far apart for ' . implode(', ', $wide) . ': quieten the machine, or take more rounds');
        }
    }
}
