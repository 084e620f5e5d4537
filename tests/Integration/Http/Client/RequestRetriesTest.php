<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Socket\Socket;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\ConnectionLostException;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\RequestRetryPolicy;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ScriptedServer;

use function Amp\async;

/** A client with a retry policy sends failed requests again. */
final class RequestRetriesTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;

    private const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    private const BUSY = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";

    private ?ScriptedServer $server = null;

    /** @var list<string> bodies of the requests that the server has received */
    private array $bodies = [];

    protected function tearDown(): void
    {
        $this->server?->close();
    }

    public function testABusyServerIsAskedAgain(): void
    {
        $client = $this->client([self::BUSY, self::BUSY, self::OK]);
        $response = $client->get($this->url());

        self::assertSame([200, 'ok'], [$response->getStatusCode(), (string) $response->getBody()]);
        self::assertSame([1, 2, 0], self::counted($client));
    }

    public function testTheLastResponseIsReturned(): void
    {
        $client = $this->client([self::BUSY, self::BUSY, self::BUSY, self::BUSY]);
        $response = $client->sendRequest(new \Nyholm\Psr7\Request('GET', $this->url()));

        self::assertSame([503, 'busy'], [$response->getStatusCode(), (string) $response->getBody()]);
        self::assertSame([1, 3, 0], self::counted($client));
    }

    public function testALostConnectionLeadsToARetryUnlessTheRequestMayNotBeSentTwice(): void
    {
        $client = $this->client(['', self::OK, '', self::OK]);

        self::assertSame(200, $client->put($this->url(), 'text')->getStatusCode());
        self::assertSame(['text', 'text'], $this->bodies);
        self::thrown(ConnectionLostException::class, fn() => $client->post($this->url(), 'text'));
        self::assertSame([2, 1, 1], self::counted($client));
    }

    public function testAFurtherMethodCanBeAllowed(): void
    {
        $client = $this->client([self::BUSY, self::OK], new RequestRetryPolicy(1, methods: ['POST'], delay: 0));
        $body = Stream::create('a stream');
        $body->seek(2);

        self::assertSame(200, $client->post($this->url(), $body)->getStatusCode());
        self::assertSame(['a stream', 'a stream'], $this->bodies);
    }

    public function testABodyThatWasSentOnceIsNotSentAgain(): void
    {
        $client = $this->client([self::BUSY, self::OK]);
        $response = $client->put($this->url(), RequestBody::stream(['once']), ['Content-Length' => '4']);

        self::assertSame([503, 'busy'], [$response->getStatusCode(), (string) $response->getBody()]);
        self::assertSame(['once'], $this->bodies);
    }

    public function testARequestThatWasNotSentIsRetriedWithAnyMethodAndBody(): void
    {
        $client = $this->client([self::OK], new RequestRetryPolicy(100, delay: 0.01, factor: 1));
        $address = (string) $this->server?->address();
        $url = $this->url();
        $this->server?->close();
        $body = RequestBody::stream(['once']);
        $status = async(
            static fn(): int => $client->post($url, $body, ['Content-Length' => '4'])->getStatusCode(),
        );
        Eventually::holds(static fn(): bool => $client->statistics()['retried_total'] > 1, 'retries');
        $this->server = new ScriptedServer($this->script([self::OK]), $address);

        self::assertSame(200, $status->await());
        self::assertSame(['once'], $this->bodies);
        $this->server->close();
        self::thrown(ConnectFailedException::class, fn() => $client->get(
            $url,
            options: new RequestOptions(retries: new RequestRetryPolicy(2, delay: 0)),
        ));
    }

    public function testRetriesOfARedirectedRequestAreCountedTogether(): void
    {
        $redirect = "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n";
        $options = new RequestOptions(maxRedirects: 1, retries: new RequestRetryPolicy(2, delay: 0));
        $client = $this->client([self::BUSY, $redirect, self::BUSY, self::BUSY]);
        $response = $client->get($this->url(), options: $options);

        self::assertSame(503, $response->getStatusCode());
        self::assertSame([1, 2, 0], self::counted($client));
    }

    public function testAPauseThatEndsAfterTheTimeoutIsNotMade(): void
    {
        $client = $this->client([self::BUSY], new RequestRetryPolicy(3, delay: 300, jitter: 0, maxDelay: 600));
        $started = hrtime(true);

        self::assertSame(503, $client->get($this->url())->getStatusCode());
        self::assertLessThan(60, (hrtime(true) - $started) / 1e9);
    }

    public function testThePauseCanBeCancelled(): void
    {
        $client = $this->client([self::BUSY], self::longPause());
        $cancellation = new DeferredCancellation();
        self::whenPaused($client, static fn() => $cancellation->cancel());

        self::thrown(
            CancelledException::class,
            fn() => $client->get($this->url(), cancellation: $cancellation->getCancellation()),
        );
        self::assertSame(0, $client->statistics()['running']);
    }

    public function testKillEndsThePause(): void
    {
        $client = $this->client([self::BUSY], self::longPause());
        self::whenPaused($client, $client->kill(...));

        $killed = self::thrown(ClientClosedException::class, fn() => $client->get($this->url()));
        self::assertStringContainsString('the client was killed', $killed->getMessage());
    }

    public function testCloseWaitsForRetries(): void
    {
        $client = $this->client([self::BUSY, self::OK], new RequestRetryPolicy(1, delay: 0.2));
        $response = async(fn(): string => (string) $client->get($this->url())->getBody());
        Eventually::holds(static fn(): bool => $client->statistics()['retried_total'] === 1, 'a pause');
        $client->close();

        self::assertTrue($response->isComplete());
        self::assertSame('ok', $response->await());
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkDoesNotRetryTheRequestOfItsParent(): void
    {
        $client = $this->client([self::BUSY, self::OK], new RequestRetryPolicy(1, delay: 0.2));
        $answer = async(fn(): int => $client->get($this->url())->getStatusCode());
        Eventually::holds(static fn(): bool => $client->statistics()['retried_total'] === 1, 'a pause');
        $pid = pcntl_fork();
        if ($pid === 0) {
            $isRefused = false;
            try {
                $answer->await();
            } catch (ClientClosedException $refused) {
                $isRefused = str_contains($refused->getMessage(), 'this process is a fork');
            } finally {
                posix_kill((int) getmypid(), $isRefused ? \SIGKILL : \SIGABRT);
            }
        }
        self::assertSame(200, $answer->await());
        pcntl_waitpid($pid, $status);
        \assert(\is_int($status));
        self::assertSame(\SIGKILL, pcntl_wtermsig($status));
    }

    private static function longPause(): RequestRetryPolicy
    {
        return new RequestRetryPolicy(1, delay: 200, jitter: 0, maxDelay: 200);
    }

    /** @param \Closure(): void $do called when a request of the client pauses before a retry */
    private static function whenPaused(HttpClient $client, \Closure $do): void
    {
        async(static function () use ($client, $do): void {
            Eventually::holds(static fn(): bool => $client->statistics()['retried_total'] === 1, 'a pause');
            $do();
        })->ignore();
    }

    /**
     * Returns a client, and starts a server that gives these answers.
     *
     * @param list<string> $answers one for each request; '' to close the connection without an answer
     */
    private function client(array $answers, ?RequestRetryPolicy $policy = null): HttpClient
    {
        $this->server = new ScriptedServer($this->script($answers));
        $policy ??= new RequestRetryPolicy(3, delay: 0.001);

        return new HttpClient(new HttpClientOptions(request: new RequestOptions(retries: $policy)));
    }

    /**
     * @param list<string> $answers
     *
     * @return \Closure(Socket, ScriptedServer): void
     */
    private function script(array $answers): \Closure
    {
        return function (Socket $socket, ScriptedServer $server) use (&$answers): void {
            while (($request = $server->readRequest($socket)) !== null) {
                $this->bodies[] = explode("\r\n\r\n", $request, 2)[1];
                $answer = array_shift($answers);
                if ($answer === '' || $answer === null) {
                    return;
                }
                $socket->write($answer);
            }
        };
    }

    private function url(): string
    {
        return (string) $this->server?->url();
    }

    /** @return array{mixed, mixed, mixed} calls, retries, and failed calls */
    private static function counted(HttpClient $client): array
    {
        $statistics = $client->statistics();

        return [$statistics['requests_total'], $statistics['retried_total'], $statistics['failed_total']];
    }
}
