<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http\Client;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Socket\BindContext;
use Amp\Socket\Certificate;
use Amp\Socket\ServerTlsContext;
use Amp\Socket\Socket;
use Amp\TimeoutCancellation;
use GuzzleHttp\Client as Guzzle;
use GuzzleHttp\Exception\ConnectException;
use GuzzleHttp\HandlerStack;
use GuzzleHttp\Psr7\FnStream;
use Nyholm\Psr7\Request;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\ConnectionLostException;
use Spindle\Http\Client\GuzzleHandler;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientException;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\InvalidRequestException;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\FreeDescriptors;
use Spindle\Tests\Host;
use Spindle\Tests\Http\ChangingNames;
use Spindle\Tests\Http\Relay;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Streams;
use Spindle\TlsOptions;
use Symfony\Component\HttpClient\Exception\TransportException;

use function Amp\delay;
use function Amp\Dns\createDefaultResolver;
use function Amp\Dns\dnsResolver;
use function Amp\Future\await;

/** Servers that refuse, stall, close early, or send what no server should send. */
final class ServerFaultsTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    private const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    private ?ScriptedServer $server = null;

    private ?HttpClient $client = null;

    protected function tearDown(): void
    {
        $this->client?->kill();
        $this->server?->close();
    }

    public function testARefusedConnectionIsNamedAndTheRequestWasNotSent(): void
    {
        $address = Streams::unusedAddress();
        $failure = self::failure(fn() => $this->client()->get("http://user:pw@{$address}/path?secret=1"));

        self::assertInstanceOf(ConnectFailedException::class, $failure);
        self::assertSame("GET http://{$address}/path failed: connection refused", $failure->getMessage());
        self::assertSame("http://{$address}/path?secret=1", (string) $failure->getRequest()->getUri());
    }

    /** @param class-string<HttpClientException> $type */
    #[DataProvider('malformedAnswers')]
    public function testAMalformedAnswerIsRefused(string $answer, string $type, string $why): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server) use ($answer): void {
            $server->readRequest($socket);
            $socket->write($answer);
        });
        $failure = self::failure(fn() => (string) $this->client()->get($this->url())->getBody());

        self::assertInstanceOf($type, $failure, $failure->getMessage());
        self::assertStringContainsString($why, $failure->getMessage());
        // A body that was received completely leaves its connection for the next request.
        $isComplete = str_contains($why, 'compressed');
        self::assertSame((int) $isComplete, $this->client()->statistics()['connections']);
    }

    /** @return iterable<string, array{string, class-string<HttpClientException>, string}> */
    public static function malformedAnswers(): iterable
    {
        $head = "HTTP/1.1 200 OK\r\n";
        yield 'nothing' => ['', ConnectionLostException::class, 'closed the connection without an answer'];
        yield 'another protocol' => ["SSH-2.0-x\r\n\r\n", InvalidResponseException::class, 'did not answer with HTTP'];
        yield 'LF' => ["HTTP/1.1 200 OK\nContent-Length: 2\n\nok", InvalidResponseException::class, 'ends with LF'];
        yield 'LF after CRLF' => ["HTTP/1.1 200 OK\r\nA: b\n\n", InvalidResponseException::class, 'ends with LF'];
        yield 'HTTP/2' => ["HTTP/2 200\r\n\r\n", InvalidResponseException::class, 'did not answer with HTTP'];
        yield 'a part of a head' => [$head, ConnectionLostException::class, 'within the head'];
        yield 'a line without a name' => ["{$head}: x\r\n\r\n", InvalidResponseException::class, 'header line'];
        yield 'a lone line feed' => ["{$head}A: b\nC: d\r\n\r\n", InvalidResponseException::class, 'header line'];
        yield 'a long head' => [
            $head . str_repeat('A: ' . str_repeat('x', 1000) . "\r\n", 100),
            InvalidResponseException::class,
            'longer than 65536 bytes',
        ];
        yield 'many lines' => [
            $head . str_repeat("A: b\r\n", 201) . "\r\n",
            InvalidResponseException::class,
            'more than 200 header lines',
        ];
        yield 'two lengths' => [
            "{$head}Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
            InvalidResponseException::class,
            'Content-Length',
        ];
        yield 'a negative length' => ["{$head}Content-Length: -1\r\n\r\n", InvalidResponseException::class, 'Length'];
        yield 'an endless length' => [
            "{$head}Content-Length: 99999999999999999999\r\n\r\n",
            InvalidResponseException::class,
            'Content-Length',
        ];
        yield 'a length beyond the limit' => [
            "{$head}Content-Length: 999999999999\r\n\r\nx",
            InvalidResponseException::class,
            'longer than 67108864 bytes',
        ];
        yield 'a body that ends early' => [
            "{$head}Content-Length: 5\r\n\r\nabc",
            ConnectionLostException::class,
            'within the body',
        ];
        yield 'an unknown coding' => [
            "{$head}Transfer-Encoding: br, chunked\r\n\r\n",
            InvalidResponseException::class,
            'Transfer-Encoding',
        ];
        yield 'a malformed chunk' => [
            "{$head}Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
            InvalidResponseException::class,
            'size of a chunk',
        ];
        yield 'a chunk without end' => [
            "{$head}Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx",
            InvalidResponseException::class,
            'size of a chunk',
        ];
        yield 'a chunk extension without end' => [
            "{$head}Transfer-Encoding: chunked\r\n\r\n1;" . str_repeat('x', 100_000),
            InvalidResponseException::class,
            'chunk',
        ];
        yield 'trailers without end' => [
            "{$head}Transfer-Encoding: chunked\r\n\r\n0\r\n" . str_repeat("A: b\r\n", 100_000),
            InvalidResponseException::class,
            'more than 100 header fields',
        ];
        yield 'a chunk that is longer than its size' => [
            "{$head}Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
            InvalidResponseException::class,
            'does not end where its size says',
        ];
        yield 'chunks that end early' => [
            "{$head}Transfer-Encoding: chunked\r\n\r\n5\r\nab",
            ConnectionLostException::class,
            'within the body',
        ];
        yield 'a switch of protocols' => [
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            InvalidResponseException::class,
            'another protocol',
        ];
        yield 'endless interim responses' => [
            str_repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 2_500),
            InvalidResponseException::class,
            'interim responses',
        ];
        yield 'gzip that is none' => [
            "{$head}Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
            InvalidResponseException::class,
            'the body is not compressed, although its Content-Encoding is gzip',
        ];
        $hello = (string) gzencode('hello');
        foreach (['data' => 11, 'checksum' => -8, 'length' => -4] as $part => $offset) {
            $corrupt = substr_replace($hello, "\xff", $offset, 1);
            yield "gzip with wrong {$part}" => [
                "{$head}Content-Encoding: gzip\r\nContent-Length: " . \strlen($hello) . "\r\n\r\n{$corrupt}",
                InvalidResponseException::class,
                'the compressed body is corrupt: its data, checksum or length is wrong',
            ];
        }
        yield 'gzip that ends early' => [
            "{$head}Content-Encoding: gzip\r\nContent-Length: 12\r\n\r\n" . substr($hello, 0, 12),
            InvalidResponseException::class,
            'the compressed body ends too early',
        ];
    }

    #[RequiresPhpExtension('openssl')]
    #[RequiresPhpExtension('sockets')]
    #[TestWith([false])]
    #[TestWith([true])]
    public function testAResetIsNotTheEndOfAResponseWithoutLength(bool $isSecure): void
    {
        $certificates = new Certificates($this->path());
        $certificate = new Certificate(...$certificates->forServer('127.0.0.1'));
        $tls = (new ServerTlsContext())->withDefaultCertificate($certificate);
        $script = static function (Socket $socket, ScriptedServer $server) use ($isSecure): void {
            if ($isSecure) {
                $socket->setupTls();
            }
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\n\r\nid,name\n1,Ada\n2,Gra");
            $socket->read(); // until the relay closes the connection
        };
        $this->server = new ScriptedServer($script, context: (new BindContext())->withTlsContext($tls));
        $relay = new Relay($this->server->address());
        $url = str_replace('tls:', $isSecure ? 'https:' : 'http:', $relay->address);
        $options = new RequestOptions(tls: new TlsOptions($certificates->authority));
        $body = $this->client()->get($url, options: $options)->getBody();
        self::assertSame("id,name\n1,Ada\n2,Gra", $body->read(100));
        $relay->reset();
        $failure = self::failure(static fn() => $body->read(100));

        self::assertInstanceOf(ConnectionLostException::class, $failure);
        self::assertMatchesRegularExpression('/within the body of the response: .*reset/', $failure->getMessage());
        self::assertFalse($body->eof());
    }

    #[TestWith(['not compressed'])]
    #[TestWith(["\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff"])]
    public function testABodyThatCannotBeDecompressedKeepsNoConnection(string $begin): void
    {
        $this->serve(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n{$begin}",
        ));
        $body = $this->client()->get($this->url())->getBody();
        $failure = self::failure(static fn() => $body->read(100));

        self::assertInstanceOf(InvalidResponseException::class, $failure);
        self::assertSame(0, $this->client()->statistics()['connections']);
        self::assertSame($failure, self::failure(static fn() => $body->read(100)));
    }

    public function testALongEventIsAFailureOfTheResponse(): void
    {
        $event = (string) gzencode(str_repeat('data: ' . str_repeat('x', 100_000) . "\n", 180));
        $this->serve(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n{$event}",
        ));
        $failure = self::failure(fn() => iterator_to_array($this->client()->serverSentEvents($this->url())));

        self::assertInstanceOf(InvalidResponseException::class, $failure);
        self::assertStringEndsWith('failed: an event is longer than 16777216 bytes', $failure->getMessage());
    }

    #[TestWith(["Content-Length: 11\r\n\r\nhello world"])]
    #[TestWith(["Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n"])]
    public function testABodyThatArrivesAtOnceMayNotExceedTheLimit(string $rest): void
    {
        $this->serve(ScriptedServer::answering("HTTP/1.1 200 OK\r\n{$rest}"));
        $body = $this->client()->get($this->url(), options: new RequestOptions(maxBodyBytes: 10))->getBody();
        foreach ([$body->getContents(...), $body->__toString(...)] as $call) {
            $failure = self::failure($call);

            self::assertInstanceOf(InvalidResponseException::class, $failure);
            self::assertStringContainsString('the body is longer than 10 bytes', $failure->getMessage());
        }
        $body = $this->client()->get($this->url(), options: new RequestOptions(maxBodyBytes: 11))->getBody();
        self::assertSame('hello world', (string) $body);
    }

    public function testTheLimitAppliesToContentsThatReadHasReceived(): void
    {
        $this->serve(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n",
        ));
        $body = $this->client()->get($this->url(), options: new RequestOptions(maxBodyBytes: 10))->getBody();

        self::assertSame('h', $body->read(1));
        self::assertSame('ello world', $body->getContents());
        $failure = self::failure($body->__toString(...));
        self::assertInstanceOf(InvalidResponseException::class, $failure);
        self::assertStringContainsString('the body is longer than 10 bytes', $failure->getMessage());
    }

    public function testADecompressionBombIsRefusedBeforeItsBytesExist(): void
    {
        $bomb = (string) gzencode(str_repeat("\0", 100_000_000));
        $length = \strlen($bomb);
        $this->serve(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {$length}\r\n\r\n{$bomb}",
        ));
        unset($bomb);
        $options = new RequestOptions(maxBodyBytes: 1_000_000);
        $response = $this->client()->get($this->url(), options: $options);
        memory_reset_peak_usage();
        $before = memory_get_peak_usage();
        $failure = self::failure(static fn() => (string) $response->getBody());

        self::assertInstanceOf(InvalidResponseException::class, $failure);
        self::assertStringContainsString('the decompressed body is longer than 1000000 bytes', $failure->getMessage());
        self::assertLessThan(30_000_000, memory_get_peak_usage() - $before);
    }

    /** @return iterable<string, array{string, array<string, float>, string}> */
    public static function stalls(): iterable
    {
        yield 'no answer' => [
            '',
            ['firstByteTimeout' => 0.1],
            'no progress within 0.1 s (RequestOptions::$firstByteTimeout), while waiting for the response',
        ];
        yield 'half a head' => [
            "HTTP/1.1 200 OK\r\nA:",
            ['readTimeout' => 0.1],
            'no progress within 0.1 s (RequestOptions::$readTimeout), while waiting for the response',
        ];
        yield 'half a body' => [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
            ['readTimeout' => 0.1],
            'no progress within 0.1 s (RequestOptions::$readTimeout), while waiting for the rest of the response',
        ];
        yield 'the whole time' => [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
            ['timeout' => 0.1],
            'the request was not complete within 0.1 s (RequestOptions::$timeout), while waiting for the rest',
        ];
    }

    /** @param array<string, float> $options */
    #[DataProvider('stalls')]
    public function testAServerThatStallsIsGivenUp(string $answer, array $options, string $why): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server) use ($answer): void {
            $server->readRequest($socket);
            $socket->write($answer);
            $socket->read();
        });
        $failure = self::failure(
            fn() => (string) $this->client()->get($this->url(), options: new RequestOptions(...$options))->getBody(),
        );

        self::assertInstanceOf(RequestTimeoutException::class, $failure);
        self::assertStringStartsWith("GET {$this->url()} failed: {$why}", $failure->getMessage());
        self::assertSame(0, $this->client()->statistics()['connections']);
    }

    public function testABodyThatIsReadWhenTheClientIsKilledFailsLikeACall(): void
    {
        $this->serve(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"));
        $body = $this->client()->get($this->url())->getBody();
        $read = Async::run(static fn(): \Throwable => self::failure(static fn() => $body->getContents()));
        delay(0.01);
        $this->client()->kill();

        self::assertInstanceOf(ClientClosedException::class, $read->await());
    }

    public function testCloseFinishesCallsThatWaitAndTheirRedirects(): void
    {
        $other = new ScriptedServer(ScriptedServer::answering(self::OK));
        $gate = new DeferredFuture();
        $this->serve(static function (Socket $socket, ScriptedServer $server) use ($gate, $other): void {
            while ($server->readRequest($socket) !== null) {
                $gate->getFuture()->await();
                $socket->write("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {$other->url()}\r\n\r\n");
            }
        });
        $this->client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1));
        $options = new RequestOptions(maxRedirects: 1);
        $get = fn(): string => (string) $this->client()->get($this->url(), options: $options)->getBody();
        $calls = [Async::run($get), Async::run($get), Async::run($get)];
        Eventually::holds(fn(): bool => $this->server?->heads !== [], 'the first request has arrived');
        self::assertSame(2, $this->client->statistics()['waiting']);
        $closing = Async::run(fn() => $this->client()->close());
        delay(0);
        $gate->complete();

        self::assertSame(['ok', 'ok', 'ok'], await($calls));
        $closing->await(new TimeoutCancellation(5));
        self::assertSame(0, $this->client->statistics()['connections']);
        $other->close();
    }

    public function testCloseInMainEndsABodyThatNoFiberReads(): void
    {
        $listener = Streams::server();
        $url = 'http://' . stream_socket_get_name($listener, false) . '/';
        $call = Async::run(fn() => $this->client()->get($url, options: new RequestOptions(readTimeout: 0.1)));
        delay(0.01);
        $socket = stream_socket_accept($listener, 5);
        \assert($socket !== false);
        fwrite($socket, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok");
        $response = $call->await();
        $this->client()->close();
        $failure = self::failure(static fn() => $response->getBody()->getContents());

        self::assertInstanceOf(ClientClosedException::class, $failure);
        self::assertStringEndsWith('the client was closed while no fiber read the body', $failure->getMessage());
    }

    public function testCloseWaitsForABodyThatAFiberReadsSlowly(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd");
            delay(1.5);
            $socket->write('e');
        });
        $options = new RequestOptions(readTimeout: 1.0);
        $body = $this->client()->get($this->url(), options: $options)->getBody();
        $reader = Async::run(static function () use ($body): string {
            $read = '';
            while (\strlen($read) < 4) {
                $read .= $body->read(1);
                delay(0.3);
            }

            return $read . $body->read(1);
        });
        $this->client()->close();

        self::assertSame('abcde', $reader->await(new TimeoutCancellation(5)));
    }

    public function testOtherInterimResponsesBeforeAContinueAreSkipped(): void
    {
        $this->serve(static function (Socket $socket): void {
            for ($head = ''; !str_contains($head, "\r\n\r\n");) {
                $head .= $socket->read();
            }
            $socket->write("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
            for ($body = ''; \strlen($body) < 4;) {
                $body .= $socket->read();
            }
            $socket->write(self::OK);
        });
        $options = new RequestOptions(firstByteTimeout: 5.0, expectContinueBytes: 4);
        $response = $this->client()->request('POST', $this->url(), body: 'body', options: $options);

        self::assertSame('ok', (string) $response->getBody());
    }

    /** @return iterable<string, array{string, \Throwable}> */
    public static function faultyBodies(): iterable
    {
        yield 'size' => ['getSize', new \RuntimeException('no size')];
        yield 'position' => ['tell', new \RuntimeException('no position')];
        yield 'rewinding' => ['rewind', new \RuntimeException('no way back')];
        yield 'end' => ['eof', new \DomainException('no end')];
        yield 'reading' => ['read', new \TypeError('no bytes')];
        yield 'cancellation' => ['read', new CancelledException()];
    }

    #[DataProvider('faultyBodies')]
    public function testAFailureOfTheRequestsBodyIsAFailureOfTheRequest(string $method, \Throwable $failure): void
    {
        $this->serve(ScriptedServer::answering(self::OK));
        $body = Stream::create('body');
        $body->seek(1);
        $body = FnStream::decorate($body, [$method => static fn() => throw $failure]);
        $request = new Request('POST', $this->url(), [], $body);
        $thrown = self::failure(fn() => $this->client()->sendRequest($request));

        self::assertInstanceOf(InvalidRequestException::class, $thrown);
        self::assertSame(
            "POST {$this->url()} failed: the body of the request can't be read: {$failure->getMessage()}",
            $thrown->getMessage(),
        );
        self::assertSame($failure, $thrown->getPrevious());
        self::assertSame($this->url(), (string) $thrown->getRequest()->getUri());
        self::assertSame(0, $this->client()->statistics()['connections']);
    }

    #[TestWith([3])]
    #[TestWith([5])]
    public function testABodyWithAnotherSizeThanItSaysIsAFailureOfTheRequest(int $size): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            while ($socket->read() !== null) {
                // The request is never complete.
            }
        });
        $body = FnStream::decorate(Stream::create('body'), ['getSize' => static fn(): int => $size]);
        $failure = self::failure(fn() => $this->client()->request('POST', $this->url(), [], $body));

        self::assertInstanceOf(InvalidRequestException::class, $failure);
        self::assertInstanceOf(\LengthException::class, $failure->getPrevious());
        self::assertMatchesRegularExpression("/its declared size (is|of) {$size} bytes/", $failure->getMessage());
    }

    public function testABodyThatFailsAfterTheHeadOfTheResponseEndsTheReadOfTheResponse(): void
    {
        $this->serve(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok"));
        $gate = new DeferredFuture();
        $body = RequestBody::stream((static function () use ($gate): \Generator {
            yield 'first';
            $gate->getFuture()->await();
            throw new \DomainException('no more');
        })());
        $options = new RequestOptions(expectContinueBytes: \PHP_INT_MAX);
        $response = $this->client()->request('POST', $this->url(), [], $body, $options);
        $gate->complete();
        $failure = self::failure(static fn() => $response->getBody()->getContents());

        self::assertInstanceOf(InvalidRequestException::class, $failure);
        self::assertInstanceOf(\DomainException::class, $failure->getPrevious());
    }

    public function testABodyThatTheCancellationOfItsRequestEndsIsNoFailure(): void
    {
        $this->serve(static function (Socket $socket): void {
            while ($socket->read() !== null) {
                // Nothing is answered.
            }
        });
        $cancellation = new DeferredCancellation();
        $token = $cancellation->getCancellation();
        $body = RequestBody::stream((static function () use ($token): \Generator {
            yield 'first';
            delay(10, cancellation: $token);
        })());
        $options = new RequestOptions(expectContinueBytes: \PHP_INT_MAX);
        EventLoop::delay(0.01, static fn() => $cancellation->cancel());
        $failure = self::failure(
            fn() => $this->client()->request('POST', $this->url(), [], $body, $options, $token),
        );

        self::assertInstanceOf(CancelledException::class, $failure);
    }

    public function testABodyOfUnknownSizeIsSentAtOnceIfTheOptionsSaySo(): void
    {
        $received = '';
        $this->serve(static function (Socket $socket, ScriptedServer $server) use (&$received): void {
            while (!str_contains($received, "0\r\n\r\n")) {
                $received .= $socket->read();
            }
            $socket->write(self::OK);
        });
        $this->client()->request(
            'POST',
            $this->url(),
            body: RequestBody::stream(['a', 'b']),
            options: new RequestOptions(expectContinueBytes: \PHP_INT_MAX),
        );

        self::assertStringNotContainsStringIgnoringCase('expect', $received);
    }

    /** The upload of the first request begins when its connection is already closed. It must leave the body alone. */
    #[TestWith([null])]
    #[TestWith([8])]
    public function testARedirectRightAfterAContinueKeepsTheBody(?int $size): void
    {
        $received = '';
        $this->serve(static function (Socket $socket, ScriptedServer $server) use (&$received): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 100 Continue\r\n\r\n");
            if ($server->accepted === 1) {
                $socket->write("HTTP/1.1 307 Temporary Redirect\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
                $socket->read();

                return;
            }
            while (!str_contains($received, 'the body') && !str_contains($received, "0\r\n\r\n")) {
                $received .= $socket->read(new TimeoutCancellation(5));
            }
            $socket->write(self::OK);
        });
        $response = $this->client()->request(
            'PUT',
            $this->url(),
            body: FnStream::decorate(Stream::create('the body'), ['getSize' => static fn(): ?int => $size]),
            options: new RequestOptions(maxRedirects: 1, expectContinueBytes: 1),
        );

        self::assertSame(200, $response->getStatusCode());
        self::assertStringContainsString('the body', $received);
    }

    public function testTheWaitForTheFirstByteBeginsAfterTheUpload(): void
    {
        $this->serve(static function (Socket $socket): void {
            while ($socket->read() !== null) {
                // Nothing is answered.
            }
        });
        $end = 0;
        $body = (static function () use (&$end): \Generator {
            yield 'a';
            delay(0.3); // longer than firstByteTimeout
            yield 'b';
            $end = hrtime(true);
        })();
        $failure = self::failure(fn() => $this->client()->request(
            'POST',
            $this->url(),
            body: RequestBody::stream($body),
            options: new RequestOptions(firstByteTimeout: 0.1, expectContinueBytes: \PHP_INT_MAX),
            cancellation: new TimeoutCancellation(5),
        ));

        self::assertStringContainsString('0.1 s (RequestOptions::$firstByteTimeout)', $failure->getMessage());
        self::assertGreaterThan(0, $end);
        self::assertGreaterThanOrEqual(0.1, (hrtime(true) - $end) / 1e9);
    }

    /** The server reads late. It accepts the last bytes after the wait for the response has begun. */
    public function testTheWaitForTheFirstByteBeginsWhenAllBytesWereAccepted(): void
    {
        $this->serve(static function (Socket $socket): void {
            delay(0.3);
            while ($socket->read() !== null) {
                // Nothing is answered.
            }
        });
        $failure = self::failure(fn() => $this->client()->request(
            'POST',
            $this->url(),
            body: str_repeat('x', 20_000_000),
            options: new RequestOptions(firstByteTimeout: 0.1, expectContinueBytes: \PHP_INT_MAX),
            cancellation: new TimeoutCancellation(5),
        ));

        self::assertStringContainsString('0.1 s (RequestOptions::$firstByteTimeout)', $failure->getMessage());
    }

    public function testABodyThatStallsIsGivenUp(): void
    {
        $this->serve(static function (Socket $socket): void {
            while ($socket->read() !== null) {
                // The request is never complete.
            }
        });
        $body = (static function (): \Generator {
            yield 'a';
            delay(1);
            yield 'b';
        })();
        $failure = self::failure(fn() => $this->client()->request(
            'POST',
            $this->url(),
            body: RequestBody::stream($body),
            options: new RequestOptions(readTimeout: 0.1, expectContinueBytes: \PHP_INT_MAX),
        ));

        self::assertInstanceOf(RequestTimeoutException::class, $failure);
        self::assertStringEndsWith(
            "0.1 s (RequestOptions::\$readTimeout), while waiting for the rest of the request's body",
            $failure->getMessage(),
        );
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAServerThatDoesNotReadTheRequestIsGivenUp(bool $isStream): void
    {
        $this->serve(static fn(Socket $socket) => delay(5));
        $failure = self::failure(fn() => $this->client()->request(
            'POST',
            $this->url(),
            body: $isStream
                ? RequestBody::stream(array_fill(0, 500, str_repeat('x', 100_000)))
                : str_repeat('x', 50_000_000),
            options: new RequestOptions(
                firstByteTimeout: \INF,
                readTimeout: 0.1,
                timeout: \INF,
                expectContinueBytes: \PHP_INT_MAX,
            ),
            cancellation: new TimeoutCancellation(3),
        ));

        self::assertInstanceOf(RequestTimeoutException::class, $failure);
        self::assertStringEndsWith(
            'within 0.1 s (RequestOptions::$readTimeout), while waiting for the server to receive the request',
            $failure->getMessage(),
        );
    }

    /** The server never reads the rest of the request. Its response lasts longer than readTimeout, but never pauses. */
    #[TestWith([false])]
    #[TestWith([true])]
    public function testAResponseThatArrivesIsReadAlthoughTheServerDoesNotReadTheRequest(bool $isStream): void
    {
        $this->serve(static function (Socket $socket): void {
            $socket->read();
            $socket->write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 20\r\n\r\n");
            $end = hrtime(true) + 800_000_000; // longer than readTimeout
            for ($i = 1; $i < 20; ++$i) {
                $socket->write('x');
                delay(max(0.0, ($end - hrtime(true)) / 1e9 / (20 - $i)));
            }
            $socket->write('x');
            delay(5);
        });
        $body = str_repeat('x', 20_000_000);
        $response = $this->client()->request(
            'POST',
            $this->url(),
            body: $isStream ? RequestBody::stream([$body]) : $body,
            options: new RequestOptions(readTimeout: 0.4, expectContinueBytes: \PHP_INT_MAX),
        );

        self::assertSame(str_repeat('x', 20), (string) $response->getBody());
    }

    public function testAServerThatNeitherReadsTheRequestNorContinuesTheResponseIsGivenUp(): void
    {
        $this->serve(static function (Socket $socket): void {
            $socket->read();
            $socket->write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 20\r\n\r\n");
            delay(5);
        });
        $response = $this->client()->request(
            'POST',
            $this->url(),
            body: str_repeat('x', 20_000_000),
            options: new RequestOptions(readTimeout: 0.1, timeout: \INF, expectContinueBytes: \PHP_INT_MAX),
            cancellation: new TimeoutCancellation(3),
        );
        $failure = self::failure(static fn() => $response->getBody()->getContents());

        self::assertInstanceOf(RequestTimeoutException::class, $failure);
        self::assertStringContainsString('within 0.1 s (RequestOptions::$readTimeout)', $failure->getMessage());
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAConnectionThatHasNotSentTheWholeRequestIsClosedAfterTheResponse(bool $isStream): void
    {
        $end = new DeferredFuture();
        $this->serve(static function (Socket $socket) use ($end): void {
            $socket->read();
            $socket->write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
            $end->getFuture()->await(); // reads no further bytes
        });
        $body = str_repeat('x', 20_000_000);
        $response = $this->client()->request(
            'POST',
            $this->url(),
            body: $isStream ? RequestBody::stream([$body]) : $body,
            options: new RequestOptions(expectContinueBytes: \PHP_INT_MAX),
        );

        self::assertSame('no', (string) $response->getBody());
        self::assertSame(0, $this->client()->statistics()['connections']);
        $end->complete();
    }

    #[TestWith(['GET', ''])]
    #[TestWith(['PUT', 'body'])]
    public function testARequestIsRepeatedIfAKeptConnectionWasClosed(string $method, string $body): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->write(self::OK);
            $server->readRequest($socket); // and closes without an answer
        });

        self::assertSame('ok', (string) $this->client()->get($this->url())->getBody());
        self::assertSame('ok', (string) $this->client()->request($method, $this->url(), body: $body)->getBody());
        self::assertSame(2, $this->server?->accepted);
    }

    public function testAPostIsNotRepeated(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->write(self::OK);
            $server->readRequest($socket);
        });
        $this->client()->get($this->url());
        $failure = self::failure(fn() => $this->client()->request('POST', $this->url(), body: 'x'));

        self::assertInstanceOf(ConnectionLostException::class, $failure);
        self::assertSame(1, $this->server?->accepted);
    }

    public function testABodyThatCannotBeReadAgainIsNotRepeated(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->write(self::OK);
            $server->readRequest($socket);
        });
        $this->client()->get($this->url());
        $body = RequestBody::stream(['x']);
        $failure = self::failure(fn() => $this->client()->request('PUT', $this->url(), body: $body));

        self::assertInstanceOf(ConnectionLostException::class, $failure);
        self::assertSame(1, $this->server?->accepted);
    }

    #[TestWith(['H'])]
    #[TestWith(["HTTP/1.1 102 Processing\r\n\r\n"])]
    #[TestWith(["HTTP/1.1 103 Early Hints\r\n\r\n", 1])]
    #[TestWith(["HTTP/1.1 100 Continue\r\n\r\n", 1])]
    public function testARequestIsNotRepeatedAfterTheFirstByteOfAnAnswer(string $bytes, int $expectBytes = 0xffff): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server) use ($bytes): void {
            $server->readRequest($socket);
            $socket->write(self::OK);
            $server->readRequest($socket);
            $socket->write($bytes);
        });
        $this->client()->get($this->url());
        $options = new RequestOptions(expectContinueBytes: $expectBytes);
        $failure = self::failure(fn() => $this->client()->request('PUT', $this->url(), [], 'body', $options));

        self::assertInstanceOf(ConnectionLostException::class, $failure);
        self::assertSame(1, $this->server?->accepted);
    }

    /** An answer before the request could be an answer to the request of another caller: response splitting. */
    public function testBytesAfterAResponseAreNeverTakenForTheNextOne(): void
    {
        $this->serve(ScriptedServer::answering(self::OK . "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));

        for ($i = 1; $i <= 3; ++$i) {
            self::assertSame('ok', (string) $this->client()->get($this->url())->getBody());
            self::assertSame($i, $this->server?->accepted);
        }
    }

    public function testACancelledRequestLeavesNoConnection(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->read();
        });
        $cancellation = new DeferredCancellation();
        $token = $cancellation->getCancellation();
        $request = Async::run(fn() => $this->client()->get($this->url(), cancellation: $token));
        Eventually::holds(fn(): bool => $this->server?->heads !== [], 'the request has arrived');
        $cancellation->cancel();

        self::assertInstanceOf(CancelledException::class, self::failure($request->await(...)));
        self::assertSame(0, $this->client()->statistics()['connections']);
    }

    #[TestWith(["HTTP/1.1 200 OK\r\nA: b\r\n"])]
    #[TestWith(["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"])]
    public function testTheConnectionOfACancelledRequestIsNotUsedAgain(string $part): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server) use ($part): void {
            $server->readRequest($socket);
            $socket->write($server->accepted === 1 ? $part : self::OK);
            $server->readRequest($socket);
            $socket->write(self::OK);
        });
        $cancellation = new DeferredCancellation();
        $token = $cancellation->getCancellation();
        $request = Async::run(fn() => (string) $this->client()->get($this->url(), cancellation: $token)->getBody());
        Eventually::holds(fn(): bool => $this->server?->heads !== [], 'the request has arrived');
        $cancellation->cancel();

        self::assertInstanceOf(CancelledException::class, self::failure($request->await(...)));
        self::assertSame('ok', (string) $this->client()->get($this->url())->getBody());
        self::assertSame(2, $this->server?->accepted);
    }

    public function testASlowOriginDoesNotDelayAnotherOne(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->read();
        });
        $fast = new ScriptedServer(ScriptedServer::answering(self::OK));
        $slow = [];
        for ($i = 0; $i < 1_000; ++$i) {
            $slow[] = Async::run(function (): void {
                self::failure(fn() => $this->client()->get($this->url()));
            });
        }
        delay(0);
        for ($i = 0; $i < 100; ++$i) {
            self::assertSame('ok', (string) $this->client()->get($fast->url())->getBody());
        }
        self::assertSame(0, array_sum(array_map(static fn($future): int => (int) $future->isComplete(), $slow)));
        $this->client()->kill();
        await($slow);
        $fast->close();
    }

    #[TestWith([\INF, ClientClosedException::class])]
    #[TestWith([0.2, ConnectFailedException::class])]
    public function testTheFailuresOfManyWaitingRequestsNeedLittleMemory(float $acquireTimeout, string $type): void
    {
        $this->serve(static function (Socket $socket): void {
            while ($socket->read() !== null) {
                // Nothing is answered.
            }
        });
        $options = new HttpClientOptions(maxConnectionsPerHost: 1, acquireTimeout: $acquireTimeout);
        $this->client = new HttpClient($options);
        $running = Async::run(fn(): \Throwable => self::failure(fn() => $this->client()->get($this->url())));
        $requests = [];
        for ($i = 0; $i < 500; ++$i) {
            $requests[] = Async::run(fn(): \Throwable => self::failure(fn() => $this->client()->get($this->url())));
        }
        delay(0);
        memory_reset_peak_usage();
        $before = memory_get_peak_usage();
        $acquireTimeout < \INF ? null : $this->client()->kill();
        $failures = await($requests);

        self::assertLessThan(30_000_000, memory_get_peak_usage() - $before);
        self::assertSame([$type => 500], array_count_values(array_map(get_class(...), $failures)));
        $this->client()->kill();
        $running->await();
        self::assertContains('get', array_column($failures[499]->getTrace(), 'function'));
    }

    public function testRequestsWaitForAConnectionInOrderAndNotForever(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->read();
        });
        $options = new HttpClientOptions(maxConnectionsPerHost: 1, acquireTimeout: 0.1, maxWaiting: 1);
        $this->client = new HttpClient($options);
        $first = Async::run(fn() => self::failure(fn() => $this->client()->get($this->url())));
        delay(0);
        $second = Async::run(fn() => self::failure(fn() => $this->client()->get($this->url())));
        delay(0);
        $third = self::failure(fn() => $this->client()->get($this->url()));

        self::assertStringContainsString(
            'already wait for a connection (HttpClientOptions::$maxWaiting, or RequestOptions::$waitsInQueue)',
            $third->getMessage(),
        );
        self::assertInstanceOf(ConnectFailedException::class, $third);
        self::assertStringEndsWith(
            'no connection was free within 0.1 s (HttpClientOptions::$acquireTimeout)',
            $second->await()->getMessage(),
        );
        $late = self::failure(fn() => $this->client()->get($this->url(), options: new RequestOptions(timeout: 0.05)));
        self::assertStringEndsWith(
            'was not complete within 0.05 s (RequestOptions::$timeout), while waiting for a free connection',
            $late->getMessage(),
        );
        $this->client()->kill();
        $first->await();
    }

    public function testTheWaitForAConnectionEndsAlthoughNothingElseKeepsTheEventLoopRunning(): void
    {
        $listener = Streams::server();
        $url = 'http://' . stream_socket_get_name($listener, false) . '/';
        $this->client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1, acquireTimeout: 0.1));
        $first = Async::run(fn() => $this->client()->get($url));
        delay(0.01);
        $socket = stream_socket_accept($listener, 5);
        \assert($socket !== false);
        fwrite($socket, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
        $response = $first->await();
        $failure = self::failure(fn() => $this->client()->get($url));

        self::assertInstanceOf(ConnectFailedException::class, $failure);
        self::assertSame(200, $response->getStatusCode());
    }

    /** @return iterable<string, array{string, string|RequestBody}> */
    public static function largeBodies(): iterable
    {
        yield 'a string' => ['POST', str_repeat('x', 2_000_000)];
        yield 'a stream' => ['PUT', RequestBody::stream([str_repeat('x', 1_000_000), str_repeat('x', 1_000_000)])];
    }

    #[DataProvider('largeBodies')]
    public function testARequestIsSentAgainWithoutAnExpectationThatTheServerRefuses(
        string $method,
        string|RequestBody $body,
    ): void {
        $received = 0;
        $this->serve(static function (Socket $socket, ScriptedServer $server) use (&$received): void {
            $request = (string) $server->readRequest($socket);
            if (str_contains($request, 'Expect: 100-continue')) {
                $socket->write("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno");
                $socket->read();

                return;
            }
            $received = substr_count($request, 'x');
            while ($received < 2_000_000) {
                $received += substr_count((string) $socket->read(), 'x');
            }
            $socket->write(self::OK);
            $socket->read();
        });
        $response = $this->client()->request($method, $this->url(), body: $body);

        self::assertSame([200, 'ok'], [$response->getStatusCode(), (string) $response->getBody()]);
        self::assertSame([2, 2], [$this->server?->accepted, \count($this->server->heads ?? [])]);
        self::assertSame(2_000_000, $received);
        self::assertSame(1, $this->client()->statistics()['connections']);
    }

    public function testA417WithoutAnExpectationIsAResponse(): void
    {
        $this->serve(ScriptedServer::answering("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno"));

        self::assertSame(417, $this->client()->request('POST', $this->url(), body: 'x')->getStatusCode());
        $large = $this->client()->request('POST', $this->url(), body: str_repeat('x', 2_000_000));
        self::assertSame(417, $large->getStatusCode());
        self::assertCount(3, $this->server->heads ?? []);
    }

    public function testANameIsLookedUpAgainWhenItsServerIsGone(): void
    {
        $resolver = new ChangingNames();
        $port = (int) explode(':', $this->serve(self::answeringOnce('first'), '127.0.0.2:0')->address())[1];
        $second = new ScriptedServer(self::answeringOnce('second'), "127.0.0.3:{$port}");
        dnsResolver($resolver);
        try {
            $resolver->addresses = ['127.0.0.2'];
            self::assertSame('first', (string) $this->client()->get("http://moving.test:{$port}/")->getBody());
            $resolver->addresses = ['127.0.0.3'];
            self::assertSame('second', (string) $this->client()->get("http://moving.test:{$port}/")->getBody());
        } finally {
            dnsResolver(createDefaultResolver());
            $second->close();
        }
        self::assertSame(['moving.test', 'moving.test'], $resolver->names);
    }

    public function testARequestWithoutAFreeDescriptorFailsAndALaterOneDoesNot(): void
    {
        $result = Host::call(
            self::class . '::requestWithoutDescriptors',
            within: ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );

        self::assertIsArray($result);
        [$class, $message, $later] = $result;
        self::assertSame(ConnectFailedException::class, $class);
        self::assertIsString($message);
        self::assertStringEndsWith('too many open files', $message);
        self::assertSame('ok', $later);
    }

    public function testAConnectionThatTakesTheLastDescriptorNeedsNoFurtherClass(): void
    {
        $failure = Host::call(
            self::class . '::requestWithOneDescriptor',
            within: ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );

        self::assertSame('', $failure);
    }

    /** @return string names of the missing classes that the first connection of a client needs without a descriptor */
    public static function requestWithOneDescriptor(): string
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        \assert($listener !== false);
        $url = 'http://' . stream_socket_get_name($listener, false) . '/';
        $client = new HttpClient();
        self::failure(static fn() => $client->get('http://127.0.0.1:1/'));
        $missing = [];
        $files = self::useAllDescriptors($missing);
        fclose(array_pop($files) ?? throw new \LogicException('No descriptor was free'));
        $options = new RequestOptions(firstByteTimeout: 0.1);
        self::failure(static fn() => $client->get($url, options: $options));

        return implode(', ', $missing);
    }

    public function testRequestsThatUseTheLastDescriptorsNeedNoFurtherClass(): void
    {
        $result = Host::call(
            self::class . '::requestsWithTwoDescriptors',
            within: ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );

        self::assertSame(['', ['chunked', 'gzip', 'long', 'moved', 'sent', 'x']], $result);
    }

    /** @return array{string, list<string>} names of the missing classes that requests need; the received bodies */
    public static function requestsWithTwoDescriptors(): array
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        \assert($listener !== false);
        $address = 'http://' . stream_socket_get_name($listener, false);
        $gzip = (string) gzencode('gzip');
        $long = str_repeat('long', 50_000);
        $responses = [
            "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nchunked\r\n0\r\n\r\n",
            "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " . \strlen($gzip) . "\r\n\r\n{$gzip}",
            "200 OK\r\nContent-Length: 200000\r\n\r\n{$long}",
            "302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
            "200 OK\r\nContent-Length: 5\r\n\r\nmoved",
            "200 OK\r\nContent-Length: 4\r\n\r\nsent",
            "200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\ndata: x\n\n",
        ];
        $watcher = EventLoop::onReadable($listener, static function () use ($listener, &$responses): void {
            $socket = stream_socket_accept($listener, 0);
            \assert($socket !== false);
            EventLoop::onReadable($socket, static function (string $id) use ($socket, &$responses): void {
                $request = (string) fread($socket, 8192);
                if ($request === '') {
                    EventLoop::cancel($id);
                    fclose($socket);
                } elseif (preg_match('/^GET .*\r\n\r\n$|0\r\n\r\n$/Ds', $request) === 1) {
                    fwrite($socket, 'HTTP/1.1 ' . array_shift($responses));
                }
            });
        });
        $client = new HttpClient();
        self::failure(static fn() => $client->get('http://127.0.0.1:1/'));
        $deferred = new DeferredCancellation();
        $cancellation = $deferred->getCancellation();
        $redirects = new RequestOptions(maxRedirects: 1);
        $upload = RequestBody::stream(['body']);
        $missing = [];
        $files = self::useAllDescriptors($missing);
        array_map(fclose(...), \array_slice($files, -2));
        $bodies = [
            (string) $client->get($address)->getBody(),
            (string) $client->get($address)->getBody(),
            substr((string) $client->get($address)->getBody(), 0, 4),
            (string) $client->get($address, options: $redirects, cancellation: $cancellation)->getBody(),
            (string) $client->request('PUT', $address, body: $upload)->getBody(),
        ];
        foreach ($client->serverSentEvents($address) as $event) {
            $bodies[] = $event->data;
        }
        EventLoop::cancel($watcher);
        $client->kill();

        return [implode(', ', $missing), $bodies];
    }

    #[TestWith(['symfony', TransportException::class])]
    #[TestWith(['guzzle', ConnectException::class])]
    public function testARequestOfAnAdapterWithoutAFreeDescriptorFails(string $adapter, string $class): void
    {
        $result = Host::call(
            self::class . '::requestOfAdapterWithoutDescriptors',
            [$adapter],
            within: ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );

        self::assertIsArray($result);
        [$found, $message, $missing] = $result;
        self::assertSame([$class, ''], [$found, $missing]);
        self::assertIsString($message);
        self::assertStringEndsWith('too many open files', $message);
    }

    /** @return array{string, string, string} class and message of the failure; names of missing classes */
    public static function requestOfAdapterWithoutDescriptors(string $adapter): array
    {
        $server = new HttpServer(static fn(): Response => Response::text('ok'));
        [$address] = $server->start('127.0.0.1:0');
        $client = new HttpClient();
        $symfony = new SymfonyClient($client);
        $guzzle = new Guzzle(['handler' => HandlerStack::create(new GuzzleHandler($client))]);
        $send = static fn(string $url): string => $adapter === 'symfony'
            ? $symfony->request('GET', $url)->getContent()
            : (string) $guzzle->get($url)->getBody();
        $send(str_replace('tcp:', 'http:', $address));
        $missing = [];
        $files = self::useAllDescriptors($missing);
        $failure = self::failure(static fn() => $send('http://127.0.0.1:1/'));
        $names = implode(', ', $missing);
        array_map(fclose(...), $files);
        $client->kill();
        $server->kill();

        return [$failure::class, $failure->getMessage(), $names];
    }

    /**
     * Opens files until no descriptor is free. After that, `$missing` gets the name of each class that PHP loads.
     *
     * @param list<string> $missing
     *
     * @return list<resource>
     */
    private static function useAllDescriptors(array &$missing): array
    {
        $files = FreeDescriptors::useAll();
        spl_autoload_register(static function (string $class) use (&$missing): void {
            $missing[] = $class;
        }, prepend: true);

        return $files;
    }

    /** @return list<string> class and message of the failure; the body of a request when descriptors are free again */
    public static function requestWithoutDescriptors(): array
    {
        $server = new HttpServer(static fn(): Response => Response::text('ok'));
        [$address] = $server->start('127.0.0.1:0');
        $url = str_replace('tcp:', 'http:', $address);
        $client = new HttpClient();
        $files = FreeDescriptors::useAll();
        $failure = self::failure(static fn() => $client->get($url));
        array_map(fclose(...), $files);
        $later = (string) $client->get($url)->getBody();
        $client->kill();
        $server->kill();

        return [$failure::class, $failure->getMessage(), $later];
    }

    /** @return iterable<string, array{string, string}> the certificate, and a part of the message */
    public static function faultyCertificates(): iterable
    {
        yield 'of another host' => ['other.test', "its TLS certificate is for another host than '127.0.0.1'"];
        yield 'expired' => ['expired', "its TLS certificate can't be verified: it is not valid at this time"];
        yield 'self-signed' => ['self-signed', "its TLS certificate can't be verified"];
        yield 'of an unknown authority' => ['unknown', "its TLS certificate can't be verified"];
    }

    #[DataProvider('faultyCertificates')]
    #[RequiresPhpExtension('openssl')]
    public function testAServerWithAFaultyCertificateGetsNoRequest(string $fault, string $why): void
    {
        $trusted = new Certificates($this->path());
        $unknown = new Certificates($this->path(), 'Another authority');
        [$certificate, $key] = match ($fault) {
            'expired' => $trusted->expiredForServer('127.0.0.1'),
            'self-signed' => $unknown->selfSigned('127.0.0.1'),
            'unknown' => $unknown->forServer('127.0.0.1'),
            default => $trusted->forServer('other.test'),
        };
        $handled = 0;
        $server = new HttpServer(static function () use (&$handled): Response {
            ++$handled;

            return Response::text('secret');
        }, new HttpServerOptions(certificate: $certificate, key: $key));
        [$address] = $server->start('tls://127.0.0.1:0');
        $url = str_replace('tls:', 'https:', $address) . '/path?secret=1';
        if ($fault === 'expired') {
            $now = time();
            Eventually::holds(static fn(): bool => time() > $now + 1, 'the certificate has expired');
        }
        $failure = self::failure(fn() => $this->client()->get(
            $url,
            options: new RequestOptions(tls: new TlsOptions($trusted->authority)),
        ));

        self::assertInstanceOf(ConnectFailedException::class, $failure);
        self::assertStringContainsString($why, $failure->getMessage());
        self::assertStringNotContainsString('secret', $failure->getMessage());
        self::assertSame([0, 0], [$handled, $this->client()->statistics()['connections']]);
        $trusting = new RequestOptions(tls: new TlsOptions(verifyPeer: false));
        self::assertSame('secret', (string) $this->client()->get($url, options: $trusting)->getBody());
        $server->kill();
    }

    #[RequiresPhpExtension('openssl')]
    public function testACertificateThatIsRefusedAfterTheHandshakeIsNamedAsTheReason(): void
    {
        $this->server = ScriptedServer::refusingCertificates(new Certificates($this->path()));
        [$certificate, $key] = (new Certificates($this->path(), 'Another authority'))->forClient('app');
        $tls = new TlsOptions(certificate: $certificate, key: $key, verifyPeer: false);
        $url = "https://{$this->server->address()}/";
        $failure = self::failure(fn() => $this->client()->get($url, options: new RequestOptions(tls: $tls)));

        self::assertInstanceOf(ConnectFailedException::class, $failure, 'the request was not processed');
        self::assertMatchesRegularExpression('/ without an answer: .*alert unknown ca$/', $failure->getMessage());
    }

    public function testAFailureShowsNoSecrets(): void
    {
        $this->serve(ScriptedServer::answering("junk\r\n\r\n"));
        $url = str_replace('//', '//user:hidden@', $this->url()) . '?token=hidden';
        $ignores = (string) ini_set('zend.exception_ignore_args', '0');
        $failure = self::failure(fn() => $this->client()->request('POST', $url, ['X-Key' => 'hidden'], 'hidden'));
        ini_set('zend.exception_ignore_args', $ignores);
        self::assertInstanceOf(InvalidResponseException::class, $failure);
        $calls = array_filter(
            $failure->getTrace(),
            static fn(array $frame): bool => ($frame['class'] ?? '') === HttpClient::class,
        );
        $shown = print_r(array_column($calls, 'args', 'function'), true);

        self::assertStringNotContainsString('hidden', $shown);
        self::assertStringContainsString('X-Key', $shown);
        self::assertStringContainsString('[request] =>', $shown);
    }

    public function testARequestDoesNotOvertakeOneThatWaits(): void
    {
        $this->serve(ScriptedServer::answering(self::OK));
        $this->client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1));
        $finished = '';
        $callers = [];
        foreach (['a', 'b', 'c'] as $name) {
            $callers[] = Async::run(function () use ($name, &$finished): void {
                for ($i = 0; $i < 5; ++$i) {
                    $this->client()->get($this->url())->getBody()->getContents();
                    $finished .= $name;
                }
            });
        }
        await($callers);

        self::assertSame('abcabcabcabcabc', $finished);
    }

    /** More requests are woken than connections can be opened. The others wait again, and stay ahead of later ones. */
    public function testARequestThatWaitsAgainKeepsItsPlace(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            while (($head = $server->readRequest($socket)) !== null) {
                delay(0.001);
                $socket->write(str_contains($head, '/long')
                    ? "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nx"
                    : self::OK);
            }
        });
        $this->client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 3, maxWaiting: 12));
        $long = [];
        for ($i = 0; $i < 3; ++$i) {
            $long[] = $this->client()->get("{$this->url()}long")->getBody();
        }
        $requests = $order = [];
        for ($i = 0; $i < 12; ++$i) {
            $requests[] = Async::run(function () use ($i, &$order): void {
                $this->client()->get($this->url())->getBody()->getContents();
                $order[] = $i;
            });
        }
        Eventually::holds(fn(): bool => $this->client()->statistics()['waiting'] === 12, 'all requests wait');
        foreach ($long as $body) {
            $body->close();
        }
        await($requests);

        $overtakers = array_map(static fn(int $i, int $place): int => abs($i - $place), $order, array_keys($order));
        self::assertLessThan(3, max(0, ...$overtakers), implode(' ', $order)); // three requests run at the same time
    }

    public function testAFreeConnectionIsGivenToAllThatWaitForOne(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            for ($i = 0; $server->readRequest($socket) !== null; ++$i) {
                delay(0.001 * random_int(0, 3));
                $i % 3 < 2 ? $socket->write(self::OK) : $socket->close();
            }
        });
        $this->client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 3, acquireTimeout: 5));
        $requests = [];
        for ($i = 0; $i < 200; ++$i) {
            $cancellation = $i % 4 === 0 ? new TimeoutCancellation(0.001 * random_int(1, 20)) : null;
            $requests[] = Async::run(function () use ($cancellation): string {
                try {
                    return (string) $this->client()->get($this->url(), cancellation: $cancellation)->getBody();
                } catch (CancelledException|ConnectionLostException) {
                    return '';
                }
            });
        }

        self::assertContains('ok', await($requests));
        self::assertSame(0, $this->client()->statistics()['waiting']);
    }

    public function testAnEndlessBodyIsGivenUpAlthoughBytesAreAlwaysThere(): void
    {
        $this->serve(self::endless(...));
        $body = $this->client()->get($this->url(), options: new RequestOptions(timeout: 0.2))->getBody();
        $failure = self::failure(static function () use ($body): void {
            for ($end = hrtime(true) + 5e9; hrtime(true) < $end; delay(0.001)) {
                $body->read(1024);
            }
        });

        self::assertInstanceOf(RequestTimeoutException::class, $failure);
        self::assertStringContainsString('not complete within 0.2 s', $failure->getMessage());
    }

    public function testACancellationEndsABodyAlthoughBytesAreAlwaysThere(): void
    {
        $this->serve(self::endless(...));
        $cancellation = new DeferredCancellation();
        $body = $this->client()->get($this->url(), cancellation: $cancellation->getCancellation())->getBody();
        $body->read(1024);
        $cancellation->cancel();
        $failure = self::failure(static function () use ($body): void {
            for ($end = hrtime(true) + 5e9; hrtime(true) < $end; delay(0.001)) {
                $body->read(1024);
            }
        });

        self::assertInstanceOf(CancelledException::class, $failure);
    }

    public function testABodyThatIsClosedEndsTheReadOfAnotherFiber(): void
    {
        $this->serve(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"));
        $body = $this->client()->get($this->url())->getBody();
        self::assertSame('ab', $body->read(2));
        $reader = Async::run(static fn(): \Throwable => self::failure(static fn() => $body->read(2)));
        delay(0);
        $body->close();

        self::assertSame('The body was closed', $reader->await(new TimeoutCancellation(5))->getMessage());
    }

    public function testASecondReaderOfABodyIsRefusedAndTheFirstOneGoesOn(): void
    {
        $this->serve(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
            $server->readRequest($socket);
        });
        $body = $this->client()->get($this->url(), options: new RequestOptions(readTimeout: 0.2))->getBody();
        self::assertSame('ab', $body->read(2));
        $first = Async::run(static fn(): \Throwable => self::failure(static fn() => $body->read(2)));
        delay(0);

        self::assertInstanceOf(\LogicException::class, self::failure(static fn() => $body->read(2)));
        self::assertInstanceOf(RequestTimeoutException::class, $first->await(new TimeoutCancellation(5)));
    }

    public function testKillEndsARequestWhoseConnectionIsBeingOpened(): void
    {
        $proxy = new ScriptedServer(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->read();
        });
        $options = new RequestOptions(proxy: new Proxy(https: "http://{$proxy->address()}"));
        $get = fn() => $this->client()->get('https://h.test/', options: $options);
        $request = Async::run(static fn() => self::failure($get));
        Eventually::holds(static fn(): bool => $proxy->heads !== [], 'the proxy was asked for a tunnel');
        $this->client()->kill();

        self::assertInstanceOf(ClientClosedException::class, $request->await(new TimeoutCancellation(5)));
        self::assertSame(0, $this->client()->statistics()['connections']);
        $proxy->close();
    }

    public function testABodyThatIsDroppedEndsItsConnection(): void
    {
        $this->serve(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" . str_repeat('x', 500_000),
        ));
        $response = $this->client()->get($this->url());
        self::assertSame(1, $this->client()->statistics()['connections']);
        unset($response);

        self::assertSame(0, $this->client()->statistics()['connections']);
    }

    public function testAReadOfABodyHasItsTimeLimitAlsoAfterTheClientWasDestroyed(): void
    {
        $this->serve(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"));
        $client = new HttpClient(new HttpClientOptions(request: new RequestOptions(readTimeout: 0.2)));
        $body = $client->get($this->url())->getBody();
        $read = Async::run(static fn(): \Throwable => self::failure(static fn() => $body->getContents()));
        delay(0); // the fiber waits for the rest of the body
        unset($client);

        self::assertInstanceOf(RequestTimeoutException::class, $read->await(new TimeoutCancellation(5)));
    }

    #[TestWith([self::OK])]
    #[TestWith(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", 'ok'])]
    public function testAResponseKeepsNoConnectionOpenWithoutItsClient(string $answer, string $rest = ''): void
    {
        $hasEnded = false;
        $this->serve(static function (Socket $socket, ScriptedServer $server) use (&$hasEnded, $answer, $rest): void {
            $server->readRequest($socket);
            $socket->write($answer);
            delay(0.01);
            $socket->write($rest);
            $hasEnded = $socket->read() === null;
        });
        $response = (new HttpClient())->get($this->url());

        self::assertSame('ok', (string) $response->getBody());
        Eventually::holds(static function () use (&$hasEnded): bool {
            return $hasEnded;
        }, 'the server sees the end of the connection');
    }

    private static function endless(Socket $socket, ScriptedServer $server): void
    {
        $server->readRequest($socket);
        $socket->write("HTTP/1.1 200 OK\r\n\r\n");
        for (;;) {
            $socket->write(str_repeat('x', 65_536));
        }
    }

    /** @return \Closure(Socket, ScriptedServer): void */
    private static function answeringOnce(string $body): \Closure
    {
        return static function (Socket $socket, ScriptedServer $server) use ($body): void {
            $server->readRequest($socket);
            $socket->write('HTTP/1.1 200 OK' . "\r\nContent-Length: " . \strlen($body) . "\r\n\r\n{$body}");
            $server->close();
        };
    }

    /** @param \Closure(Socket, ScriptedServer): void $script */
    private function serve(\Closure $script, string $address = '127.0.0.1:0'): ScriptedServer
    {
        return $this->server = new ScriptedServer($script, $address);
    }

    private function url(): string
    {
        return $this->server?->url() ?? '';
    }

    private function client(): HttpClient
    {
        return $this->client ??= new HttpClient();
    }

    /** @param \Closure(): mixed $call */
    private static function failure(\Closure $call): \Throwable
    {
        try {
            $call();
        } catch (\Throwable $failure) {
            return $failure;
        }
        self::fail('The call did not fail');
    }
}
