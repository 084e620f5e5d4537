<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** What a benchmark prints: where it ran, tables, warnings; the raw data as JSON and all of it as a page, when files are named. */
final class Report
{
    /** @var list<Series> */
    private array $series = [];

    /** @var list<string> */
    private array $warnings = [];

    /** @var list<string> of the page */
    private array $html = [];

    /** @var array<string, string> before anything was measured */
    private readonly array $environment;

    /**
     * @param array<string, mixed> $options what was asked for
     */
    public function __construct(private readonly array $options)
    {
        $this->environment = Environment::describe();
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
        $this->rows($title, ['', ...array_map(static fn(Column $column): string => $column->title, $columns)], $rows);
        $this->series = [...$this->series, ...$series];
        $this->warnings = array_merge($this->warnings, ...array_map(static fn(Series $one): array => $one->problems(), $series));
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

    /** @param string $svg for the page, below the last table */
    public function chart(string $svg): void
    {
        $this->html[] = "<figure>\n{$svg}</figure>\n";
    }

    public function warn(string $warning): void
    {
        $this->warnings[] = $warning;
    }

    /**
     * @param string $json the file that raw data goes to; '' for none
     * @param string $html the file that the page goes to; '' for none
     */
    public function finish(string $json = '', string $html = '', string $title = ''): void
    {
        $this->warnOfWideFigures();
        foreach ($this->warnings as $number => $warning) {
            echo $number === 0 ? "\n" : '', "Warning: {$warning}\n";
        }
        $this->write($json, $html, $title);
    }

    /** Writes what there is so far, so that a run that does not come to its end was not for nothing. */
    public function write(string $json, string $html = '', string $title = ''): void
    {
        if ($json !== '') {
            $data = [
                'environment' => $this->environment,
                'options' => $this->options,
                'series' => array_map(static fn(Series $one): array => $one->toArray(), $this->series),
                'warnings' => $this->warnings,
            ];
            file_put_contents($json, json_encode($data, \JSON_PRETTY_PRINT | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_THROW_ON_ERROR) . "\n");
        }
        if ($html !== '') {
            file_put_contents($html, Page::of($title, $this->environment + $this->options, $this->html, $this->warnings));
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
