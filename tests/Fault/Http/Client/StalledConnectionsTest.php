<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http\Client;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Socket\Socket;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Client\RequestOptions;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ChangingNames;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Http\SilentNames;

use function Amp\delay;
use function Amp\Dns\createDefaultResolver;
use function Amp\Dns\dnsResolver;
use function Amp\Future\await;

/** Name servers, servers and proxies that stall before a request can be sent. */
final class StalledConnectionsTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;

    private HttpClient $client;

    /** @var list<mixed> servers, kept until the test ends */
    private array $servers = [];

    protected function setUp(): void
    {
        $this->client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 2));
    }

    protected function tearDown(): void
    {
        $this->client->kill();
        dnsResolver(createDefaultResolver());
        foreach ($this->servers as $server) {
            $server instanceof ScriptedServer ? $server->close() : null;
        }
    }

    /** @return iterable<string, array{\Closure(self): array{string, Proxy|null}, string}> */
    public static function stages(): iterable
    {
        yield 'the look-up' => [static fn(self $test): array => $test->withoutNames(), "the look-up of 'silent.test'"];
        yield 'the connection' => [static fn(self $test): array => $test->withFullServer(), 'the connection'];
        yield 'the TLS handshake' => [static fn(self $test): array => $test->withSilentServer(), 'the TLS handshake'];
        yield 'the proxy' => [static fn(self $test): array => $test->withSilentProxy(), 'the answer of the proxy'];
    }

    /** @param \Closure(self): array{string, Proxy|null} $stall returns URL and proxy */
    #[DataProvider('stages')]
    public function testAStalledConnectionIsGivenUp(\Closure $stall, string $for): void
    {
        [$url, $proxy] = $stall($this);
        $options = new RequestOptions(connectTimeout: 0.1, proxy: $proxy);
        $failure = self::thrown(ConnectFailedException::class, fn() => $this->client->get($url, options: $options));

        self::assertStringContainsString(
            "failed: no connection within 0.1 s (RequestOptions::\$connectTimeout), while waiting for {$for}",
            $failure->getMessage(),
        );
        self::assertSame(0, $this->client->statistics()['connections']);
    }

    /** @param \Closure(self): array{string, Proxy|null} $stall returns URL and proxy */
    #[DataProvider('stages')]
    public function testTheLimitOfTheWholeRequestEndsAStalledConnection(\Closure $stall, string $for): void
    {
        [$url, $proxy] = $stall($this);
        $options = new RequestOptions(timeout: 0.1, proxy: $proxy);
        $failure = self::thrown(ConnectFailedException::class, fn() => $this->client->get($url, options: $options));

        self::assertStringContainsString(
            "failed: the request was not complete within 0.1 s (RequestOptions::\$timeout), while waiting for {$for}",
            $failure->getMessage(),
        );
    }

    public function testTheWaitForAStalledConnectionCountsForTheLimitOfTheWholeRequest(): void
    {
        [$url] = $this->withSilentServer();
        $this->client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1));
        $call = static fn(HttpClient $client, RequestOptions $options) => Async::run(
            static function () use ($client, $options, $url): int {
                $get = static fn() => $client->get($url, options: $options);
                self::assertStringContainsString(
                    'while waiting for the TLS handshake',
                    self::thrown(ConnectFailedException::class, $get)->getMessage(),
                );

                return hrtime(true);
            },
        );
        $first = $call($this->client, new RequestOptions(connectTimeout: 0.4));
        $second = $call($this->client, new RequestOptions(timeout: 0.5)); // waits for the end of the first call
        $other = $call(new HttpClient(), new RequestOptions(timeout: 0.8));
        $ends = await([$first, $second, $other]);

        self::assertLessThan($ends[2], $ends[1]);
    }

    /** @param \Closure(self): array{string, Proxy|null} $stall returns URL and proxy */
    #[DataProvider('stages')]
    public function testACancellationEndsAStalledConnection(\Closure $stall): void
    {
        [$url, $proxy] = $stall($this);
        $cancellation = new DeferredCancellation();
        $request = Async::run(fn() => self::thrown(CancelledException::class, fn() => $this->client->get(
            $url,
            options: new RequestOptions(proxy: $proxy),
            cancellation: $cancellation->getCancellation(),
        )));
        delay(0.01);
        $cancellation->cancel();
        $request->await(new TimeoutCancellation(5));

        self::assertSame(0, $this->client->statistics()['connections']);
    }

    public function testAStalledConnectionDoesNotDelayAnotherOrigin(): void
    {
        [$slow] = $this->withFullServer();
        $stalled = Async::run(fn() => self::thrown(
            ConnectFailedException::class,
            fn() => $this->client->get($slow, options: new RequestOptions(connectTimeout: 0.5)),
        ));
        $fast = $this->kept(new ScriptedServer(
            ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ));
        for ($i = 0; $i < 10; ++$i) {
            self::assertSame('ok', (string) $this->client->get($fast->url())->getBody());
        }

        self::assertFalse($stalled->isComplete());
        $stalled->await(new TimeoutCancellation(5));
    }

    public function testAnAddressThatDoesNotAnswerDelaysTheOthersByAQuarterOfASecond(): void
    {
        [$url, $names] = $this->withFirstAddressFull();
        $port = (int) parse_url($url, \PHP_URL_PORT);
        $names->addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3']; // the second refuses connections
        $this->kept(new ScriptedServer(
            ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            "127.0.0.3:{$port}",
        ));
        $before = \count(get_resources('stream'));
        $request = Async::run(fn() => (string) $this->client->get(
            $url,
            options: new RequestOptions(connectTimeout: 3000),
        )->getBody());

        self::assertSame('ok', $request->await(new TimeoutCancellation(20)));
        $this->client->close();
        Eventually::holds(static fn(): bool => \count(get_resources('stream')) === $before, 'all attempts are closed');
    }

    public function testAnAddressThatRefusesDoesNotEndTheWaitForAnEarlierOne(): void
    {
        [$url] = $this->withFirstAddressFull();
        $options = new RequestOptions(connectTimeout: 0.5);
        $failure = self::thrown(ConnectFailedException::class, fn() => $this->client->get($url, options: $options));

        self::assertStringContainsString('while waiting for the connection', $failure->getMessage());
    }

    public function testACancellationClosesAllAttempts(): void
    {
        [$url, $names] = $this->withFirstAddressFull();
        $names->addresses = ['127.0.0.1', '127.0.0.1', '127.0.0.1'];
        $before = \count(get_resources('stream'));
        $failure = self::thrown(
            CancelledException::class,
            fn() => $this->client->get($url, cancellation: new TimeoutCancellation(0.4)),
        );

        self::assertCount($before, get_resources('stream'), $failure->getMessage());
    }

    /** @return array{string, ChangingNames} */
    private function withFirstAddressFull(): array
    {
        [$url] = $this->withFullServer();
        $names = new ChangingNames();
        $names->addresses = ['127.0.0.1', '127.0.0.2'];
        dnsResolver($names);

        return [str_replace('127.0.0.1', 'several.test', $url), $names];
    }

    /** @return array{string, null} */
    private function withoutNames(): array
    {
        dnsResolver(new SilentNames());

        return ['http://silent.test/', null];
    }

    /**
     * Creates a server that accepts no connections, and whose queue is full. The kernel drops further requests for a
     * connection.
     *
     * @return array{string, null}
     */
    private function withFullServer(): array
    {
        $context = stream_context_create(['socket' => ['backlog' => 0]]);
        $server = $this->kept(stream_socket_server('tcp://127.0.0.1:0', context: $context));
        \assert($server !== false);
        $address = (string) stream_socket_get_name($server, false);
        for ($i = 0; $i < 3; ++$i) {
            $flags = \STREAM_CLIENT_CONNECT | \STREAM_CLIENT_ASYNC_CONNECT;
            $this->kept(stream_socket_client("tcp://{$address}", flags: $flags));
        }

        return ["http://{$address}/", null];
    }

    /** @return array{string, null} */
    private function withSilentServer(): array
    {
        return ["https://{$this->silent()->address()}/", null];
    }

    /** @return array{string, Proxy} */
    private function withSilentProxy(): array
    {
        return ['https://any.test/', new Proxy(https: $this->silent()->url(''))];
    }

    private function silent(): ScriptedServer
    {
        return $this->kept(new ScriptedServer(static function (Socket $socket): void {
            while ($socket->read() !== null) {
                // Nothing is answered.
            }
        }));
    }

    /**
     * @template T
     *
     * @param T $server
     *
     * @return T
     */
    private function kept(mixed $server): mixed
    {
        return $this->servers[] = $server;
    }
}
