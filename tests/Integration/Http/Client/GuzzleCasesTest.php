<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\Socket\Socket;
use GuzzleHttp\Exception\ConnectException;
use GuzzleHttp\Exception\RequestException;
use GuzzleHttp\Promise\Is;
use GuzzleHttp\Psr7\FnStream;
use GuzzleHttp\Psr7\NoSeekStream;
use GuzzleHttp\Psr7\Request;
use GuzzleHttp\Psr7\Utils;
use GuzzleHttp\TransferStats;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\GuzzleHandler;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;

use function Amp\delay;

/**
 * The tests that Guzzle 7.9 has for its own handlers (CurlFactoryTest, CurlHandlerTest, CurlMultiHandlerTest and
 * StreamHandlerTest), with real servers instead of assertions about the options of curl. {@see LEFT_OUT} has the
 * others.
 */
final class GuzzleCasesTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use OwnDirectory;
    use ServesHttp;

    /** Tests of Guzzle that do not apply to this handler, with the reason. */
    public const LEFT_OUT = [
        'CurlFactoryTest' => [
            'testCanAddCustomCurlOptions' => 'the option curl is refused',
            'testCanChangeCurlOptions' => 'the option curl is refused',
            'testCanSetVerifyToDir' => 'verify is a boolean or a file',
            'testAddsSslKeyWithPassword' => 'keys with a password are refused',
            'testAddsCertWithPassword' => 'certificates with a password are refused',
            'testAddsDerCert' => 'certificates are PEM files',
            'testAddsP12Cert' => 'certificates are PEM files',
            'testEmitsDebugInfoToStream' => 'the option debug has no effect',
            'testProtocolVersion' => 'requests are HTTP/1.1',
            'testFailsWhenCannotRewindRetryAfterNoResponse' => 'a detail of curl; ServerFaultsTest has the rules',
            'testRetriesWhenBodyCanBeRewound' => 'a detail of curl; ServerFaultsTest has the rules',
            'testFailsWhenRetryMoreThanThreeTimes' => 'a detail of curl; ServerFaultsTest has the rules',
            'testClosesIdleHandles' => 'there are no handles of curl',
            'testRelease' => 'there are no handles of curl',
        ],
        'CurlHandlerTest' => [
            'testReusesHandles' => 'there are no handles of curl',
            'testCreatesCurlErrorsWithContext' => 'there are no error numbers of curl',
        ],
        'CurlMultiHandlerTest' => [
            'testCanAddCustomCurlOptions' => 'the option curl is refused',
            'testCanSetSelectTimeout' => 'the event loop waits',
            'testUsesTimeoutEnvironmentVariables' => 'the event loop waits',
        ],
        'StreamHandlerTest' => [
            'testProtocolVersion' => 'requests are HTTP/1.1',
            'testUsesSystemDefaultBundle' => 'a detail of Guzzle; TLS uses the folder of the system',
            'testCanSetPasswordWhenSettingCert' => 'certificates with a password are refused',
            'testDebugAttributeWritesToStream' => 'the option debug has no effect',
            'testDebugAttributeWritesStreamInfoToBuffer' => 'the option debug has no effect',
            'testEmitsProgressInformationAndDebugInformation' => 'the option debug has no effect',
            'testPerformsShallowMergeOfCustomContextOptions' => 'the option stream_context is refused',
            'testEnsuresThatStreamContextIsAnArray' => 'the option stream_context is refused',
            'testDrainsResponseAndReadsAllContentWhenContentLengthIsZero' => 'a length of 0 is the length',
        ],
        'ProxyTest' => [
            'all' => 'tests of the class Proxy, which chooses a handler',
        ],
    ];

    private ?HttpClient $httpClient = null;

    /** @var list<ServerRequestInterface> */
    private array $received = [];

    /** @var list<string> bodies of the received requests */
    private array $bodies = [];

    protected function tearDown(): void
    {
        $this->httpClient?->kill();
    }

    public function testARequestArrivesAndItsResponseIsReturned(): void
    {
        $this->answer(new Response(200, ['Foo' => 'Bar'], 'hi there'));
        $response = $this->send(new Request('PUT', $this->url(), ['Hi' => ' 123', 'Content-Length' => '7'], 'testing'));

        self::assertSame([200, 'OK', 'Bar', '8', 'hi there'], [
            $response->getStatusCode(),
            $response->getReasonPhrase(),
            $response->getHeaderLine('foo'),
            $response->getHeaderLine('Content-Length'),
            (string) $response->getBody(),
        ]);
        [$request] = $this->received;
        self::assertSame(['PUT', '/', '123', '7', '', '', 'testing'], [
            $request->getMethod(),
            $request->getUri()->getPath(),
            $request->getHeaderLine('Hi'),
            $request->getHeaderLine('Content-Length'),
            $request->getHeaderLine('Expect'),
            $request->getHeaderLine('Transfer-Encoding'),
            $this->bodies[0],
        ]);
        self::assertSame(parse_url($this->url(), \PHP_URL_PORT), $request->getUri()->getPort());
    }

    public function testAHeadRequestHasNoBodyInItsResponse(): void
    {
        $this->answer(new Response(200, [], 'not sent'));
        $called = [];
        $response = $this->send(new Request('HEAD', $this->url()), ['progress' => static function (
            mixed ...$sizes,
        ) use (&$called): void {
            $called[] = $sizes;
        }]);

        self::assertSame(['HEAD', ''], [$this->received[0]->getMethod(), (string) $response->getBody()]);
        self::assertSame('8', $response->getHeaderLine('Content-Length'));
        self::assertNotSame([], $called);
        self::assertSame([4], array_values(array_unique(array_map(\count(...), $called))));
    }

    public function testVerificationCanBeTurnedOffOrUseAFile(): void
    {
        $certificates = $this->serveTls();
        $request = new Request('GET', $this->url());
        foreach ([['verify' => false], ['verify' => $certificates->authority]] as $options) {
            self::assertSame('secret', (string) $this->send($request, $options)->getBody());
        }
        foreach ([[], ['verify' => true]] as $options) {
            self::thrown(ConnectException::class, fn() => $this->send($request, $options));
        }
    }

    public function testACertificateOfTheClientIsSent(): void
    {
        $certificates = $this->serveTls();
        [$certificate, $key] = $certificates->forClient('ada');
        foreach ([$key, [$key]] as $ssl) {
            $options = ['verify' => $certificates->authority, 'cert' => $certificate, 'ssl_key' => $ssl];
            self::assertSame('secret', (string) $this->send(new Request('GET', $this->url()), $options)->getBody());
        }
    }

    #[TestWith(['verify'])]
    #[TestWith(['cert'])]
    #[TestWith(['ssl_key'])]
    public function testAMissingFileIsRefused(string $option): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage('/does/not/exist');
        $this->handler()(new Request('GET', 'https://127.0.0.1:1/'), [$option => '/does/not/exist']);
    }

    #[TestWith([\STREAM_CRYPTO_METHOD_TLSv1_0_CLIENT])]
    #[TestWith([\STREAM_CRYPTO_METHOD_TLSv1_1_CLIENT])]
    #[TestWith([\STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT])]
    public function testAMinimumVersionOfTlsIsAccepted(int $version): void
    {
        $certificates = $this->serveTls();
        $options = ['verify' => $certificates->authority, 'crypto_method' => $version];

        self::assertSame('secret', (string) $this->send(new Request('GET', $this->url()), $options)->getBody());
    }

    public function testAnUnknownVersionOfTlsIsRefused(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage('crypto_method');
        $this->handler()(new Request('GET', 'https://127.0.0.1:1/'), ['crypto_method' => 123]);
    }

    public function testAProxyIsUsed(): void
    {
        $this->answer(new Response(200, ['Foo' => 'Bar'], 'hi'));
        $authority = (string) parse_url($this->url(), \PHP_URL_HOST) . ':' . parse_url($this->url(), \PHP_URL_PORT);
        foreach ([$this->url(), $authority, "tcp://{$authority}", ['http' => $this->url()]] as $proxy) {
            $response = $this->send(new Request('GET', 'http://www.example.com/a?b'), ['proxy' => $proxy]);
            self::assertSame(['Bar', 'hi'], [$response->getHeaderLine('Foo'), (string) $response->getBody()]);
        }

        self::assertCount(4, $this->received);
        foreach ($this->received as $request) {
            self::assertSame('http://www.example.com/a?b', (string) $request->getUri());
        }
    }

    /** @return iterable<string, array{string, list<string>, bool}> */
    public static function hostsWithoutProxy(): iterable
    {
        yield 'the same host' => ['test.test.com', ['test.test.com'], false];
        yield 'a domain' => ['test.test.com', ['.test.com'], false];
        yield 'each host' => ['test.test.com', ['*'], false];
        yield 'another host' => ['test.test.com', ['test.com.org'], true];
        yield 'part of an address' => ['127.0.0.1', ['127.0.0.*'], true];
    }

    /** @param list<string> $hosts */
    #[DataProvider('hostsWithoutProxy')]
    public function testSomeHostsHaveNoProxy(string $host, array $hosts, bool $isUsed): void
    {
        $this->answer(new Response(200, [], 'by proxy'));
        $options = ['proxy' => ['http' => $this->url(), 'no' => $hosts], 'connect_timeout' => 2];
        try {
            $body = (string) $this->send(new Request('GET', "http://{$host}:1/"), $options)->getBody();
        } catch (ConnectException) {
            $body = '';
        }

        self::assertSame($isUsed ? 'by proxy' : '', $body);
    }

    public function testARefusingProxyIsAConnectionFailure(): void
    {
        $failure = self::thrown(ConnectException::class, fn() => $this->send(
            new Request('GET', 'http://www.example.com/'),
            ['proxy' => '127.0.0.1:1'],
        ));

        self::assertStringContainsString('connection refused', $failure->getMessage());
    }

    #[TestWith(['progress'])]
    #[TestWith(['on_headers'])]
    #[TestWith(['on_stats'])]
    public function testACallbackMustBeCallable(string $option): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage("{$option} must be callable");
        $this->handler()(new Request('GET', 'http://127.0.0.1:1/'), [$option => 'error!']);
    }

    #[RequiresPhpExtension('zlib')]
    public function testACompressedResponseIsDecodedAndReportsItsOriginalFields(): void
    {
        $content = $this->answerCompressed();
        $response = $this->send(
            new Request('GET', $this->url(), ['Accept-Encoding' => 'gzip']),
            ['decode_content' => true],
        );

        self::assertSame('test', (string) $response->getBody());
        self::assertSame('gzip', $this->received[0]->getHeaderLine('Accept-Encoding'));
        self::assertSame(['gzip', (string) \strlen($content)], [
            $response->getHeaderLine('x-encoded-content-encoding'),
            $response->getHeaderLine('x-encoded-content-length'),
        ]);
        self::assertFalse($response->hasHeader('content-encoding'));
        self::assertFalse($response->hasHeader('content-length'));
    }

    #[RequiresPhpExtension('zlib')]
    public function testACompressedResponseToAHeadRequestHasItsLength(): void
    {
        $content = $this->answerCompressed();
        $response = $this->send(new Request('HEAD', $this->url()), ['decode_content' => true]);

        self::assertSame((string) \strlen($content), $response->getHeaderLine('content-length'));
    }

    #[RequiresPhpExtension('zlib')]
    public function testDecodingCanBeTurnedOff(): void
    {
        $content = $this->answerCompressed();
        $response = $this->send(new Request('GET', $this->url()), ['decode_content' => false]);

        self::assertFalse($this->received[0]->hasHeader('Accept-Encoding'));
        self::assertSame([$content, 'gzip', (string) \strlen($content)], [
            (string) $response->getBody(),
            $response->getHeaderLine('content-encoding'),
            $response->getHeaderLine('content-length'),
        ]);
    }

    public function testASinkIsAResourceAStreamOrAPath(): void
    {
        $this->answer(new Response(200, [], 'hi there'));
        $request = new Request('GET', $this->url());
        $resource = Utils::tryFopen('php://temp', 'r+');
        $response = $this->send($request, ['sink' => $resource]); // the destructor of the response closes the resource
        rewind($resource);
        self::assertSame(['hi there', 8], [stream_get_contents($resource), $response->getBody()->getSize()]);
        $stream = Utils::streamFor();
        $this->send($request, ['sink' => $stream]);
        self::assertSame('hi there', (string) $stream);
        foreach ([$this->file('existing', 'old contents'), $this->path('new')] as $path) {
            $body = $this->send($request, ['sink' => $path])->getBody();
            self::assertSame([$path, 'hi'], [$body->getMetadata('uri'), $body->read(2)]);
            self::assertStringEqualsFile($path, 'hi there');
        }
    }

    public function testABodyWithoutASinkIsATemporaryStream(): void
    {
        $this->answer(new Response(200, [], 'hi there'));
        $stream = $this->send(new Request('GET', $this->url()))->getBody()->detach();

        self::assertIsResource($stream);
        self::assertSame('php://temp', stream_get_meta_data($stream)['uri'] ?? '');
        self::assertSame('hi', fread($stream, 2));
    }

    public function testTheFolderOfASinkMustExist(): void
    {
        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('/does/not/exist/so/error.txt');
        $this->handler()(new Request('GET', 'http://127.0.0.1:1/'), ['sink' => '/does/not/exist/so/error.txt']);
    }

    /** @return iterable<string, array{Request, string|null, string}> the request, its Content-Length and its body */
    public static function bodies(): iterable
    {
        $unknown = FnStream::decorate(Utils::streamFor('foo'), ['getSize' => static fn() => null]);
        $begun = Utils::streamFor('0123456789');
        $begun->seek(4);
        $unseekable = Utils::streamFor('0123456789');
        $unseekable->seek(4);
        $large = str_repeat('.', 1_000_000);
        yield 'a given length' => [new Request('PUT', '', ['Content-Length' => '3'], 'foo'), '3', 'foo'];
        yield 'no given length' => [new Request('PUT', '', [], 'foo'), '3', 'foo'];
        yield 'an empty body' => [new Request('PUT', '', [], ''), '0', ''];
        yield 'no body' => [new Request('POST', ''), '0', ''];
        yield 'a large body' => [new Request('PUT', '', [], Utils::streamFor($large)), '1000000', $large];
        yield 'a body of unknown size' => [new Request('PUT', '', [], $unknown), null, 'foo'];
        yield 'a body that was begun' => [new Request('POST', '', [], $begun), '10', '0123456789'];
        yield 'a body that can not be rewound' => [
            new Request('POST', '', [], new NoSeekStream($unseekable)),
            '6',
            '456789',
        ];
        yield 'an expectation' => [new Request('PUT', '', ['Expect' => '100-Continue'], 'test'), '4', 'test'];
    }

    #[DataProvider('bodies')]
    public function testABodyIsSentWithItsLength(Request $request, ?string $length, string $body): void
    {
        $this->answer(new Response(200, ['Test' => 'Hello'], 'test'));
        $response = $this->send($request->withUri(Utils::uriFor($this->url())));
        [$received] = $this->received;

        self::assertSame(['Hello', 'test'], [$response->getHeaderLine('Test'), (string) $response->getBody()]);
        self::assertSame([$body, ''], [$this->bodies[0], $received->getHeaderLine('Content-Type')]);
        self::assertSame($length ?? '', $received->getHeaderLine('Content-Length'));
        self::assertSame($length === null ? 'chunked' : '', $received->getHeaderLine('Transfer-Encoding'));
    }

    public function testARefusedConnectionIsAConnectException(): void
    {
        $options = ['timeout' => 1, 'connect_timeout' => 1];
        self::thrown(ConnectException::class, fn() => $this->send(
            new Request('GET', 'http://localhost:1'),
            $options,
        ));
    }

    /** @return iterable<string, array{string}> */
    public static function invalidAnswers(): iterable
    {
        yield 'no HTTP' => ["Hello from a server that does not speak HTTP\r\n\r\n"];
        yield 'a status of four digits' => ["HTTP/1.1 1000 Bad\r\nContent-Length: 0\r\n\r\n"];
        yield 'a status of two digits' => ["HTTP/1.1 99 Bad\r\nContent-Length: 0\r\n\r\n"];
        yield 'a status that does not exist' => ["HTTP/1.1 999 Incorrect\r\nContent-Length: 7\r\n\r\nabc 123"];
    }

    #[DataProvider('invalidAnswers')]
    public function testAnInvalidAnswerIsARequestException(string $answer): void
    {
        $server = new ScriptedServer(ScriptedServer::answering($answer));
        foreach ([[], ['stream' => true]] as $options) {
            $failure = self::thrown(
                RequestException::class,
                fn() => $this->send(new Request('GET', $server->url()), $options),
            );
            self::assertFalse(method_exists($failure, 'getResponse') && $failure->getResponse() !== null);
        }
        $server->close();
    }

    public function testAnotherSchemeIsRefused(): void
    {
        self::thrown(RequestException::class, fn() => $this->send(new Request('GET', 'file:///etc/passwd')));
    }

    public function testAnExceptionOfOnHeadersRejectsThePromise(): void
    {
        $this->answer(new Response(200, ['X-Foo' => 'bar'], 'abc 123'));
        $failure = self::thrown(RequestException::class, fn() => $this->send(
            new Request('GET', $this->url()),
            ['on_headers' => static fn() => throw new \Exception('test')],
        ));

        self::assertSame('An error was encountered during the on_headers event', $failure->getMessage());
        self::assertSame('test', $failure->getPrevious()?->getMessage());
    }

    public function testOnHeadersIsCalledBeforeTheSinkIsWritten(): void
    {
        $this->answer(new Response(200, ['X-Foo' => 'bar'], 'abc 123'));
        $order = [];
        $stream = Utils::streamFor();
        $sink = FnStream::decorate($stream, ['write' => static function (string $data) use ($stream, &$order): int {
            $order[] = 'write';

            return $stream->write($data);
        }]);
        $response = $this->send(new Request('GET', $this->url()), [
            'sink' => $sink,
            'on_headers' => static function (ResponseInterface $response) use (&$order): void {
                $order[] = $response->getHeaderLine('X-Foo');
            },
        ]);

        self::assertSame([['bar', 'write'], 'abc 123'], [$order, (string) $response->getBody()]);
    }

    public function testStatisticsAreReportedOfASuccessAndOfAFailure(): void
    {
        $this->answer(new Response());
        $stats = null;
        $options = ['on_stats' => static function (TransferStats $given) use (&$stats): void {
            $stats = $given;
        }];
        $this->send(new Request('GET', $this->url()), $options);

        self::assertInstanceOf(TransferStats::class, $stats);
        self::assertSame([200, $this->url(), $this->url()], [
            $stats->getResponse()?->getStatusCode(),
            (string) $stats->getEffectiveUri(),
            (string) $stats->getRequest()->getUri(),
        ]);
        self::assertGreaterThan(0, $stats->getTransferTime());
        $promise = $this->handler()(new Request('GET', 'http://127.0.0.1:1'), $options);
        $promise->wait(false);
        self::assertFalse($stats->hasResponse());
        self::assertSame('http://127.0.0.1:1', (string) $stats->getEffectiveUri());
        self::assertIsFloat($stats->getTransferTime());
        self::assertInstanceOf(ConnectException::class, $stats->getHandlerErrorData());
    }

    public function testABodyIsReadToItsEnd(): void
    {
        $this->answer(new Response(200, [], str_repeat('x', 4_097)));
        $body = $this->send(new Request('GET', $this->url()))->getBody();
        $bytes = 0;
        while (!$body->eof()) {
            $bytes += \strlen($body->read(4_096));
        }

        self::assertSame(4_097, $bytes);
    }

    public function testOnlyTheAnnouncedBytesAreRead(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhi there... This has way too much data!",
        ));
        self::assertSame('hi there', (string) $this->send(new Request('GET', $server->url()))->getBody());
        $server->close();
    }

    public function testADelayComesFirst(): void
    {
        $this->answer(new Response());
        $begin = hrtime(true);
        $this->send(new Request('GET', $this->url()), ['delay' => 100]);

        self::assertGreaterThanOrEqual(0.1, (hrtime(true) - $begin) / 1e9);
    }

    public function testPromisesAreCancelledUntilTheyAreFulfilled(): void
    {
        $this->answer(new Response());
        $promises = [];
        for ($i = 0; $i < 10; ++$i) {
            $promises[] = $promise = $this->handler()(new Request('GET', $this->url()), []);
            $promise->cancel();
        }
        foreach ($promises as $promise) {
            self::assertTrue(Is::rejected($promise));
        }
        $finished = $this->handler()(new Request('GET', $this->url()), []);
        $finished->wait();
        $finished->cancel();
        self::assertTrue(Is::fulfilled($finished));
    }

    public function testAStreamedResponseIsOpen(): void
    {
        $this->answer(new Response(200, [], 'hi there'));
        $response = $this->send(new Request('PUT', "{$this->url()}foo?baz=bar", [], 'test'), ['stream' => true]);
        $body = $response->getBody();

        self::assertSame(['8', 'hi', false], [
            $response->getHeaderLine('Content-Length'),
            $body->read(2),
            $body->eof(),
        ]);
        self::assertSame(' there', $body->getContents());
        self::assertSame(['foo?baz=bar', 'test'], [
            ltrim($this->received[0]->getRequestTarget(), '/'),
            $this->bodies[0],
        ]);
    }

    public function testAReadTimeoutEndsAStreamedBody(): void
    {
        $this->serve(static fn(): Response => Response::stream((static function (): \Generator {
            yield "sleeping\n";
            delay(3);
        })()));
        $body = $this->send(new Request('GET', $this->url()), ['stream' => true, 'read_timeout' => 0.1])->getBody();

        self::assertSame("sleeping\n", $body->read(100));
        $this->expectException(RequestTimeoutException::class);
        $this->expectExceptionMessage('no progress within 0.1 s');
        $body->read(100);
    }

    public function testATimeoutOfZeroIsNone(): void
    {
        $this->answer(new Response());
        $options = ['connect_timeout' => 10, 'timeout' => 0];

        self::assertSame(200, $this->send(new Request('GET', $this->url()), $options)->getStatusCode());
    }

    public function testTheTimeoutEndsARequest(): void
    {
        $server = new ScriptedServer(static function (Socket $socket): void {
            $socket->read();
            $socket->read();
        });
        self::thrown(ConnectException::class, fn() => $this->send(
            new Request('GET', $server->url()),
            ['timeout' => 0.1],
        ));
        $server->close();
    }

    /** Starts a server that returns the response to each request, and keeps the requests. */
    private function answer(Response $response): void
    {
        $this->serve(function (ServerRequestInterface $request) use ($response): Response {
            $this->received[] = $request;
            $this->bodies[] = (string) $request->getBody();

            return $response;
        });
    }

    private function answerCompressed(): string
    {
        $content = (string) gzencode('test');
        $this->answer(new Response(200, ['Content-Encoding' => 'gzip'], $content));

        return $content;
    }

    private function serveTls(): Certificates
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = $certificates->forServer('127.0.0.1');
        $options = new HttpServerOptions(certificate: $certificate, key: $key);
        $this->serve(static fn(): Response => Response::text('secret'), $options, 'tls://127.0.0.1:0');

        return $certificates;
    }

    private function url(): string
    {
        return str_replace(['tcp:', 'tls:'], ['http:', 'https:'], $this->address) . '/';
    }

    private function handler(): GuzzleHandler
    {
        return new GuzzleHandler($this->httpClient ??= new HttpClient());
    }

    /** @param array<string, mixed> $options */
    private function send(Request $request, array $options = []): ResponseInterface
    {
        $response = $this->handler()($request, $options)->wait();
        self::assertInstanceOf(ResponseInterface::class, $response);

        return $response;
    }
}
