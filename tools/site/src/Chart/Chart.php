<?php

declare(strict_types=1);

namespace Spindle\Site\Chart;

/**
 * The charts of the documentation, drawn from the raw data in bench/figures/.
 *
 * Charts show operations per second of CPU time, because other work on the machine changes that less than a rate.
 */
final readonly class Chart
{
    private const FIGURES = 'bench/figures';
    private const IMAGES = 'docs/images';

    /** The page with the charts. A comment such as `<!-- chart: http -->` stands where a chart belongs. */
    public const PAGE = 'docs/explanation/benchmarks.md';

    /**
     * @param non-empty-list<string>               $contexts beginnings of the contexts of the shown series
     * @param \Closure(array<mixed>): (float|null) $figure   operations per second of CPU time in one round
     */
    private function __construct(private string $title, private array $contexts, private \Closure $figure) {}

    /** @return array<string, self> by name, which is also the name of the raw data */
    public static function all(): array
    {
        $commands = self::perSecond('results', 'cpu running'); // without the start of a pool

        return [
            'commands' => new self('"echo hi", 8 at once: commands per second of CPU time', ['0 MB'], $commands),
            'memory' => new self(
                'PHP 8.2, application with 0 or 500 MB: "echo hi" per second of CPU time',
                ['0 MB', '500 MB'],
                $commands,
            ),
            'tasks' => new self(
                'Invokable objects, 2 workers: tasks per second of CPU time',
                ['objects'],
                self::perSecond('count', 'cpu running'),
            ),
            'postgres' => new self(
                'A row by its key: queries per second of CPU time of the client',
                ['select, single'],
                self::perSecond('count', 'cpu'),
            ),
            'http' => new self(
                'Plain text, 50 connections: requests per second of CPU time',
                ['text'],
                static function (array $round): ?float {
                    $microseconds = Figures::number($round, 'cpu');

                    return $microseconds > 0.0 ? 1e6 / $microseconds : null;
                },
            ),
        ];
    }

    /**
     * Draws the charts whose raw data exists.
     *
     * @return array<string, string> SVG by path in the project
     */
    public static function draw(string $project): array
    {
        $files = [];
        foreach (self::all() as $name => $chart) {
            $path = "{$project}/" . self::FIGURES . "/{$name}.json";
            if (!is_file($path)) {
                continue;
            }
            $figures = new Figures((string) file_get_contents($path));
            foreach (Theme::cases() as $theme) {
                $files[self::IMAGES . "/{$name}-{$theme->value}.svg"]
                    = (new BarChart($chart->title, $chart->values($figures), $figures->environment()))->svg($theme);
            }
        }

        return $files;
    }

    /**
     * Returns the page with a picture at the place of each chart that exists.
     *
     * @param array<string, string> $files what {@see draw()} has returned
     */
    public static function placed(string $markdown, array $files): string
    {
        foreach (self::all() as $name => $chart) {
            $picture = isset($files[self::IMAGES . "/{$name}-light.svg"]) ? <<<HTML
                <picture>
                  <source media="(prefers-color-scheme: dark)" srcset="../images/{$name}-dark.svg">
                  <img src="../images/{$name}-light.svg" width="720"
                    alt="{$chart->alternative()}">
                </picture>

                HTML : '';
            $markdown = (string) preg_replace_callback(
                "~^(<!-- chart: {$name} -->\n)(?:<picture>\n.*?</picture>\n)?~ms",
                static fn(array $match): string => $match[1] . $picture,
                $markdown,
            );
        }

        return $markdown;
    }

    /** Returns the text that describes the chart to a screen reader. */
    private function alternative(): string
    {
        return htmlspecialchars($this->title, \ENT_COMPAT) . ', Spindle and others';
    }

    /** @return array<string, float> by label, the largest first */
    private function values(Figures $figures): array
    {
        $values = [];
        foreach ($this->contexts as $context) {
            foreach ($figures->medians($context, $this->figure) as $label => $value) {
                $values[\count($this->contexts) === 1 ? $label : "{$label}, {$context}"] = $value;
            }
        }
        arsort($values);

        return $values;
    }

    /** @return \Closure(array<mixed>): (float|null) */
    private static function perSecond(string $count, string $cpu): \Closure
    {
        return static function (array $round) use ($count, $cpu): ?float {
            $seconds = Figures::number($round, $cpu);

            return $seconds > 0.0 ? Figures::number($round, $count) / $seconds : null;
        };
    }
}
