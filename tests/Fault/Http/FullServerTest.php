<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Amp\DeferredFuture;
use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Spindle\Http\Admin;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Middleware\ProxyHeaders;
use Spindle\Http\Middleware\TrustedProxies;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;

use function Amp\delay;

/** More connections than a server has room for: which ones are closed, which ones wait, and what operators see. */
final class FullServerTest extends HttpServerTestCase
{
    use OwnDirectory;

    /** Seconds after which a connection that keeps the server waiting may be closed for another, and a little more. */
    private const PATIENCE = 0.6;

    private const OTHER = '127.0.0.2';

    /** @var DeferredFuture<null> for which handlers of /wait wait */
    private DeferredFuture $gate;

    protected function setUp(): void
    {
        $this->gate = new DeferredFuture();
    }

    #[After(6)]
    protected function endHandlers(): void
    {
        if (!$this->gate->isComplete()) {
            $this->gate->complete();
        }
    }

    public function testTheConnectionThatHasBeenIdleLongestMakesRoom(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnections: 3, maxConnectionsPerAddress: 10));
        $clients = array_map(fn(): RawClient => $this->idle(), range(1, 3));
        delay(self::PATIENCE);
        self::assertSame(
            200,
            $clients[0]->get('/')->response()->status,
            'it is not the one that has been idle longest',
        );

        self::assertSame(200, $this->client()->get('/')->response()->status);
        self::assertTrue($clients[1]->isEnded());
        self::assertSame(
            [200, 200],
            [$clients[0]->get('/')->response()->status, $clients[2]->get('/')->response()->status],
        );
        $statistics = $this->server()->statistics();
        self::assertSame(
            [4, 1, 0, 3, 3],
            [
                $statistics->acceptedConnections,
                $statistics->evictedConnections,
                $statistics->rejectedConnections,
                $statistics->connections,
                $statistics->maxConnections,
            ],
        );
    }

    /**
     * @return iterable<string, array{\Closure(RawClient): mixed, 1?: bool}> how clients keep the server waiting, and
     *         whether over TLS
     */
    public static function states(): iterable
    {
        $post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n";
        yield 'nothing was sent' => [static fn() => null];
        yield 'a part of a head' => [static fn(RawClient $client) => $client->send("GET / HTTP/1.1\r\nHo")];
        yield 'a part of the next head' => [static fn(RawClient $client) => $client->get('/')->send('G')->response()];
        yield 'the rest of an unread body' => [
            static fn(RawClient $client) => $client->send("{$post}x")->response(),
        ];
        yield 'the end of a connection that was refused' => [
            static fn(RawClient $client) => $client->send("no request\r\n\r\n")->response(),
        ];
        yield 'a TLS handshake' => [static fn() => null, true];
        yield 'a part of a TLS handshake' => [
            static fn(RawClient $client) => $client->send("\x16\x03\x01\x02\x00\x01\x00\x01"),
            true,
        ];
    }

    /** @param \Closure(RawClient): mixed $begin */
    #[DataProvider('states')]
    public function testConnectionsThatKeepTheServerWaitingMakeRoom(\Closure $begin, bool $secure = false): void
    {
        [$certificate, $key] = $secure ? (new Certificates($this->path()))->forServer('server.test') : [null, null];
        $options = new HttpServerOptions(
            $certificate,
            $key,
            headTimeout: 60,
            tlsTimeout: 60,
            maxConnections: 3,
            maxConnectionsPerAddress: 10,
        );
        $this->serve($this->answer(...), $options, $secure ? 'tls://127.0.0.1:0' : '127.0.0.1:0');
        $slow = array_map(fn(): RawClient => $this->client(), range(1, 3));
        array_map($begin, $slow);
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 3, 'all are taken');
        $begun = microtime(true);
        $client = $secure ? $this->clients[] = RawClient::connectSecurely($this->address) : $this->client();

        self::assertSame(200, $client->get('/')->response()->status);
        self::assertLessThan(1.8, microtime(true) - $begun, 'it is before any deadline');
        self::assertSame(1, $this->server()->statistics()->evictedConnections);
    }

    public function testAConnectionThatIsNewIsNotClosedBeforeItCouldSendItsRequest(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnections: 4, maxConnectionsPerAddress: 100));
        $clients = array_map(fn(): RawClient => $this->client(), range(1, 12));
        foreach ($clients as $client) {
            $client->get('/'); // all clients, before the server's next turn
        }

        foreach ($clients as $client) {
            self::assertSame(200, $client->response()->status);
            $client->close();
        }
        $statistics = $this->server()->statistics();
        self::assertSame([12, 0], [$statistics->acceptedConnections, $statistics->evictedConnections]);
    }

    public function testWithoutIdleConnectionsTheNextResponseEndsItsConnection(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnections: 2, maxConnectionsPerAddress: 10));
        $busy = [$this->client()->get('/wait'), $this->client()->get('/wait')];
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 2, 'both are handled');
        $waiting = $this->client()->get('/');
        delay(self::PATIENCE);
        $statistics = $this->server()->statistics();
        self::assertSame([2, 0], [$statistics->acceptedConnections, $statistics->evictedConnections]);
        $this->gate->complete();

        foreach ($busy as $client) {
            $response = $client->response();
            self::assertSame(['answer', 'close'], [$response->body, $response->header('connection')]);
            $client->close();
        }
        $response = $waiting->response();
        self::assertSame(['answer', true], [$response->body, $response->keepsConnection()]);
        self::assertTrue($this->client()->get('/')->response()->keepsConnection(), 'now that there is room');
    }

    /** @return iterable<string, array{string}> bytes after which clients send no more */
    public static function delays(): iterable
    {
        yield 'a body that does not come' => ["POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx"];
        yield 'an answer that is not taken' => ["GET /large HTTP/1.1\r\nHost: a\r\n\r\n"];
    }

    #[DataProvider('delays')]
    public function testClientsThatAreTooSlowMakeRoom(string $request): void
    {
        $this->serve(
            $this->answer(...),
            new HttpServerOptions(rateWindow: 60, maxConnections: 3, maxConnectionsPerAddress: 10),
        );
        $quick = $this->client()->send("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
        $left = 2_000_000;
        $sending = EventLoop::repeat(0.05, static function () use ($quick, &$left): void {
            $quick->send(str_repeat('x', 4_000));
            $left -= 4_000;
        });
        $slow = [$this->client()->send($request), $this->client()->send($request)];
        Eventually::holds(fn(): bool => $this->server()->statistics()->acceptedConnections === 3, 'all are taken');

        self::assertSame(200, $this->client()->get('/')->response()->status);
        self::assertSame(1, $this->server()->statistics()->evictedConnections);
        EventLoop::cancel($sending);
        $quick->sendConcurrently(str_repeat('x', $left));
        self::assertSame('answer', $quick->response()->body);
        unset($slow);
    }

    #[DataProvider('delays')]
    public function testClientsThatAreTooSlowMakeRoomForOthersOfTheirAddress(string $request): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(rateWindow: 60, maxConnectionsPerAddress: 1));
        $slow = $this->client()->send($request);

        Eventually::holds(function (): bool {
            $client = RawClient::connect($this->address)->get('/');
            $isAdmitted = !$client->isEnded();
            $client->close();

            return $isAdmitted;
        }, 'the slow one makes room', 30);
        $statistics = $this->server()->statistics();
        self::assertSame([1, 2], [$statistics->evictedConnections, $statistics->acceptedConnections]);
        unset($slow);
    }

    public function testSlowUploadsCanNotUseUpTheRequestsInFlight(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(rateWindow: 60, maxInFlight: 2));
        $slow = array_map(
            fn(): RawClient => $this->client()->send("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"),
            range(1, 2),
        );
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 2, 'both are handled');
        $client = $this->client();

        Eventually::holds(
            static fn(): bool => $client->get('/')->response()->status === 200,
            'there is room for another request',
            30,
        );
        self::assertSame(2, $this->server()->statistics()->evictedConnections);
        unset($slow);
    }

    /** Half of the room is for others, whatever the connections of one address do. */
    #[DataProvider('occupations')]
    public function testOneAddressCanNotShutOutOthers(string $requests): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnections: 8));
        $greedy = array_map(fn(): RawClient => $this->client()->send($requests), range(1, 8));
        Eventually::holds(
            fn(): bool => $this->server()->statistics()->rejectedConnections === 4,
            'half of them are closed',
        );
        $begun = microtime(true);

        for ($i = 0; $i < 4; ++$i) {
            self::assertSame(200, $this->elsewhere()->get('/')->response()->status);
        }
        self::assertLessThan(0.4, microtime(true) - $begun, 'none had to wait');
        $statistics = $this->server()->statistics();
        self::assertSame([0, 8], [$statistics->evictedConnections, $statistics->connections]);
        // On a busy machine, the log also has a warning about a blocked event loop.
        $isWarning = static fn(string $message): bool => str_contains($message, 'maxConnectionsPerAddress');
        $warnings = array_values(array_filter($this->log()->messages(), $isWarning));
        self::assertCount(1, $warnings);
        self::assertStringContainsString('IPv4 address or IPv6 /64 network', $warnings[0]);
        unset($greedy);
    }

    /** @return iterable<string, array{string}> */
    public static function occupations(): iterable
    {
        yield 'requests that take long' => ["GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'many requests at once' => [str_repeat("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", 50)];
        yield 'a body that comes slowly' => ["POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"];
        yield 'an answer that is not read' => ["GET /large HTTP/1.1\r\nHost: a\r\n\r\n"];
    }

    public function testAnAddressAtItsLimitLosesItsOwnIdleConnections(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnections: 8));
        $other = $this->elsewhere()->get('/');
        $other->response();
        $clients = array_map(fn(): RawClient => $this->idle(), range(1, 4));
        delay(self::PATIENCE);

        self::assertSame(200, $this->client()->get('/')->response()->status);
        self::assertTrue($clients[0]->isEnded());
        self::assertSame(200, $other->get('/')->response()->status, 'though it was idle for longer');
        $statistics = $this->server()->statistics();
        self::assertSame([1, 0], [$statistics->evictedConnections, $statistics->rejectedConnections]);
    }

    public function testConnectionsOfOneAddressAreLimited(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnectionsPerAddress: 2));
        [$first, $second, $third] = [$this->client()->get('/wait'), $this->client()->get('/wait'), $this->client()];

        self::assertSame('', $third->rest());
        self::assertSame(1, $this->server()->statistics()->rejectedConnections);
        $this->gate->complete();
        self::assertSame([200, 200], [$first->response()->status, $second->response()->status]);
        $first->close();
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 1, 'it has ended');
        self::assertSame(200, $this->client()->get('/')->response()->status);
    }

    public function testATrustedProxyHasNoLimit(): void
    {
        $proxies = new TrustedProxies(['127.0.0.1'], ProxyHeaders::XForwarded);
        $this->serve(new MiddlewareStack($this->answer(...), $proxies), new HttpServerOptions(maxConnections: 6));
        $this->client()->get('/')->response();
        $busy = array_map(fn(): RawClient => $this->client()->get('/wait'), range(1, 5));
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 5, 'all are handled');
        $this->gate->complete();

        self::assertSame(
            [200, 200, 200, 200, 200],
            array_map(static fn(RawClient $client): int => $client->response()->status, $busy),
        );
        self::assertSame(0, $this->server()->statistics()->rejectedConnections);
    }

    public function testTheConnectionsOfAProxyAreClosedLast(): void
    {
        $proxies = new TrustedProxies(['127.0.0.1'], ProxyHeaders::XForwarded);
        $this->serve(new MiddlewareStack($this->answer(...), $proxies), new HttpServerOptions(maxConnections: 2));
        $proxied = $this->idle();
        $direct = $this->elsewhere()->get('/');
        $direct->response();
        delay(self::PATIENCE);

        self::assertSame(200, $this->client()->get('/')->response()->status);
        self::assertTrue($direct->isEnded());
        self::assertSame(200, $proxied->get('/')->response()->status);
    }

    public function testTheServerIsFullWhenConnectionsHaveHadToWaitForASecond(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnections: 2, maxConnectionsPerAddress: 10));
        $admin = Admin::of($this->server());
        $health = static fn(): array => [
            ($response = $admin->handle(new ServerRequest('GET', '/healthz')))->getStatusCode(),
            (string) $response->getBody(),
        ];
        $busy = [$this->client()->get('/wait'), $this->client()->get('/wait')];
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 2, 'both are handled');
        delay(1.3);
        self::assertSame([200, "ok\n"], $health(), 'nothing waits');
        $waiting = $this->client()->get('/');
        delay(0.3);
        self::assertSame([200, "ok\n"], $health(), 'not for long');

        Eventually::holds(
            static fn(): bool => $health() === [503, '{"status":"full","checks":{}}'],
            'it says that it is full',
        );
        self::assertTrue($this->server()->statistics()->full);
        self::assertStringContainsString(
            "spindle_processes_full 1\n",
            (string) $admin->handle(new ServerRequest('GET', '/metrics'))->getBody(),
        );
        $this->gate->complete();
        array_map(static fn(RawClient $client) => $client->response(), $busy);
        array_map(static fn(RawClient $client) => $client->close(), $busy);
        self::assertSame(200, $waiting->response()->status);
        Eventually::holds(static fn(): bool => $health() === [200, "ok\n"], 'it is not any more');
    }

    public function testAServerThatCanMakeRoomIsNotFull(): void
    {
        $this->serve($this->answer(...), new HttpServerOptions(maxConnections: 2, maxConnectionsPerAddress: 10));
        $end = microtime(true) + 2.0;
        while (microtime(true) < $end) {
            $this->idle();
            self::assertFalse($this->server()->statistics()->full);
        }
        self::assertGreaterThan(2, $this->server()->statistics()->evictedConnections);
    }

    private function idle(): RawClient
    {
        $client = $this->client()->get('/');
        $client->response();

        return $client;
    }

    /** Connects from another address. */
    private function elsewhere(): RawClient
    {
        return $this->clients[] = RawClient::connect($this->address, ['socket' => ['bindto' => self::OTHER . ':0']]);
    }

    private function answer(ServerRequestInterface $request): Response
    {
        match ($request->getRequestTarget()) {
            '/wait' => $this->gate->getFuture()->await(),
            '/read' => $request->getBody()->getContents(),
            default => null,
        };

        return Response::text($request->getRequestTarget() === '/large' ? str_repeat('x', 20_000_000) : 'answer');
    }
}
