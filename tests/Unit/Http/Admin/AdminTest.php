<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Log\LogLevel;
use Spindle\Http\Admin;
use Spindle\Http\Internal\Admin\CombinedStatistics;
use Spindle\Http\Internal\Admin\Readiness;
use Spindle\Http\Internal\Admin\ServerOverview;
use Spindle\Http\Internal\Process\EndedProcessTotals;
use Spindle\Http\Internal\Server\Checks;
use Spindle\Http\Response;
use Spindle\Tests\Unit\Http\Middleware\Records;

final class AdminTest extends TestCase
{
    public function testMetricsAreOfPrometheussTextFormat(): void
    {
        $response = self::get(Admin::from(new FixedOverview()), '/metrics');

        self::assertSame(
            [200, 'text/plain; version=0.0.4; charset=utf-8'],
            [$response->getStatusCode(), $response->getHeaderLine('Content-Type')],
        );
        self::assertSame('1', (new Exposed((string) $response->getBody()))->samples['spindle_processes']);
    }

    public function testCountersOfEndedProcessesArePartOfTheMetrics(): void
    {
        $past = new EndedProcessTotals();
        $past->add(FixedOverview::process(pid: 1, answered: [200 => 5])->toJson());
        $overview = self::createStub(ServerOverview::class);
        $overview->method('statistics')->willReturn(new CombinedStatistics(
            [FixedOverview::process(pid: 2, answered: [200 => 1])],
            $past->totals,
        ));
        $admin = Admin::from($overview);

        self::assertSame(
            '6',
            (new Exposed(
                (string) self::get($admin, '/metrics')->getBody(),
            ))->samples['spindle_http_requests_total{status="200"}'],
        );
    }

    public function testHealthzIsOkWhenAllChecksSucceed(): void
    {
        $response = self::get(
            Admin::from(new FixedOverview(checks: ['database' => null, 'broker' => null])),
            '/healthz',
        );

        self::assertSame([200, "ok\n"], [$response->getStatusCode(), (string) $response->getBody()]);
    }

    public function testACheckThatFailsOrIsLateIsNamedAndItsMessageIsNot(): void
    {
        $checks = ['database' => 'no connection to 10.1.2.3 as "app"', 'broker' => null, 'disk' => Checks::LATE];
        $response = self::get(Admin::from(new FixedOverview(checks: $checks)), '/healthz');

        self::assertSame(
            [503, 'application/json'],
            [$response->getStatusCode(), $response->getHeaderLine('Content-Type')],
        );
        self::assertSame(
            '{"status":"failing","checks":{"database":"failed","broker":"ok","disk":"late"}}',
            (string) $response->getBody(),
        );
    }

    public function testWhyACheckFailsIsLoggedOnceAndSoIsThatItSucceedsAgain(): void
    {
        $overview = new FixedOverview(checks: ['database' => 'gone', 'broker' => null]);
        $log = new Records();
        $admin = Admin::from($overview)->withLogger($log);
        self::get($admin, '/healthz');
        self::get($admin, '/healthz');
        self::assertSame(
            [['database', 'gone']],
            array_map(
                static fn(array $record): array
                    => [$record['context']['check'] ?? '', $record['context']['reason'] ?? ''],
                $log->all,
            ),
        );
        $overview->checks = ['database' => 'away', 'broker' => null];
        self::get($admin, '/healthz');
        $overview->checks = ['database' => null, 'broker' => null];
        self::get($admin, '/healthz');
        self::get($admin, '/healthz');

        self::assertSame([LogLevel::WARNING, LogLevel::WARNING, LogLevel::NOTICE], array_column($log->all, 'level'));
    }

    /** @return iterable<string, array{Readiness}> */
    public static function problems(): iterable
    {
        yield 'starting' => [new Readiness('starting')];
        yield 'draining' => [new Readiness('draining')];
        yield 'full' => [new Readiness('full')];
        yield 'stuck' => [new Readiness('stuck')];
    }

    #[DataProvider('problems')]
    public function testHealthzFailsWhileNoProcessAcceptsRequests(Readiness $condition): void
    {
        $response = self::get(Admin::from(new FixedOverview(condition: $condition)), '/healthz');

        self::assertSame(
            [503, "{\"status\":\"{$condition->problem}\",\"checks\":{}}"],
            [$response->getStatusCode(), (string) $response->getBody()],
        );
    }

    public function testLivezIsOkEvenIfAProcessIsMissingAndACheckFails(): void
    {
        $response = self::get(Admin::from(new FixedOverview([], ['database' => 'gone'])), '/livez');

        self::assertSame([200, "ok\n"], [$response->getStatusCode(), (string) $response->getBody()]);
    }

    public function testTheStatusPageIsOffByDefault(): void
    {
        $admin = Admin::from(new FixedOverview());

        self::assertSame(
            [404, 404],
            [self::get($admin, '/')->getStatusCode(), self::get($admin, '/events')->getStatusCode()],
        );
    }

