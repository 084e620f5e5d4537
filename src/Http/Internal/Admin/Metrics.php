<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\HttpServerStatistics;

/** Writes the statistics of servers in the text format of Prometheus. */
final class Metrics
{
    public const TYPE = 'text/plain; version=0.0.4; charset=utf-8';
    private const POOL_PREFIX = 'spindle_pool_';

    private readonly Exposition $exposition;

    public static function of(CombinedStatistics $statistics): string
    {
        $metrics = new self($statistics->totals, $statistics->processes);
        $metrics->requests();
        $metrics->durations();
        $metrics->connections();
        $metrics->routes();
        $metrics->processes();
        $metrics->pools();

        return $metrics->exposition->text;
    }

    /** @param list<HttpServerStatistics> $processes */
    private function __construct(private readonly Totals $totals, private readonly array $processes)
    {
        $this->exposition = new Exposition();
    }

    private function requests(): void
    {
        $this->byStatus('spindle_http_requests_total', 'Requests that were answered.', $this->totals->answered);
        $this->byStatus(
            'spindle_http_requests_refused_total',
            'Requests that the server refused before it called a handler.',
            $this->totals->refused,
        );
        $this->single(
            'spindle_http_requests_abandoned_total',
            'Requests that got no response, because the client or the server closed the connection.',
            $this->totals->abandoned,
        );
        $this->single(
            'spindle_http_responses_cut_off_total',
            'Responses that an exception has cut off after their head. They are also counted by their status.',
            $this->totals->cutOff,
        );
        $inFlight = $this->totals->inFlight;
        $this->single('spindle_http_requests_in_flight', 'Requests whose handler has not returned.', $inFlight);
        $this->single(
            'spindle_http_responses_being_sent',
            'Responses that are being sent, such as downloads and event streams.',
            $this->totals->sending,
        );
    }

    private function durations(): void
    {
        $name = 'spindle_http_request_duration_seconds';
        $this->exposition->metric($name, 'histogram', 'Time from the head of a request to its response, in seconds.');
        $count = 0;
        foreach ($this->totals->durationCounts as $bucket => $answers) {
            $count += $answers;
            $this->exposition->sample(
                "{$name}_bucket",
                $count,
                ['le' => HttpServerStatistics::DURATION_BOUNDS[$bucket] ?? '+Inf'],
            );
        }
        if ($this->totals->durationCounts === []) {
            $this->exposition->sample("{$name}_bucket", 0, ['le' => '+Inf']);
        }
        $this->exposition->sample("{$name}_sum", $this->totals->totalDuration);
        $this->exposition->sample("{$name}_count", $count);
    }

    private function connections(): void
    {
        $totals = $this->totals;
        $this->single('spindle_http_connections', 'Open connections.', $totals->connections);
        $this->single('spindle_http_connections_accepted_total', 'Accepted connections.', $totals->accepted);
        $this->single(
            'spindle_http_connections_rejected_total',
            'Connections that were closed at once because their IPv4 address or IPv6 /64 network had too many open.',
            $totals->rejected,
        );
        $this->single(
            'spindle_http_connections_evicted_total',
            'Connections that were closed to make room for others.',
            $totals->evicted,
        );
        $this->single('spindle_http_connections_max', 'Maximum number of open connections.', $totals->maxConnections);
        $this->single('spindle_http_tls_handshakes_failed_total', 'Failed TLS handshakes.', $totals->handshakesFailed);
    }

    private function routes(): void
    {
        $metrics = [
            'spindle_http_route_requests_total' => 'Answered requests, by route.',
            'spindle_http_route_duration_seconds_total'
                => 'Total time from the heads of requests to their responses, in seconds, by route.',
            'spindle_http_route_errors_total'
                => 'Responses with a status of 500 or above, and responses that an exception has cut off, by route.',
        ];
        foreach (array_keys($metrics) as $index => $name) {
            $this->exposition->metric($name, 'counter', $metrics[$name]);
            foreach ($this->totals->routes as $route => $statistics) {
                $this->exposition->sample($name, $statistics[$index], ['route' => $route]);
            }
        }
    }

    private function processes(): void
    {
        $full = $this->totals->fullServers;
        $this->single('spindle_processes', 'Processes that serve requests.', \count($this->processes));
        $this->single('spindle_processes_full', 'Processes that can accept no further connection.', $full);
        $metrics = [
            'spindle_process_start_time_seconds' => ['Start time of a process, as Unix time in seconds.', 'startedAt'],
            'spindle_process_memory_bytes' => ['Memory that PHP uses in a process, in bytes.', 'memory'],
            'spindle_event_loop_lag_seconds' => [
                'Lag of the event loop of a process at the last measurement, in seconds.',
                'lag',
            ],
            'spindle_event_loop_lag_max_seconds' => [
                'Maximum lag of the event loop in the last minute, in seconds.',
                'maxLag',
            ],
        ];
        foreach ($metrics as $name => [$help, $property]) {
            $this->exposition->metric($name, 'gauge', $help);
            foreach (array_column($this->processes, $property, 'pid') as $pid => $value) {
                $this->exposition->sample($name, $value, ['pid' => $pid]);
            }
        }
    }

    private function pools(): void
    {
        $metrics = $histograms = [];
        foreach ($this->totals->pools as $pool => $statistics) {
            foreach ($statistics as $key => $value) {
                if (preg_match('/^(.+)_le_(inf|[0-9.]+)_total$/D', "{$key}", $bucket) === 1) {
                    $bound = $bucket[2] === 'inf' ? '+Inf' : $bucket[2];
                    $histograms[self::poolMetric($bucket[1])][$pool][$bound] = $value;
                } else {
                    $metrics[self::poolMetric("{$key}")][$pool] = $value;
                }
            }
        }
        foreach ($histograms as $name => $pools) {
            $this->exposition->metric($name, 'histogram', self::poolHelp($name));
            foreach ($pools as $pool => $counts) {
                foreach ($counts as $bound => $count) {
                    $this->exposition->sample("{$name}_bucket", $count, ['pool' => $pool, 'le' => $bound]);
                }
                $this->exposition->sample("{$name}_sum", $metrics["{$name}_total"][$pool] ?? 0, ['pool' => $pool]);
                $this->exposition->sample("{$name}_count", end($counts), ['pool' => $pool]);
                unset($metrics["{$name}_total"][$pool]);
            }
        }
        foreach (array_filter($metrics) as $name => $values) {
            $this->exposition->metric($name, self::type($name), self::poolHelp($name));
            foreach ($values as $pool => $value) {
                $this->exposition->sample($name, $value, ['pool' => $pool]);
            }
        }
    }

    /** @see https://prometheus.io/docs/concepts/data_model/#metric-names-and-labels */
    private static function poolMetric(string $key): string
    {
        return self::POOL_PREFIX . preg_replace('/[^a-zA-Z0-9_]/', '_', $key);
    }

    private static function poolHelp(string $name): string
    {
        return PoolHelp::of(substr($name, \strlen(self::POOL_PREFIX)));
    }

    /** @param array<int, int> $counts */
    private function byStatus(string $name, string $help, array $counts): void
    {
        $this->exposition->metric($name, 'counter', $help);
        ksort($counts);
        foreach ($counts as $status => $count) {
            $this->exposition->sample($name, $count, ['status' => $status]);
        }
    }

    private function single(string $name, string $help, int|float $value): void
    {
        $this->exposition->metric($name, self::type($name), $help);
        $this->exposition->sample($name, $value);
    }

    /** @return 'counter'|'gauge' */
    private static function type(string $name): string
    {
        return str_ends_with($name, '_total') ? 'counter' : 'gauge';
    }
}
