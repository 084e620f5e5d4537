<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

use Nyholm\Psr7\ServerRequest;
use Spindle\Http\Admin;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;
use Spindle\Statistics;

/** The page docs/reference/metrics.md: the metrics of a server, and those of the registered pools. */
final readonly class MetricsPage
{
    private const INTRODUCTION = <<<'MARKDOWN'
        # Metrics

        <!-- php tools/site/reference.php writes this page -->

        The admin address of `spindle serve` (`--admin`) answers `/metrics` in the text format of Prometheus. Counters
        cover all processes of the server, including those that have ended. A process that was killed has not reported
        its last requests. [How to deploy a server](../how-to/deploy.md#monitor-the-server) shows alerts and a
        dashboard.

        | metric | type | labels | meaning |
        |---|---|---|---|

        MARKDOWN;

    private const POOLS = <<<'MARKDOWN'

        ## Pools

        The statistics that an application registers with `Application::$statistics` become metrics named
        `spindle_pool_…` with the label `pool`. Values with names such as `wait_seconds_le_0.5_total` become one
        histogram together with their sum, `wait_seconds_total`. Here the histogram is `spindle_pool_wait_seconds` with
        the labels `pool` and `le`. Any other value whose name ends in `_total` becomes a counter, and the rest become
        gauges. `histogram_quantile(0.95, sum by (le) (rate(spindle_pool_wait_seconds_bucket[5m])))` is the 95th
        percentile of the waits for a connection. The sections below describe what `statistics()` of each class returns.

        MARKDOWN;

    /** Labels of metrics whose samples have some, by the beginning of the name. */
    private const LABELS = [
        'spindle_http_requests_total' => '`status`',
        'spindle_http_requests_refused_total' => '`status`',
        'spindle_http_request_duration_seconds' => '`le`',
        'spindle_http_route_' => '`route`',
        'spindle_process_' => '`pid`',
        'spindle_event_loop_' => '`pid`',
    ];

    public function __construct(private ClassNames $names) {}

    public function markdown(): string
    {
        $admin = Admin::of(new HttpServer(static fn(): Response => new Response()));
        preg_match_all(
            '/^# HELP (?<name>\S+) (?<help>.+)\n# TYPE \S+ (?<type>\S+)$/m',
            (string) $admin->handle(new ServerRequest('GET', 'http://127.0.0.1/metrics'))->getBody(),
            $metrics,
            PREG_SET_ORDER,
        );
        $page = self::INTRODUCTION;
        foreach ($metrics as ['name' => $name, 'help' => $help, 'type' => $type]) {
            $page .= "| `{$name}` | {$type} | " . self::labels($name) . " | {$help} |\n";
        }
        $page .= self::POOLS;
        foreach ($this->names->classes as $class) {
            if (is_subclass_of($class, Statistics::class)) {
                $text = MethodText::comment(new \ReflectionMethod($class, 'statistics'))->text;
                $page .= "\n### " . ClassNames::short($class) . "\n\n" . $text . "\n";
            }
        }

        return $page;
    }

    private static function labels(string $name): string
    {
        foreach (self::LABELS as $beginning => $labels) {
            if (str_starts_with($name, $beginning)) {
                return $labels;
            }
        }

        return '';
    }
}
