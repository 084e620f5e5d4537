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

    /**
     * @param string                               $file     name of the raw data, without its extension
     * @param non-empty-list<string>               $contexts beginnings of the contexts of the shown series
     * @param \Closure(array<mixed>): (float|null) $figure   operations per second of CPU time in one round
     */
    private function __construct(
        private string $title,
        private string $file,
        private array $contexts,
        private \Closure $figure,
    ) {}

    /** @return array<string, self> by name */
    public static function all(): array
    {
        return [
            'memory' => new self(
                'PHP 8.2, application with 0 or 500 MB: "echo hi" per second of CPU time',
                'memory',
                ['0 MB', '500 MB'],
                self::commands(),
            ),
        ];
    }

    /**
     * Draws all charts.
     *
     * @return array<string, string> SVG by path in the project
     */
    public static function draw(string $project): array
    {
        $files = [];
        foreach (self::all() as $name => $chart) {
            $path = "{$project}/" . self::FIGURES . "/{$chart->file}.json";
            $figures = new Figures((string) file_get_contents($path));
            foreach (Theme::cases() as $theme) {
                $files[self::IMAGES . "/{$name}-{$theme->value}.svg"]
                    = (new BarChart($chart->title, $chart->values($figures), $figures->environment()))->svg($theme);
            }
        }

        return $files;
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

    /** @return \Closure(array<mixed>): (float|null) commands per second of CPU time, without the start of a pool */
    private static function commands(): \Closure
    {
        return static function (array $round): ?float {
            $seconds = Figures::number($round, 'cpu running');

            return $seconds > 0.0 ? Figures::number($round, 'results') / $seconds : null;
        };
    }
}
