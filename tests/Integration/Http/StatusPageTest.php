<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Spindle\Http\Admin;
use Spindle\Http\Application;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServer;
use Spindle\Http\Internal\Admin\CombinedStatistics;
use Spindle\Http\Internal\Admin\Readiness;
use Spindle\Http\Internal\Admin\ServerOverview;
use Spindle\Http\Internal\Admin\Totals;
use Spindle\Http\MatchedRoute;
use Spindle\Http\Response;
use Spindle\Statistics;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Unit\Http\Admin\FixedOverview;
use Symfony\Component\Process\Process;

use function Amp\delay;

#[Group('full')]
#[RequiresPhpExtension('pcntl')]
final class StatusPageTest extends TestCase implements Statistics
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;

    private const STATE = "document.getElementById('state')";

    private ?Chromium $browser = null;
    private ?Process $server = null;

    /** Addresses of the server and its admin server. */
    private string $address = '127.0.0.1:0';
    private string $admin = '127.0.0.1:0';

    #[After(5)]
    protected function endBrowserAndServer(): void
    {
        $this->browser?->close();
        $this->server?->stop(5, \SIGKILL);
        $this->browser = $this->server = null;
    }

    public function testThePageShowsTheTrafficThatWasMade(): void
    {
        $this->serve();
        $page = $this->page();
        $this->request('/', 30);
        $this->request('/missing', 4);
        $this->request('/fail', 3);
        $page->await("document.getElementById('fact-requests').textContent === '37'");
        $page->await("document.querySelector('#routes tbody tr:nth-child(3)') !== null");

        self::assertSame(
            ['3', '0', '1'],
            array_map(
                static fn(string $fact): mixed
                    => $page->evaluate("document.getElementById('fact-{$fact}').textContent"),
                ['server-errors', 'refused', 'processes'],
            ),
        );
        self::assertSame(
            [['/', '30', '0'], ['/missing', '4', '0'], ['<img src=x onerror=alert(1)>', '3', '3']],
            self::columns($page, 'routes', 0, 1, 4),
        );
        self::assertSame([[(string) $this->server?->getPid(), '37']], self::columns($page, 'processes', 0, 2));
        self::assertSame(
            'jobs | 3 of 4 in use | waiting | 1,234 | spent | 1.5 s | done | 5 | wait seconds ≤ 0.5 | 7',
            $page->evaluate(<<<'JS'
                [...document.querySelectorAll('.pool :is(h3, .head .when, dt, dd:nth-of-type(even))')]
                    .map(node => node.textContent)
                    .join(' | ')
                JS),
        );
        self::assertSame('75%', $page->evaluate("document.querySelector('.meter i').style.width"));
        self::assertSame([], $page->complaints);
    }

    public function testTheChartsShowTheLastSeconds(): void
    {
        $this->serve();
        $page = $this->page();
        $this->request('/', 20);
        foreach ([
            'requests path.line',
            'latency path.line',
            'connections path.line',
            'lag path.line',
            'memory path.line',
            'answers path.bars',
        ] as $path) {
            $page->await("document.querySelector('#chart-{$path}').getAttribute('d').includes('M')");
        }
        $page->await("document.querySelector('#chart-requests path.line').getAttribute('d').split('L').length >= 3");
        $heights = self::heights($page);
        self::assertSame(0.0, min($heights), 'nothing was asked for at first or in the end');
        self::assertGreaterThan(0.0, max($heights), 'and something in between');

        $page->evaluate(<<<'JS'
            (() => {
                const { right, top, width } = document.querySelector('#chart-requests svg').getBoundingClientRect();
                const move = { clientX: right - width / 15, clientY: top + 5 };
                document.querySelector('#chart-requests .plot').dispatchEvent(new PointerEvent('pointermove', move));
            })()
            JS);
        self::assertMatchesRegularExpression(
            '/^\d+ s ago$/D',
            self::text($page->evaluate("document.querySelector('#chart-memory .when').textContent")),
            'all charts tell of the second that is pointed at',
        );
        self::assertSame([], $page->complaints);
    }

    public function testThePageSuitsTheScreen(): void
    {
        $this->serve();
        $page = $this->page();
        $background = static fn(): string
            => self::text($page->evaluate('getComputedStyle(document.body).backgroundColor'));
        $light = $background();
        $page->call(
            'Emulation.setEmulatedMedia',
            ['features' => [['name' => 'prefers-color-scheme', 'value' => 'dark']]],
        );
        self::assertNotSame($light, $background());
        foreach ([1280, 768, 360] as $width) {
            $page->call(
                'Emulation.setDeviceMetricsOverride',
                ['width' => $width, 'height' => 800, 'deviceScaleFactor' => 1, 'mobile' => $width < 400],
            );
            self::assertSame($width, $page->evaluate('document.documentElement.scrollWidth'), 'nothing sticks out');
        }
        self::assertSame([], $page->complaints);
    }

    public function testThePageShowsDrainingAndEndedAndReconnects(): void
    {
        $this->serve();
        $page = $this->page();
        $slow = stream_socket_client("tcp://{$this->address}");
        self::assertIsResource($slow);
        fwrite($slow, "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
        $page->await("document.querySelector('#chart-connections .value:last-child b').textContent === '1'");
        $this->server?->signal(\SIGTERM);
        $page->await(self::STATE . ".dataset.state === 'draining'");
        self::assertSame([], $page->complaints);
        self::assertStringContainsString('slow', (string) stream_get_contents($slow));
        Eventually::holds(
            fn(): bool => $this->server?->isRunning() === false,
            'the open page does not hold up its end',
            15,
        );
        fclose($slow);

        self::assertMatchesRegularExpression(
            '/^Disconnected since \d\d:\d\d:\d\d$/D',
            self::text($page->await(self::STATE . ".dataset.state === 'lost' && " . self::STATE . '.textContent')),
        );
        self::assertStringStartsWith('Disconnected since', self::text($page->evaluate('document.title')));
        $this->beOverloaded();
        $this->serve();
        $page->await(self::STATE . ".dataset.state === 'live'");
        $page->await("document.getElementById('fact-requests').textContent === '0'");
        self::assertSame(0.0, min(self::heights($page)), 'restarted counters give no negative rate');
    }

    public function testThePageOutlivesItsProcesses(): void
    {
        $this->serve('processesThatEnd');
        $page = $this->page();
        $page->await("document.querySelector('#processes').hidden");
        $page->await(self::STATE . ".textContent === 'Starting'");

        self::assertSame(
            ['7', '0'],
            [
                $page->evaluate("document.getElementById('fact-requests').textContent"),
                $page->evaluate("document.getElementById('fact-processes').textContent"),
            ],
        );
        self::assertSame(
            'opened | 2',
            $page->evaluate(
                "[...document.querySelectorAll('.pool :is(dt, dd:nth-of-type(even))')].map(node =>"
                    . " node.textContent).join(' | ')",
            ),
        );
        self::assertSame([], $page->complaints);
    }

    /** Runs in another process. */
    public static function main(string $address, string $admin): void
    {
        $server = new HttpServer(new Application(self::handle(...), ['jobs' => new self('pool')]));
        $operators = new HttpServer(Admin::of($server)->withStatusPage());
        $addresses = [...$server->start($address), ...$operators->start($admin)];
        EventLoop::onSignal(\SIGTERM, static function (string $watcher) use ($server, $operators): void {
            EventLoop::cancel($watcher);
            $server->close();
            $operators->close();
        });
        echo implode(' ', $addresses), "\n";
        EventLoop::run();
    }

    /** Runs in another process. */
    public static function processesThatEnd(string $address, string $admin): void
    {
        $overview = new class implements ServerOverview {
            private int $asked = 0;

            public function statistics(): CombinedStatistics
            {
                $process = FixedOverview::process(
                    answered: [200 => 7],
                    pools: ['db' => ['in_use' => 1, 'max' => 2, 'opened_total' => 2]],
                );
                $past = new Totals();
                $past->addCounters($process);

                return ++$this->asked > 2 ? new CombinedStatistics([], $past) : new CombinedStatistics([$process]);
            }

            public function readiness(): Readiness
            {
                return new Readiness('');
            }
        };
        $operators = new HttpServer(Admin::from($overview)->withStatusPage());
        EventLoop::unreference(EventLoop::onSignal(\SIGTERM, static fn() => exit(0)));
        echo $address, ' ', implode($operators->start($admin)), "\n";
        EventLoop::run();
    }

    public function statistics(): array
    {
        return [
            'in_use' => 3,
            'max' => 4,
            'waiting' => 1234,
            'done_total' => 5,
            'wait_seconds_le_0.5_total' => 7,
            'spent_seconds' => 1.5,
        ];
    }

    private static function handle(ServerRequestInterface $request): Response
    {
        $path = $request->getUri()->getPath();
        $route = $request->getAttribute(MatchedRoute::class);
        \assert($route instanceof MatchedRoute);
        $route->setName($path === '/fail' ? '<img src=x onerror=alert(1)>' : $path);
        if ($path === '/slow') {
            delay(4.0);
        }

        return match ($path) {
            '/missing' => throw new HttpException(404, 'none'),
            '/fail' => Response::text('no', 500),
            default => Response::text($path),
        };
    }

    /** Starts a server, on the previous address if there is one. */
    private function serve(string $method = 'main'): void
    {
        $this->server = $server = Host::start(self::class . "::{$method}", [$this->address, $this->admin]);
        Eventually::holds(static fn(): bool => str_contains($server->getOutput(), "\n"), 'the server listens', 20);
        [$this->address, $this->admin] = explode(' ', trim(str_replace('tcp://', '', $server->getOutput())));
    }

    /** Answers once with 503, like a proxy whose server is gone. */
    private function beOverloaded(): void
    {
        $socket = stream_socket_server("tcp://{$this->admin}");
        self::assertIsResource($socket);
        $client = stream_socket_accept($socket, 30);
        self::assertIsResource($client);
        fread($client, 4096);
        fwrite($client, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        fclose($client);
        fclose($socket);
    }

    private function page(): Chromium
    {
        $this->browser = $page = new Chromium(
            Chromium::program() ?? self::markTestSkipped('Chromium is not installed'),
            $this->path(),
        );
        $page->open("http://{$this->admin}/");
        $page->await(self::STATE . ".dataset.state === 'live'");

        return $page;
    }

    private function request(string $path, int $times): void
    {
        $context = stream_context_create(['http' => ['ignore_errors' => true]]);
        for ($i = 0; $i < $times; ++$i) {
            file_get_contents("http://{$this->address}{$path}", false, $context);
        }
    }

    /** @return list<list<mixed>> contents of these columns of a table */
    private static function columns(Chromium $page, string $table, int ...$columns): array
    {
        $numbers = json_encode(array_values($columns), \JSON_THROW_ON_ERROR);
        /** @var list<list<mixed>> $rows */
        $rows = $page->evaluate(
            "[...document.querySelectorAll('#{$table} tbody tr')].map(row => {$numbers}"
                . '.map(column => row.cells[column].textContent))',
        );

        return $rows;
    }

    /** @return non-empty-list<float> heights of the requests' line, in per cent of the chart */
    private static function heights(Chromium $page): array
    {
        /** @var non-empty-list<int|float> $fromTop */
        $fromTop = $page->evaluate(<<<'JS'
            [...document.querySelector('#chart-requests path.line').getAttribute('d')
                .matchAll(/[ML][\d.]+ (-?[\d.]+)/g)]
                .map(match => Number(match[1]))
            JS);

        return array_map(static fn(int|float $y): float => 100.0 - $y, $fromTop);
    }

    private static function text(mixed $value): string
    {
        self::assertIsString($value);

        return $value;
    }
}