    public function testWhatIsAddedToItKeepsTheRest(): void
    {
        $log = new Records();
        $admin = Admin::from(new FixedOverview(checks: ['database' => 'gone']))->withLogger($log)->withStatusPage();
        self::get($admin, '/healthz');
        self::assertCount(1, $log->all);

        self::assertSame(200, self::get($admin->withLogger($log), '/')->getStatusCode());
    }

    public function testAnUnknownPathIsNotFound(): void
    {
        self::assertSame(
            404,
            self::get(Admin::from(new FixedOverview())->withStatusPage(), '/secrets')->getStatusCode(),
        );
    }

    /** @return iterable<array{string}> */
    public static function paths(): iterable
    {
        yield from [['/'], ['/events'], ['/metrics'], ['/healthz'], ['/livez']];
    }

    #[DataProvider('paths')]
    public function testPostIsNotAllowed(string $path): void
    {
        $response = Admin::from(new FixedOverview())->withStatusPage()->handle(new ServerRequest('POST', $path));

        self::assertSame([405, 'GET, HEAD'], [$response->getStatusCode(), $response->getHeaderLine('Allow')]);
    }

    #[DataProvider('paths')]
    public function testCachesMustNotStoreResponses(string $path): void
    {
        $response = Admin::from(new FixedOverview())->withStatusPage()->handle(new ServerRequest('HEAD', $path));

        self::assertSame([200, 'no-store'], [$response->getStatusCode(), $response->getHeaderLine('Cache-Control')]);
    }

    public function testThePageLetsNothingInButItsOwnStyleAndScripts(): void
    {
        $response = self::get(Admin::from(new FixedOverview())->withStatusPage(), '/');
        $html = (string) $response->getBody();
        self::assertSame(4, preg_match_all('~<(style|script)>(.+?)</\1>~s', $html, $parts, \PREG_SET_ORDER));
        $hashes = ['style' => '', 'script' => ''];
        foreach ($parts as [, $kind, $content]) {
            $hashes[$kind] .= " 'sha256-" . base64_encode(hash('sha256', $content, true)) . "'";
        }
        $policy = explode('; ', $response->getHeaderLine('Content-Security-Policy'));

        self::assertContains("default-src 'none'", $policy);
        self::assertContains("style-src{$hashes['style']}", $policy);
        self::assertContains("script-src{$hashes['script']}", $policy);
        self::assertSame(
            0,
            preg_match(
                '~(?:src|href|@import|url)\W+(?:https?:)?//|unsafe~',
                $html . $response->getHeaderLine('Content-Security-Policy'),
            ),
        );
    }

    /** @return iterable<string, array{int, string, 2?: list<string>}> the status, the Host field, allowed names */
    public static function hosts(): iterable
    {
        yield 'a name of another site' => [421, 'evil.example'];
        yield 'the same with a port' => [421, 'evil.example:9085'];
        yield 'a name that ends like one of the loopback interface' => [421, 'notlocalhost'];
        yield 'a name that begins like an address' => [421, '127.0.0.1.evil.example'];
        yield 'the loopback interface' => [200, 'localhost:9085'];
        yield 'in capitals and with a dot' => [200, 'LocalHost.'];
        yield 'a name below it' => [200, 'spindle.localhost:9085'];
        yield 'IPv4' => [200, '127.0.0.1:9085'];
        yield 'IPv4 of another interface' => [200, '10.1.2.3:9085'];
        yield 'IPv6' => [200, '[::1]:9085'];
        yield 'none' => [200, ''];
        yield 'one that is allowed' => [200, 'Server:9085', ['server', 'other']];
        yield 'one that is not' => [421, 'third:9085', ['server', 'other']];
        yield 'any' => [200, 'evil.example', ['*']];
    }

    /** @param list<string> $allowed */
    #[DataProvider('hosts')]
    public function testOnlyRequestsForAcceptedHostsAreAnswered(int $status, string $host, array $allowed = []): void
    {
        $admin = Admin::from(new FixedOverview())->withHosts(...$allowed)->withLogger(new Records())->withStatusPage();
        foreach (['/', '/metrics', '/healthz', '/livez', '/events'] as $path) {
            $response = $admin->handle(new ServerRequest('GET', ($host === '' ? '' : "http://{$host}") . $path));

            self::assertSame($status, $response->getStatusCode());
        }
    }

    public function testClientsOfAUnixSocketMayUseAnyHostName(): void
    {
        $request = new ServerRequest('GET', 'http://anything/livez', serverParams: ['REMOTE_ADDR' => 'unix:']);

        self::assertSame(200, Admin::from(new FixedOverview())->handle($request)->getStatusCode());
    }

    private static function get(Admin $admin, string $path): Response
    {
        return $admin->handle(new ServerRequest('GET', $path));
    }
}
