<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\Load;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Scale;
use Spindle\Tests\Unit\Http\Admin\Exposed;

/** /metrics while processes start and end: counters never fall, and include processes that ended properly. */
#[RequiresPhpExtension('pcntl')]
final class SupervisorMetricsTest extends ServeTestCase
{
    /** Counts its requests by route and in registered statistics. */
    private const COUNTED = <<<'PHP'
        $pool = new class () implements Spindle\Statistics {
            public int $requests = 0;

            public function statistics(): array
            {
                return ['requests_total' => $this->requests, 'in_use' => 1];
            }
        };
        return new Spindle\Http\Application(static function ($request) use ($pool): Spindle\Http\Response {
            ++$pool->requests;
            $request->getAttribute(Spindle\Http\MatchedRoute::class)?->setName('/{page}');
            $request->getUri()->getPath() === '/exit' && exit(0);
            return Spindle\Http\Response::text('');
        }, ['pool' => $pool]);
        PHP;

    private const METRICS = [
        'spindle_http_requests_total{status="200"}',
        'spindle_pool_requests_total{pool="pool"}',
        'spindle_http_route_requests_total{route="/{page}"}',
        'spindle_http_request_duration_seconds_count',
    ];

    public function testCountersOfRecycledProcessesAreInTheFirstScrape(): void
    {
        $this->serve(self::COUNTED, ['--processes', '2', '--max-requests', '60', '--admin', '127.0.0.1:0']);
        $load = $this->load();
        $this->awaitLogged(' is replaced: it has handled ', 4);
        $load->stop();
        $this->awaitProcesses(3);

        self::assertSame(array_fill(0, 4, \count($load->answered)), $this->scrape());
    }

    public function testCountersOfReloadedProcessesAreInTheFirstScrape(): void
    {
        $server = $this->serve(self::COUNTED, ['--processes', '2', '--admin', '127.0.0.1:0']);
        $load = $this->load();
        for ($reload = 1; $reload <= 2; ++$reload) {
            $server->signal(\SIGHUP);
            $this->awaitLogged(' Reloaded', $reload);
        }
        $load->stop();
        $this->awaitProcesses(3);

        self::assertSame(array_fill(0, 4, \count($load->answered)), $this->scrape());
    }

    public function testCountersDoNotFallUnderLoadWhileProcessesAreKilledOrReplaced(): void
    {
        $server = $this->serve(self::COUNTED, ['--processes', '2', '--admin', '127.0.0.1:0']);
        $load = $this->load();
        $before = [0, 0, 0, 0];
        for ($time = 0, $times = Scale::isFull() ? 24 : 6; $time < $times; ++$time) {
            $counts = $this->scrape();
            foreach ($counts as $index => $count) {
                self::assertGreaterThanOrEqual($before[$index], $count, self::METRICS[$index]);
            }
            $before = $counts;
            [$worker, , $admin] = $this->processes(3);
            match ($time % 3) {
                0 => $this->kill($admin),
                1 => $this->kill($worker),
                2 => $server->signal(\SIGHUP),
            };
        }
        $load->stop();
    }

    public function testCountersOfRoutesAboveTheLimitDoNotFall(): void
    {
        $server = $this->serve(
            'return static function ($request) {'
                . ' $request->getAttribute(Spindle\Http\MatchedRoute::class)?->setName($request->getUri()->getPath());'
                . ' return Spindle\Http\Response::text(""); };',
            ['--processes', '1', '--admin', '127.0.0.1:0'],
        );
        $before = [];
        foreach (['a', 'b', 'c'] as $reload => $prefix) {
            $client = $this->client();
            for ($number = 0; $number < 300; ++$number) {
                $client->get("/{$prefix}{$number}")->response();
            }
            $client->close();
            foreach (['as they live', 'as they are past'] as $when) {
                $routes = $this->routes();
                self::assertSame(($reload + 1) * 300, array_sum($routes));
                self::assertLessThanOrEqual(501, \count($routes));
                foreach ($before as $route => $count) {
                    self::assertGreaterThanOrEqual($count, $routes[$route] ?? 0, "{$route} {$when}");
                }
                $before = $routes;
                if ($when === 'as they live') {
                    $server->signal(\SIGHUP);
                    $this->awaitLogged(' Reloaded', $reload + 1);
                    $this->awaitProcesses(2);
                }
            }
        }
    }

