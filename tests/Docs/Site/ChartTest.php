<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Site;

use PHPUnit\Framework\TestCase;
use Spindle\Site\Chart\BarChart;
use Spindle\Site\Chart\Chart;
use Spindle\Site\Chart\Figures;
use Spindle\Site\Chart\Theme;
use Spindle\Tests\Docs\Workplace;

final class ChartTest extends TestCase
{
    private const FIGURES = [
        'environment' => ['PHP' => '8.4.27 NTS', 'Cores' => '2', 'Load' => '0.31'],
        'options' => ['rounds' => 3],
        'series' => [
            ['label' => 'Spindle', 'context' => '0 MB', 'raw' => [['cpu' => 4], ['cpu' => 1.0], ['cpu' => 2]]],
            ['label' => 'xargs', 'context' => '0 MB', 'raw' => [['cpu' => 8], ['cpu' => 4]]],
            ['label' => 'xargs', 'context' => '500 MB', 'raw' => [['cpu' => 9]]],
            ['label' => 'failed', 'context' => '0 MB', 'raw' => []],
        ],
    ];

    public function testTheChartsShowTheRawData(): void
    {
        foreach (Chart::draw(Workplace::project()) as $path => $svg) {
            self::assertStringEqualsFile(
                Workplace::project() . "/{$path}",
                $svg,
                'Run php tools/site/charts.php and commit the images',
            );
            self::assertStringContainsString('>Spindle', $svg, $path);
        }
    }

    public function testThePageShowsEachChartThatExistsAtItsPlace(): void
    {
        $project = Workplace::project();
        $page = (string) file_get_contents("{$project}/" . Chart::PAGE);

        self::assertSame(Chart::placed($page, Chart::draw($project)), $page, 'Run php tools/site/charts.php');
        foreach (Chart::all() as $name => $chart) {
            self::assertSame(1, substr_count($page, "\n<!-- chart: {$name} -->\n"), $name);
        }
    }

    public function testAChartAppearsWhenItExistsAndDisappearsWithoutIt(): void
    {
        $page = "# A\n\n<!-- chart: http -->\n\nText\n";
        $files = ['docs/images/http-light.svg' => '', 'docs/images/http-dark.svg' => ''];
        $placed = Chart::placed($page, $files);

        self::assertSame(<<<'MARKDOWN'
            # A

            <!-- chart: http -->
            <picture>
              <source media="(prefers-color-scheme: dark)" srcset="../images/http-dark.svg">
              <img src="../images/http-light.svg" width="720"
                alt="Plain text, 50 connections: requests per second of CPU time, Spindle and others">
            </picture>

            Text

            MARKDOWN, $placed);
        self::assertSame($placed, Chart::placed($placed, $files));
        self::assertSame($page, Chart::placed($placed, []));
    }

    public function testAFigureIsTheMedianOfTheRoundsOfASeries(): void
    {
        $figures = new Figures(json_encode(self::FIGURES, \JSON_THROW_ON_ERROR));

        self::assertSame(
            ['Spindle' => 2.0, 'xargs' => 6.0],
            $figures->medians('0 MB', static fn(array $round): float => Figures::number($round, 'cpu')),
        );
        self::assertSame(
            'PHP 8.4.27, 2 cores, load 0.31 before the start, medians of 3 rounds',
            $figures->environment(),
        );
    }

    public function testBarsHaveTheLengthOfTheirValuesAndTheColoursOfTheTheme(): void
    {
        $chart = new BarChart('a < b', ['Spindle, pool' => 1234.0, 'other' => 617.0], 'note');
        $svg = $chart->svg(Theme::Light);

        self::assertNotFalse(simplexml_load_string($svg));
        self::assertStringContainsString('<title>a &lt; b</title>', $svg);
        self::assertMatchesRegularExpression('/width="390" height="16" rx="2" fill="#0969da"/', $svg);
        self::assertMatchesRegularExpression('/width="195" height="16" rx="2" fill="#afb8c1"/', $svg);
        self::assertStringContainsString('>1,230</text>', $svg);
        self::assertStringContainsString('fill="#4493f8"', $chart->svg(Theme::Dark));
    }
}
