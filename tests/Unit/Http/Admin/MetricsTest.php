<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use PHPUnit\Framework\TestCase;
use Spindle\Command\CommandPool;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Admin\CombinedStatistics;
use Spindle\Http\Internal\Admin\Metrics;
use Spindle\Postgres\PostgresPool;
use Spindle\Remote\Agent;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\WorkerPool;

final class MetricsTest extends TestCase
{
    use OwnDirectory;

    public function testEachValueOfTheLibrarysPoolsHasItsOwnDescription(): void
    {
        $pools = [
            'commands' => (new CommandPool(1))->statistics(),
            'tasks' => (new WorkerPool(1))->statistics(),
            'db' => (new PostgresPool('host=localhost'))->statistics(),
            'client' => (new HttpClient())->statistics(),
            'agent' => (new Agent(
                new RedisBroker('redis://localhost'),
                'q',
                1,
                new SigningKeys([str_repeat('k', 32)]),
            ))->statistics(),
            'queue' => array_fill_keys(
                ['waiting', 'delayed', 'blocked', 'dead', 'agents', 'oldest_waiting_seconds'],
                1,
            ),
        ];
        $text = Metrics::of(new CombinedStatistics([FixedOverview::process(pools: $pools)]));
        preg_match_all('/^# HELP spindle_pool_(\\S+) (.+)$/m', $text, $help);

        self::assertGreaterThan(25, \count($help[1]));
        self::assertSame($help[2], array_unique($help[2]));
        self::assertSame([], preg_grep('/that the application registered/', $help[2]));
    }

    public function testCountsAreSummedOverProcesses(): void
    {
        $exposed = self::of(
            FixedOverview::process(pid: 1, count: 10, answered: [404 => 1, 200 => 3]),
            FixedOverview::process(pid: 2, count: 20, answered: [200 => 4, 500 => 2], full: true),
        );
        $expected = [
            'spindle_http_requests_total{status="200"}' => '7',
            'spindle_http_requests_total{status="404"}' => '1',
            'spindle_http_requests_total{status="500"}' => '2',
            'spindle_http_requests_refused_total{status="400"}' => '40',
            'spindle_http_requests_abandoned_total' => '42',
            'spindle_http_responses_cut_off_total' => '60',
            'spindle_http_requests_in_flight' => '30',
            'spindle_http_responses_being_sent' => '62',
            'spindle_http_connections' => '32',
            'spindle_http_connections_accepted_total' => '34',
            'spindle_http_connections_rejected_total' => '36',
            'spindle_http_connections_evicted_total' => '44',
            'spindle_http_connections_max' => '46',
            'spindle_http_tls_handshakes_failed_total' => '38',
            'spindle_processes' => '2',
            'spindle_processes_full' => '1',
        ];

        self::assertSame($expected, array_intersect_key($exposed->samples, $expected));
    }

    public function testValuesWithoutASumAreListedByProcess(): void
    {
        $exposed = self::of(FixedOverview::process(pid: 1, count: 10), FixedOverview::process(pid: 2, count: 20));
        $expected = [
            'spindle_process_start_time_seconds{pid="1"}' => '1700000000.5',
            'spindle_process_start_time_seconds{pid="2"}' => '1700000000.5',
            'spindle_process_memory_bytes{pid="1"}' => '10000',
            'spindle_process_memory_bytes{pid="2"}' => '20000',
            'spindle_event_loop_lag_seconds{pid="1"}' => '0.1',
            'spindle_event_loop_lag_seconds{pid="2"}' => '0.2',
            'spindle_event_loop_lag_max_seconds{pid="1"}' => '1',
            'spindle_event_loop_lag_max_seconds{pid="2"}' => '2',
        ];

        self::assertSame($expected, array_intersect_key($exposed->samples, $expected));
    }

    public function testTheHistogramIsCumulative(): void
    {
        $precision = (string) ini_set('precision', '17'); // as in some php.ini files
        $exposed = self::of(
            FixedOverview::process(pid: 1, count: 3, durationCounts: [1, 0, 2]),
            FixedOverview::process(
                pid: 2,
                count: 4,
                durationCounts: [2, \count(HttpServerStatistics::DURATION_BOUNDS) => 5],
            ),
        );
        ini_set('precision', $precision);
        $name = 'spindle_http_request_duration_seconds';

        self::assertSame('histogram', $exposed->types[$name]);
        self::assertSame(
            ['3', '3', '5'],
            array_map(
                static fn(float $bound): string => $exposed->samples["{$name}_bucket{le=\"{$bound}\"}"],
                \array_slice(HttpServerStatistics::DURATION_BOUNDS, 0, 3),
            ),
        );
        self::assertSame(
            ['10', '10', '3.5'],
            [
                $exposed->samples["{$name}_bucket{le=\"+Inf\"}"],
                $exposed->samples["{$name}_count"],
                $exposed->samples["{$name}_sum"],
            ],
        );
    }

    public function testABoundHasADecimalPointInEachLocale(): void
    {
        $name = 'spindle_http_request_duration_seconds';
        $exposed = Locale::withDecimalComma($this->path(), static fn(): Exposed => self::of(FixedOverview::process()));
        $exposed ?? self::markTestSkipped('The locale can not be loaded');

        self::assertArrayHasKey("{$name}_bucket{le=\"0.0005\"}", $exposed->samples);
    }