    public function testANewAdminProcessReportsTheSameCounts(): void
    {
        $this->serve(self::COUNTED, ['--processes', '1', '--admin', '127.0.0.1:0']);
        for ($i = 0; $i < 30; ++$i) {
            $this->get();
        }
        self::assertSame([30, 30, 30, 30], $this->scrape());
        [$worker, $admin] = $this->processes(2);
        $this->kill($worker);
        self::assertSame(200, $this->get()->status);
        $this->kill($admin);

        self::assertSame([31, 31, 31, 31], $this->scrape());
    }

    public function testCountersOfAnExitedProcessAreKept(): void
    {
        $this->serve(self::COUNTED, ['--processes', '1', '--admin', '127.0.0.1:0']);
        for ($i = 0; $i < 10; ++$i) {
            $this->get();
        }
        $this->client()->get('/exit')->rest();
        $this->awaitLogged(' called exit() while it handled GET /exit; another takes its place');
        $this->get();

        self::assertSame([11, 12, 12, 12], $this->scrape());
    }

    public function testCountersOfAStuckProcessAreIncluded(): void
    {
        $this->serve(
            'return static function ($request) { if ($request->getUri()->getPath() === "/loop") {'
                . ' touch(__DIR__ . "/looping"); for (;;); } return Spindle\Http\Response::text(""); };',
            ['--processes', '1', '--admin', '127.0.0.1:0'],
        );
        for ($i = 0; $i < 10; ++$i) {
            $this->get();
        }
        self::assertSame(10, $this->scrape()[0]);
        $this->client()->get('/loop');
        Eventually::holds(fn(): bool => file_exists($this->path('looping')), 'it loops');

        self::assertSame(10, $this->scrape()[0]);
    }

    private function load(): Load
    {
        $load = new Load($this->address);
        $load->start(2, keep: true);
        $load->start(2, keep: false);
        Eventually::holds(static fn(): bool => \count($load->answered) > 100, 'requests are answered');

        return $load;
    }

    private function awaitProcesses(int $count): void
    {
        Eventually::holds(fn(): bool => \count($this->workers()) === $count, 'those before are gone', 10.0);
    }

    /** Kills a process, and returns when the supervisor knows it. */
    private function kill(int $pid): void
    {
        posix_kill($pid, \SIGKILL);
        $this->awaitLogged("(pid {$pid}) was killed by signal 9; another takes its place");
    }

    /**
     * Waits until $count processes run the application and all others have ended.
     *
     * @return list<int> pids of the processes that run the application, then that of the admin process
     */
    private function processes(int $count): array
    {
        $this->awaitProcesses($count);
        do {
            preg_match_all(
                '/^spindle_process_memory_bytes\{pid="(\d+)"/m',
                $this->get('/metrics', $this->adminAddress)->body,
                $match,
            );
            $workers = array_map(intval(...), $match[1]);
        } while (\count($workers) !== $count - 1);

        return [...$workers, ...array_values(array_diff($this->workers(), $workers))];
    }

    /** @return array<string, int> requests by route */
    private function routes(): array
    {
        $samples = (new Exposed($this->get('/metrics', $this->adminAddress)->body))->samples;

        return array_map(
            intval(...),
            array_filter(
                $samples,
                static fn(string $name): bool => str_starts_with($name, 'spindle_http_route_requests_total{'),
                \ARRAY_FILTER_USE_KEY,
            ),
        );
    }

    /** @return list<int> values of {@see METRICS} */
    private function scrape(): array
    {
        $samples = (new Exposed($this->get('/metrics', $this->adminAddress)->body))->samples;

        return array_map(static fn(string $metric): int => (int) ($samples[$metric] ?? 0), self::METRICS);
    }
}