    public function testEachRouteIsCounted(): void
    {
        $exposed = self::of(
            FixedOverview::process(pid: 1, routes: ['/a' => [2, 0.5, 0], '/b' => [1, 0.25, 1]]),
            FixedOverview::process(pid: 2, routes: ['/a' => [3, 0.75, 1]]),
        );

        self::assertSame(
            ['5', '1'],
            [
                $exposed->samples['spindle_http_route_requests_total{route="/a"}'],
                $exposed->samples['spindle_http_route_requests_total{route="/b"}'],
            ],
        );
        self::assertSame('1.25', $exposed->samples['spindle_http_route_duration_seconds_total{route="/a"}']);
        self::assertSame('1', $exposed->samples['spindle_http_route_errors_total{route="/a"}']);
    }

    public function testAPoolsFiguresHaveItsNameAndTheirType(): void
    {
        $exposed = self::of(
            FixedOverview::process(
                pid: 1,
                pools: ['db' => ['in_use' => 1, 'opened_total' => 5], 'jobs' => ['in_use' => 2]],
            ),
            FixedOverview::process(pid: 2, pools: ['db' => ['in_use' => 3, 'opened_total' => 6]]),
        );

        self::assertSame(
            ['4', '2', '11'],
            [
                $exposed->samples['spindle_pool_in_use{pool="db"}'],
                $exposed->samples['spindle_pool_in_use{pool="jobs"}'],
                $exposed->samples['spindle_pool_opened_total{pool="db"}'],
            ],
        );
        self::assertSame(
            ['gauge', 'counter'],
            [$exposed->types['spindle_pool_in_use'], $exposed->types['spindle_pool_opened_total']],
        );
    }

    public function testCumulativeFiguresOfAPoolAreAHistogram(): void
    {
        $waits = static fn(int $first, int $all, float $seconds): array => [
            'wait_seconds_le_0.5_total' => $first,
            'wait_seconds_le_1_total' => $first,
            'wait_seconds_le_inf_total' => $all,
            'wait_seconds_total' => $seconds,
        ];
        $exposed = self::of(
            FixedOverview::process(pid: 1, pools: ['db' => $waits(2, 3, 4.5), 'other' => ['wait_seconds_total' => 7]]),
            FixedOverview::process(pid: 2, pools: ['db' => $waits(1, 1, 0.25), 'second' => $waits(0, 2, 8.0)]),
        );
        $name = 'spindle_pool_wait_seconds';

        self::assertSame('histogram', $exposed->types[$name]);
        self::assertSame(
            [
                "{$name}_bucket{pool=\"db\",le=\"0.5\"}" => '3',
                "{$name}_bucket{pool=\"db\",le=\"1\"}" => '3',
                "{$name}_bucket{pool=\"db\",le=\"+Inf\"}" => '4',
                "{$name}_sum{pool=\"db\"}" => '4.75',
                "{$name}_count{pool=\"db\"}" => '4',
                "{$name}_bucket{pool=\"second\",le=\"0.5\"}" => '0',
                "{$name}_bucket{pool=\"second\",le=\"1\"}" => '0',
                "{$name}_bucket{pool=\"second\",le=\"+Inf\"}" => '2',
                "{$name}_sum{pool=\"second\"}" => '8',
                "{$name}_count{pool=\"second\"}" => '2',
                "{$name}_total{pool=\"other\"}" => '7',
            ],
            array_filter(
                $exposed->samples,
                static fn(string $sample): bool => str_starts_with($sample, $name),
                \ARRAY_FILTER_USE_KEY,
            ),
        );
    }

    public function testAnyNamesOfRoutesAndPoolsAreEscaped(): void
    {
        $exposed = self::of(FixedOverview::process(
            routes: array_fill_keys(["/\"quoted\"\\d\n# TYPE", "/\xff", FixedOverview::numeric('7')], [1, 0.1, 0]),
            pools: [
                FixedOverview::numeric('0') => ['my-figure {x}' => 1, FixedOverview::numeric('5') => 2],
                "p\"\n" => ['_total' => 3],
            ],
        ));

        self::assertArrayHasKey(
            'spindle_http_route_requests_total{route="/\"quoted\"\\\\d\n# TYPE"}',
            $exposed->samples,
        );
        self::assertArrayHasKey("spindle_http_route_requests_total{route=\"/\u{FFFD}\"}", $exposed->samples);
        self::assertSame('1', $exposed->samples['spindle_pool_my_figure__x_{pool="0"}']);
        self::assertSame('3', $exposed->samples['spindle_pool__total{pool="p\"\n"}']);
    }

    public function testNumbersMayBeAny(): void
    {
        $figures = [
            'nan' => \NAN,
            'plus' => \INF,
            'minus' => -\INF,
            'large' => 1e300,
            'small' => 1.5e-9,
            'negative' => -3,
            'whole' => 2.0,
        ];
        $exposed = self::of(FixedOverview::process(pools: ['x' => $figures]));

        self::assertSame(
            ['NaN', '+Inf', '-Inf', '1.0e+300', '1.5e-9', '-3', '2'],
            array_map(
                static fn(string $figure): string => $exposed->samples["spindle_pool_{$figure}{pool=\"x\"}"],
                array_keys($figures),
            ),
        );
    }

    public function testWithoutAnyProcessThereAreZeros(): void
    {
        $exposed = self::of();

        self::assertSame(
            ['0', '0', '0'],
            [
                $exposed->samples['spindle_processes'],
                $exposed->samples['spindle_http_connections'],
                $exposed->samples['spindle_http_request_duration_seconds_count'],
            ],
        );
    }

    private static function of(HttpServerStatistics ...$processes): Exposed
    {
        return new Exposed(Metrics::of(new CombinedStatistics(array_values($processes))));
    }
}
