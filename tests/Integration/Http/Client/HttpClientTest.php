<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Socket\Socket;
use GuzzleHttp\Client as Guzzle;
use GuzzleHttp\Exception\RequestException;
use GuzzleHttp\HandlerStack;
use GuzzleHttp\Psr7\BufferStream;
use GuzzleHttp\Psr7\FnStream;
use GuzzleHttp\Psr7\InflateStream;
use GuzzleHttp\Psr7\StreamWrapper as GuzzleStreamWrapper;
use GuzzleHttp\Psr7\Utils;
use Nyholm\Psr7\Request;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;
use Revolt\EventLoop;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\ConnectionLostException;
use Spindle\Http\Client\CookieJar;
use Spindle\Http\Client\FormFile;
use Spindle\Http\Client\GuzzleHandler;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\InvalidRequestException;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Client\RedirectLimitException;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Http\ServerSentEvent;
use Spindle\Internal\CannotWaitException;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;
use Spindle\TlsOptions;
use Symfony\Component\HttpClient\Response\StreamWrapper;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;
use function Amp\Future\awaitAll;
use function Amp\Socket\connect;

final class HttpClientTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use OwnDirectory;
    use ServesHttp;

    /** Object that exists until the end of the process. */
    public static ?object $last = null;

    private ?HttpClient $httpClient = null;

    /** Number of requests that are handled now, and its maximum so far. */
    private int $handled = 0;
    private int $most = 0;

    protected function tearDown(): void
    {
        $this->httpClient?->kill();
    }

    public function testAResponseHasStatusHeadersAndABodyThatCanBeReadAgain(): void
    {
        $this->serve(static fn(): Response => new Response(201, ['X-A' => ['1', '2']], 'hello', 'Made'));
        $response = $this->http()->get($this->url('/path?x=1'));

        self::assertSame([201, 'Made', '1.1'], [
            $response->getStatusCode(),
            $response->getReasonPhrase(),
            $response->getProtocolVersion(),
        ]);
        self::assertSame(['1', '2'], $response->getHeader('x-a'));
        self::assertSame('hello', (string) $response->getBody());
        self::assertSame('hello', (string) $response->getBody());
        self::assertSame(5, $response->getBody()->getSize());
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramDoesNotInheritConnections(): void
    {
        $this->serve(static fn(): Response => Response::text(implode(' ', Processes::inheritedSockets())));
        $before = implode(' ', Processes::inheritedSockets());

        self::assertSame($before, (string) $this->http()->get($this->url())->getBody());
    }

    public function testARequestArrivesAsItWasGiven(): void
    {
        $this->serve(self::echoing(...));
        $response = $this->http()->request('PATCH', $this->url('/a%20b?c=d#e'), ['X-A' => ['1', '2']], 'body');

        self::assertSame([
            'method' => 'PATCH',
            'target' => '/a%20b?c=d',
            'host' => $this->authority(),
            'a' => '1, 2',
            'agent' => 'Spindle',
            'type' => '',
            'body' => 'body',
        ], self::decoded($response));
    }

    public function testTheMethodsThatAreNamedAfterAMethodOfHttpSendIt(): void
    {
        $this->serve(self::echoing(...));
        $http = $this->http();
        $requested = new DeferredCancellation();
        $requested->cancel();
        $methods = [
            'POST' => $http->post(...),
            'PUT' => $http->put(...),
            'PATCH' => $http->patch(...),
            'DELETE' => $http->delete(...),
        ];
        foreach ($methods as $method => $send) {
            $request = self::decoded($send($this->url(), RequestBody::json([1]), ['X-A' => 'b']));

            self::assertSame([$method, 'application/json', '[1]', 'b'], [
                $request['method'],
                $request['type'],
                $request['body'],
                $request['a'],
            ]);
            self::assertSame('', self::decoded($send($this->url()))['body']);
            $body = $send($this->url(), options: new RequestOptions(maxBodyBytes: 1))->getBody();
            self::thrown(InvalidResponseException::class, static fn(): string => (string) $body);
            self::thrown(
                CancelledException::class,
                fn() => $send($this->url(), cancellation: $requested->getCancellation()),
            );
        }
    }

    #[RequiresPhpExtension('pcntl')]
    public function testARequestThatCanNotWaitIsNotSent(): void
    {
        $paths = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$paths): Response {
            $paths[] = $request->getUri()->getPath();

            return Response::text('');
        });
        $this->http()->get($this->url('/before')); // opens a connection, so that a request could be sent immediately
        $refused = Async::inSignalHandler(fn(): mixed => $this->http()->request('POST', $this->url('/refused')));
        $this->http()->get($this->url('/after'));

        self::assertInstanceOf(CannotWaitException::class, $refused);
        self::assertStringEndsWith('was refused before it had an effect', $refused->getMessage());
        self::assertSame(['/before', '/after'], $paths);
    }

    public function testBodiesOfSeveralKindsAreSent(): void
    {
        $this->serve(self::echoing(...));
        $file = $this->file('upload.txt', str_repeat('f', 300_000));
        foreach ([
            [RequestBody::json(['ä' => '/']), 'application/json', '{"ä":"/"}'],
            [RequestBody::form(['a' => 'b c', 'd' => ['1']]), 'application/x-www-form-urlencoded', 'a=b+c&d%5B0%5D=1'],
            [RequestBody::file($file, 'text/plain'), 'text/plain', str_repeat('f', 300_000)],
            [RequestBody::stream(['one', '', 'two'], 'text/x'), 'text/x', 'onetwo'],
            ['', '', ''],
        ] as [$body, $type, $expected]) {
            $seen = self::decoded($this->http()->request('POST', $this->url(), body: $body));
            self::assertSame([$type, $expected], [$seen['type'], $seen['body']]);
        }
        self::assertSame(1, $this->http()->statistics()['connections']);
    }

    public function testAFormWithFilesIsReadByTheServer(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $file = $request->getUploadedFiles()['file'] ?? null;
            \assert($file instanceof UploadedFileInterface);

            return Response::json([
                $request->getParsedBody(),
                $file->getClientFilename(),
                $file->getClientMediaType(),
                $file->getSize(),
            ]);
        });
        $file = new FormFile($this->file('a.bin', str_repeat("\0", 100_000)), 'name.bin', 'image/png');
        $response = $this->http()->request('POST', $this->url(), body: RequestBody::multipart([
            'text' => "line\r\nline",
            'list[]' => ['1', '2'],
            'file' => $file,
        ]));

        self::assertSame(
            [['text' => "line\r\nline", 'list' => ['1', '2']], 'name.bin', 'image/png', 100_000],
            json_decode((string) $response->getBody(), true),
        );
    }

    public function testABodyThatIsMadeWhileItIsSentIsNotSentTwice(): void
    {
        $requests = 0;
        $this->serve(static function (ServerRequestInterface $request) use (&$requests): Response {
            ++$requests;
            $request->getBody()->getContents();

            return new Response();
        });
        $form = RequestBody::multipart(['file' => new FormFile($this->file('a.txt', 'text'))]);
        foreach ([$form, RequestBody::stream(['a', 'b']), RequestBody::stream([])] as $body) {
            $this->http()->request('POST', $this->url(), body: $body);
            $failure = self::thrown(
                InvalidRequestException::class,
                fn() => $this->http()->request('POST', $this->url(), body: $body),
            );
            self::assertStringContainsString('it was already sent; create a new body', $failure->getMessage());
        }

        self::assertSame(3, $requests);
    }

    public function testAForeignStreamThatCanNotBeReadAgainIsNotSentTwice(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response
            => Response::text((string) $request->getBody()));
        $pipe = popen('printf text', 'r');
        \assert($pipe !== false);
        foreach ([Utils::streamFor(new \ArrayIterator(['te', 'xt'])), Stream::create($pipe)] as $body) {
            self::assertSame('text', (string) $this->http()->request('POST', $this->url(), body: $body)->getBody());
            try {
                $this->http()->request('POST', $this->url(), body: $body);
                self::fail('the rest of a body was sent');
            } catch (InvalidRequestException $failure) {
                self::assertStringContainsString('it was already read to its end', $failure->getMessage());
            }
        }
    }

    public function testTheRestOfAForeignStreamIsNotSent(): void
    {
        $bodies = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$bodies): Response {
            $bodies[] = (string) $request->getBody();

            return Response::text('');
        });
        /** @var list<string|null> $pieces */
        $pieces = ['te', null, 'xt'];
        $body = FnStream::decorate(Utils::streamFor(new \ArrayIterator([])), [
            'getSize' => static fn(): ?int => null,
            'eof' => static function () use (&$pieces): bool {
                return $pieces === [];
            },
            'read' => static function () use (&$pieces): string {
                return array_shift($pieces) ?? throw new \RuntimeException('the device has failed');
            },
        ]);
        foreach (['the device has failed', 'another request sends it'] as $reason) {
            $failure = self::thrown(
                InvalidRequestException::class,
                fn() => $this->http()->request('POST', $this->url(), body: $body),
            );
            self::assertStringContainsString($reason, $failure->getMessage());
        }

        self::assertSame([], $bodies);
    }

    public function testALargeBodyIsStreamedInBothDirections(): void
    {
        $repeat = static function (ServerRequestInterface $request): \Generator {
            $body = $request->getBody();
            while (!$body->eof()) {
                yield $body->read(65_536);
            }
        };
        $this->serve(
            static fn(ServerRequestInterface $request): Response => Response::stream($repeat($request)),
            new HttpServerOptions(maxBodyBytes: 100_000_000),
        );
        $pieces = static function (): \Generator {
            for ($i = 0; $i < 500; ++$i) {
                yield str_repeat(\chr($i % 256), 100_000);
            }
        };
        memory_reset_peak_usage();
        $before = memory_get_peak_usage();
        $response = $this->http()->request('POST', $this->url(), body: RequestBody::stream($pieces()));
        $hash = hash_init('xxh64');
        $body = $response->getBody();
        while (!$body->eof()) {
            hash_update($hash, $body->read(8192));
        }
        $expected = hash_init('xxh64');
        foreach ($pieces() as $piece) {
            hash_update($expected, $piece);
        }

        self::assertSame(hash_final($expected), hash_final($hash));
        self::assertSame(50_000_000, $body->tell());
        self::assertFalse($body->isSeekable());
        self::assertLessThan(8_000_000, memory_get_peak_usage() - $before);
    }

    public function testConnectionsAreUsedAgainAndRequestsRunSideBySide(): void
    {
        $this->serve(function (): Response {
            $this->most = max($this->most, ++$this->handled);
            delay(0.05);
            --$this->handled;

            return Response::text('late');
        });
        for ($round = 0; $round < 3; ++$round) {
            await(array_map(fn() => async(fn() => (string) $this->http()->get($this->url())->getBody()), range(1, 20)));
        }

        self::assertGreaterThan(10, $this->most);
        self::assertSame(20, $this->http()->statistics()['connections']);
        self::assertSame(60, $this->http()->statistics()['requests_total']);
    }

    public function testGzipIsDecompressedUnlessTheOptionsSayOtherwise(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => new Response(
            200,
            ['Content-Encoding' => 'gzip', 'X-Accepted' => $request->getHeaderLine('Accept-Encoding')],
            (string) gzencode(str_repeat('text ', 100_000)),
        ));
        $response = $this->http()->get($this->url());

        self::assertSame(str_repeat('text ', 100_000), (string) $response->getBody());
        self::assertFalse($response->hasHeader('Content-Encoding'));
        self::assertSame('gzip', $response->getHeaderLine('X-Accepted'));

        $raw = $this->http()->get($this->url(), options: new RequestOptions(decompress: false));
        self::assertSame(str_repeat('text ', 100_000), gzdecode((string) $raw->getBody()));
        self::assertSame('', $raw->getHeaderLine('X-Accepted'));
    }

    #[TestWith(["Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", true])]
    #[TestWith(["Content-Encoding: Identity , X-GZIP\r\n", true])]
    #[TestWith(["Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", false])]
    #[TestWith(["Content-Encoding: gzip, gzip\r\n", false])]
    #[TestWith(["Content-Encoding: gzip\r\nContent-Encoding: br\r\n", false])]
    #[TestWith(["Content-Encoding: identity\r\n", false])]
    public function testOnlyABodyWithTheSingleCodingGzipIsDecompressed(string $lines, bool $isDecompressed): void
    {
        $gzip = (string) gzencode('text');
        $server = new ScriptedServer(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\n{$lines}Content-Length: " . \strlen($gzip) . "\r\n\r\n{$gzip}",
        ));
        $response = $this->http()->get($server->url());

        self::assertSame($isDecompressed ? 'text' : $gzip, (string) $response->getBody());
        $keptLines = $isDecompressed ? 0 : substr_count($lines, "\r\n");
        self::assertCount($keptLines, $response->getHeader('Content-Encoding'));
        self::assertSame(!$isDecompressed, $response->hasHeader('Content-Length'));
        $server->close();
    }

    public function testManyRequestsCanWaitInAQueue(): void
    {
        $this->serve(static function (): Response {
            delay(0.1);

            return Response::text('x');
        });
        $this->httpClient = new HttpClient(new HttpClientOptions(
            maxConnectionsPerHost: 1,
            acquireTimeout: 0.05,
            maxWaiting: 1,
            request: new RequestOptions(waitsInQueue: true),
        ));
        $get = fn(): string => (string) $this->http()->get($this->url())->getBody();
        $bodies = await(array_map(static fn() => Async::run($get), range(1, 5)));

        self::assertSame('xxxxx', implode('', $bodies));
    }

    public function testUnreadResponsesInCyclesGiveTheirConnectionsToAWaitingRequest(): void
    {
        gc_collect_cycles(); // so that PHP itself does not collect during the test
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(
            $request->getRequestTarget() === '/long' ? str_repeat('x', 3_000_000) : 'short',
        ));
        $this->httpClient = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 2, acquireTimeout: 10.0));
        foreach ([1, 2] as $number) {
            $cycle = new \stdClass();
            $cycle->self = $cycle;
            $cycle->response = $this->http()->get($this->url('/long'));
            unset($cycle);
        }

        self::assertSame('short', (string) $this->http()->get($this->url())->getBody());
    }

    public function testAnUnreadBodyIsNamedIfNoConnectionIsFree(): void
    {
        $this->serve(static fn(): Response => Response::text(str_repeat('x', 3_000_000)));
        $this->httpClient = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1, acquireTimeout: 0.05));
        $unread = $this->http()->get($this->url());
        $failure = self::thrown(ConnectFailedException::class, fn() => $this->http()->get($this->url()));
        self::assertStringEndsWith(
            'no connection was free within 0.05 s; bodies that were not read to their end use 1 of the connections'
                . ' (HttpClientOptions::$acquireTimeout)',
            $failure->getMessage(),
        );
        $unread->getBody()->close();
    }

    public function testAResponseThatIsReadDuringItsUploadKeepsTheQueueWaiting(): void
    {
        $gate = new DeferredFuture();
        $this->serve(static fn(ServerRequestInterface $request): Response => $request->getMethod() === 'GET'
            ? Response::text('next')
            : Response::stream((static function () use ($gate): \Generator {
                for ($i = 0; $i < 30; ++$i) {
                    yield 'x';
                    delay(0.01);
                }
                $gate->complete();
            })()));
        $this->httpClient = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1, acquireTimeout: 0.05));
        $body = RequestBody::stream((static function () use ($gate): \Generator {
            yield 'a';
            $gate->getFuture()->await();
            yield 'b';
        })(), 'text/plain');
        $now = new RequestOptions(expectContinueBytes: \PHP_INT_MAX);
        $response = $this->http()->request('POST', $this->url(), body: $body, options: $now);
        $read = Async::run(static fn(): string => $response->getBody()->getContents());
        $next = $this->http()->get($this->url(), options: new RequestOptions(waitsInQueue: true));

        self::assertSame(str_repeat('x', 30), $read->await());
        self::assertSame('next', (string) $next->getBody());
    }

    public function testRedirectsAreFollowedOnlyIfTheOptionsSaySo(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => match ($request->getRequestTarget()) {
            '/303' => new Response(303, ['Location' => 'folder/../target?x']),
            '/307' => new Response(307, ['Location' => '/target?x']),
            '/loop' => new Response(302, ['Location' => '/loop']),
            default => self::echoing($request),
        });

        self::assertSame(303, $this->http()->get($this->url('/303'))->getStatusCode());
        $options = new RequestOptions(maxRedirects: 3);
        $seen = self::decoded($this->http()->request('POST', $this->url('/303'), [], RequestBody::json(1), $options));
        self::assertSame(['GET', '/target?x', ''], [$seen['method'], $seen['target'], $seen['type'] . $seen['body']]);
        $seen = self::decoded($this->http()->request('POST', $this->url('/307'), [], RequestBody::json(1), $options));
        self::assertSame(['POST', '/target?x', '1'], [$seen['method'], $seen['target'], $seen['body']]);
        $this->expectException(RedirectLimitException::class);
        $this->http()->get($this->url('/loop'), options: $options);
    }

    public function testARedirectOfABodyFromAPipeIsNotFollowed(): void
    {
        $bodies = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$bodies): Response {
            $bodies[] = (string) $request->getBody();

            return new Response(\count($bodies) === 1 ? 307 : 200, ['Location' => '/']);
        });
        $pipe = popen('printf text', 'r');
        self::assertNotFalse($pipe);
        $request = new Request('POST', $this->url(), [], Stream::create($pipe));
        $response = $this->http()->send($request, new RequestOptions(maxRedirects: 1));

        self::assertSame([307, ['text']], [$response->getStatusCode(), $bodies]);
    }

    #[TestWith(['identity'])]
    #[TestWith(['gzip'])]
    public function testTheBodyOfAResponseHasTheUrlAfterRedirects(string $coding): void
    {
        $bytes = $coding === 'gzip' ? (string) gzencode('x') : 'x';
        $this->serve(static fn(ServerRequestInterface $request): Response => match ($request->getRequestTarget()) {
            '/folder/start' => new Response(302, ['Location' => 'target?x#part']),
            default => new Response(200, ['Content-Encoding' => $coding], $bytes),
        });
        $url = str_replace('//', '//user:password@', $this->url('/folder/start#top'));
        $body = $this->http()->get($url, options: new RequestOptions(maxRedirects: 1))->getBody();

        self::assertSame($this->url('/folder/target?x'), $body->getMetadata('uri'));
        self::assertSame(['uri' => $this->url('/folder/target?x')], $body->getMetadata());
        self::assertNull($body->getMetadata('mode'));
        self::assertSame('x', (string) $body);
    }

    public function testCredentialsAreNotSentToAnotherOrigin(): void
    {
        $other = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 204 No Content\r\n\r\n"));
        $this->serve(static fn(): Response => new Response(302, ['Location' => $other->url('/there')]));
        $this->http()->get(
            $this->url(),
            ['Authorization' => 'Bearer x', 'Cookie' => 'a=b', 'X-Kept' => 'c'],
            new RequestOptions(maxRedirects: 1),
        );

        self::assertStringContainsString("X-Kept: c\r\n", $other->heads[0]);
        self::assertDoesNotMatchRegularExpression('/Authorization|Cookie/', $other->heads[0]);
        $other->close();
    }

    /** As in curl and Symfony's clients. The server may choose an application by this header. */
    public function testTheCallersHostHeaderIsSentToTheSameOriginOnly(): void
    {
        $other = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 204 No Content\r\n\r\n"));
        $hosts = [];
        $this->serve(static function (ServerRequestInterface $request) use ($other, &$hosts): Response {
            $hosts[] = $request->getHeaderLine('Host');

            return Response::redirect($request->getRequestTarget() === '/' ? '/next' : $other->url());
        });
        $this->http()->get($this->url(), ['Host' => 'app.test'], new RequestOptions(maxRedirects: 2));
        $other->close();

        self::assertSame(['app.test', 'app.test'], $hosts);
        self::assertStringNotContainsString('app.test', $other->heads[0]);
    }

    public function testCookiesOfTheJarAreStoredAndSent(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(
            $request->getHeaderLine('Cookie'),
            headers: ['Set-Cookie' => ['a=1; Path=/', 'b=2']],
        ));
        $this->httpClient = new HttpClient(new HttpClientOptions(cookies: new CookieJar()));

        self::assertSame('', (string) $this->http()->get($this->url())->getBody());
        self::assertSame('a=1; b=2', (string) $this->http()->get($this->url())->getBody());
    }

    public function testARequestHasOneCookieLineWithItsOwnCookiesAndThoseOfTheJar(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 204 No Content\r\n\r\n"));
        $jar = new CookieJar();
        $jar->store($server->url(), ['a=jar', 'b=jar', 'c=jar']);
        $this->httpClient = new HttpClient(new HttpClientOptions(cookies: $jar));
        $this->http()->get($server->url(), ['Cookie' => ['x=1; b=own', 'flag', 'y=2;c=own']]);
        $this->http()->get($server->url(), ['cookie' => 'x=1']);
        (new HttpClient())->get($server->url(), ['Cookie' => ['x=1', 'y=2']]);
        $this->http()->get($server->url(), ['Cookie' => ['', 'a=own;', ' b=own; ']]);
        $server->close();

        $sent = array_map(static function (string $head): array {
            preg_match_all('/^cookie: ([^\r]*)/mi', $head, $match);

            return $match[1];
        }, $server->heads);
        self::assertSame(
            [
                ['x=1; b=own; flag; y=2;c=own; a=jar'],
                ['x=1; a=jar; b=jar; c=jar'],
                ['x=1; y=2'],
                ['a=own; b=own; c=jar'],
            ],
            $sent,
        );
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAFiberThatReadsABodyIsNotDisturbedByAnotherOne(bool $isCompressed): void
    {
        $gzip = deflate_init(\ZLIB_ENCODING_GZIP);
        \assert($gzip !== false);
        [$begin, $end] = $isCompressed
            ? [(string) deflate_add($gzip, 'ab', \ZLIB_SYNC_FLUSH), (string) deflate_add($gzip, 'cd', \ZLIB_FINISH)]
            : ['ab', 'cd'];
        $gate = new DeferredFuture();
        $headers = $isCompressed ? ['Content-Encoding' => 'gzip'] : [];
        $pieces = static function () use ($begin, $end, $gate): \Generator {
            yield $begin;
            $gate->getFuture()->await();
            yield $end;
        };
        $this->serve(static fn(): Response => Response::stream($pieces(), headers: $headers));
        [$whole, $rest] = [$this->http()->get($this->url())->getBody(), $this->http()->get($this->url())->getBody()];
        self::assertSame('ab', $rest->read(100));
        $readers = [async(static fn(): string => (string) $whole), async(static fn(): string => $rest->read(100))];
        delay(0.02);
        foreach ([$whole, $rest] as $body) {
            foreach ([
                static fn(): string => $body->read(1),
                static fn(): string => $body->getContents(),
                static fn(): string => (string) $body,
                static fn() => $body->rewind(),
            ] as $access) {
                $failure = self::thrown(\LogicException::class, static fn() => $access());
                self::assertSame('Another fiber is reading this body', $failure->getMessage());
            }
        }
        $gate->complete();

        self::assertSame(['abcd', 'cd'], [$readers[0]->await(), $readers[1]->await()]);
    }

    public function testEventsArriveOneByOne(): void
    {
        $sent = 0;
        $events = static function () use (&$sent): \Generator {
            for ($i = 1; $i <= 3; ++$i) {
                ++$sent;
                yield new ServerSentEvent("event {$i}", id: (string) $i);
                delay(0.05);
            }
        };
        $this->serve(static fn(): Response => Response::serverSentEvents($events()));
        $received = [];
        foreach ($this->http()->serverSentEvents($this->url()) as $event) {
            $received[] = [$event->data, $event->id, $sent];
        }

        self::assertSame([['event 1', '1', 1], ['event 2', '2', 2], ['event 3', '3', 3]], $received);
    }

    public function testEventsThatArriveInSeveralReadsHaveDifferentKeys(): void
    {
        $events = static function (): \Generator {
            foreach (['one', 'two', 'three'] as $data) {
                yield $data;
                delay(0.01);
            }
        };
        $this->serve(static fn(): Response => Response::serverSentEvents($events()));
        $received = iterator_to_array($this->http()->serverSentEvents($this->url()));

        self::assertSame(['one', 'two', 'three'], array_column($received, 'data'));
        self::assertSame([0, 1, 2], array_keys($received));
    }

    public function testCompressedEventsArriveOneByOne(): void
    {
        $sent = 0;
        $events = static function () use (&$sent): \Generator {
            $gzip = deflate_init(\ZLIB_ENCODING_GZIP);
            \assert($gzip !== false);
            for ($i = 1; $i <= 3; ++$i) {
                ++$sent;
                yield (string) deflate_add($gzip, "data: event {$i}\n\n", \ZLIB_SYNC_FLUSH);
                delay(0.05);
            }
            yield (string) deflate_add($gzip, '', \ZLIB_FINISH);
        };
        $accepted = [];
        $this->serve(static function (ServerRequestInterface $request) use ($events, &$accepted, &$sent): Response {
            $accepted[] = $request->getHeaderLine('Accept-Encoding');
            $sent = 0;

            return Response::stream($events(), 'text/event-stream', headers: ['Content-Encoding' => 'gzip']);
        });
        foreach ([null, new RequestOptions(decompress: false), new RequestOptions()] as $options) {
            $received = [];
            foreach ($this->http()->serverSentEvents($this->url(), options: $options) as $event) {
                $received[] = [$event->data, $sent];
            }
            self::assertSame([['event 1', 1], ['event 2', 2], ['event 3', 3]], $received);
        }

        self::assertSame(['', '', 'gzip'], $accepted);
    }

    public function testEventsWithAnUnsupportedCodingAreRefused(): void
    {
        $this->serve(static fn(): Response => new Response(
            200,
            ['Content-Type' => 'text/event-stream', 'Content-Encoding' => 'br'],
            'x',
        ));
        $this->expectException(InvalidResponseException::class);
        $this->expectExceptionMessage("the events have the unsupported Content-Encoding 'br'");
        iterator_to_array($this->http()->serverSentEvents($this->url()));
    }

    public function testAnotherResponseIsNoStreamOfEvents(): void
    {
        $this->serve(static fn(): Response => Response::text('no', 404));
        $this->expectException(InvalidResponseException::class);
        $this->expectExceptionMessage("it has status 404 and Content-Type 'text/plain; charset=utf-8'");
        iterator_to_array($this->http()->serverSentEvents($this->url()));
    }

    public function testEventsAnswerAPostWithABody(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $head = [$request->getMethod(), $request->getHeaderLine('Content-Type'), $request->getHeaderLine('Accept')];

            return Response::serverSentEvents([implode(' ', $head), (string) $request->getBody()]);
        });
        $body = RequestBody::json(['stream' => true]);
        $events = $this->http()->serverSentEvents($this->url(), method: 'POST', body: $body);
        $data = array_map(static fn(ServerSentEvent $event): string => $event->data, iterator_to_array($events, false));

        self::assertSame(['POST application/json text/event-stream', '{"stream":true}'], $data);
    }

    public function testTheResponseThatIsNoStreamOfEventsCanBeRead(): void
    {
        $this->serve(static fn(): Response => Response::json(['error' => 'slow down'], 429, ['Retry-After' => '7']));
        $failure = self::thrown(
            InvalidResponseException::class,
            fn() => iterator_to_array($this->http()->serverSentEvents($this->url(), method: 'POST', body: 'x')),
        );
        $response = $failure->getResponse();
        self::assertSame([429, '7', '{"error":"slow down"}'], [
            $response?->getStatusCode(),
            $response?->getHeaderLine('Retry-After'),
            (string) $response?->getBody(),
        ]);
    }

    public function testEventsHaveTheOtherOptionsOfTheClient(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"));
        $options = new RequestOptions(maxBodyBytes: 3, expectContinueBytes: 1);
        $client = new HttpClient(new HttpClientOptions(request: $options));
        $failure = self::thrown(
            InvalidResponseException::class,
            static fn() => iterator_to_array($client->serverSentEvents($server->url(), method: 'POST', body: 'x')),
        );
        $body = $failure->getResponse()?->getBody();
        $server->close();

        self::assertStringContainsString("\r\nExpect: 100-continue", $server->heads[0]);
        $this->expectException(InvalidResponseException::class);
        $this->expectExceptionMessage('maxBodyBytes');
        $body?->getContents();
    }

    public function testALargeBodyWaitsForThePermissionOfTheServer(): void
    {
        $server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
        });
        $pieces = (static function (): \Generator {
            yield self::fail('The body was read');
        })();
        $response = $this->http()->request('POST', $server->url(), [], RequestBody::stream($pieces));

        self::assertSame(413, $response->getStatusCode());
        self::assertStringContainsString('Expect: 100-continue', $server->heads[0]);
        self::assertSame(0, $this->http()->statistics()['connections']);
        $server->close();
    }

    public function testSmallPiecesOfABodyFormLongChunks(): void
    {
        $received = '';
        $server = new ScriptedServer(static function (Socket $socket) use (&$received): void {
            while (!str_ends_with($received, "\r\n0\r\n\r\n") && ($bytes = $socket->read()) !== null) {
                $received .= $bytes;
            }
            $socket->write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        });
        $body = RequestBody::stream(array_fill(0, 10_000, 'piece'));
        $now = new RequestOptions(expectContinueBytes: \PHP_INT_MAX);
        $response = $this->http()->request('POST', $server->url(), body: $body, options: $now);
        self::assertSame('ok', (string) $response->getBody());
        $server->close();

        self::assertSame(10_000, substr_count($received, 'piece'));
        self::assertLessThan(5_000, preg_match_all('/\r\n[1-9a-f][0-9a-f]*\r\n/', $received));
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testABodyThatIsBeingSentIsNotSentInASecondRequest(bool $isForeign): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response
            => Response::text((string) \strlen((string) $request->getBody())));
        $pieces = (static function (): \Generator {
            for ($piece = 0; $piece < 60; ++$piece) {
                yield str_repeat('x', 100_000);
            }
        })();
        $body = $isForeign ? Utils::streamFor($pieces) : RequestBody::stream($pieces);
        $http = $this->http();
        $send = fn(): string => (string) $http->request('POST', $this->url(), body: $body)->getBody();
        [$failures, $answers] = awaitAll([async($send), async($send)]);

        self::assertSame(['6000000'], array_values($answers));
        self::assertStringContainsString(
            'another request sends it, or has sent a part of it; create a new body',
            implode(array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $failures)),
        );
        self::assertCount(1, $failures);
        self::assertSame('0', (string) $http->request('GET', $this->url())->getBody());
    }

    #[TestWith(['inflated'])]
    #[TestWith(['filtered'])]
    public function testAFilteredFileIsSentOnlyOnce(string $kind): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $size = \strlen((string) $request->getBody());

            return str_ends_with($request->getUri()->getPath(), 'again')
                ? Response::redirect('/', 307)
                : Response::text((string) $size);
        });
        $http = $this->http();
        $body = $this->compressed($kind, 3_000_000);
        $send = fn(): string => (string) $http->request('POST', $this->url(), body: $body)->getBody();
        $other = $this->compressed($kind, 3_000_000);
        $follow = new RequestOptions(maxRedirects: 1);
        $redirect = fn() => $http->request('POST', "{$this->url()}again", body: $other, options: $follow);

        self::assertSame('3000000', $send());
        foreach ([$send, $redirect] as $second) {
            $failure = self::thrown(InvalidRequestException::class, $second);
            if (\PHP_VERSION_ID < 80500) { // newer versions of PHP refuse to seek
                self::assertStringContainsString('filter can\'t be reset; create a new', $failure->getMessage());
            }
        }
    }

    #[TestWith(['inflated'])]
    #[TestWith(['filtered'])]
    #[TestWith(['php://filter'])]
    public function testARefusedRequestDoesNotMoveTheFilteredFileOfAnother(string $kind): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response
            => Response::text((string) \strlen((string) $request->getBody())));
        $http = $this->http();
        $body = $this->compressed($kind, 6_000_000);
        $send = fn(): string => (string) $http->request('POST', $this->url(), body: $body)->getBody();
        $first = async($send);
        while ($body->tell() === 0) {
            delay(0);
        }
        self::thrown(InvalidRequestException::class, $send);

        self::assertSame('6000000', $first->await());
    }

    #[TestWith(['inflated'])]
    #[TestWith(['filtered'])]
    #[TestWith(['php://filter'])]
    public function testAFilteredFileIsNotSentDuringOrAfterAPartOfIt(string $kind): void
    {
        $this->serve(self::echoing(...));
        $body = $this->compressed($kind, 20_000_000);
        $silent = stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($silent);
        $url = 'http://' . stream_socket_get_name($silent, false);
        $http = new HttpClient();
        $first = async(fn() => $http->request('POST', $url, body: $body));
        while ($body->tell() === 0) {
            delay(0.001);
        }
        $second = fn() => $this->http()->request('POST', $this->url(), body: $body);
        $failures = [self::thrown(InvalidRequestException::class, $second)];
        $http->kill();
        self::thrown(ClientClosedException::class, $first->await(...));
        $failures[] = self::thrown(InvalidRequestException::class, $second);

        foreach ($failures as $failure) {
            self::assertStringContainsString(
                'another request sends it, or has sent a part of it; create a new body',
                $failure->getMessage(),
            );
        }
        self::assertFalse($body->eof());
    }

    /** @param positive-int $size */
    private function compressed(string $kind, int $size): StreamInterface
    {
        if ($kind === 'php://filter') {
            $path = $this->file('body.deflate', (string) gzdeflate(random_bytes($size), 1));

            return Utils::streamFor(Streams::open("php://filter/read=zlib.inflate/resource={$path}", 'r'));
        }
        $file = Streams::open($this->file('body.gz', (string) gzencode(random_bytes($size), 1)), 'r');
        if ($kind === 'inflated') {
            return new InflateStream(Utils::streamFor($file));
        }
        stream_filter_append($file, 'zlib.inflate', \STREAM_FILTER_READ, ['window' => 31]);

        return Utils::streamFor($file);
    }

    public function testABodyThatNoRequestHasReadIsSentAgain(): void
    {
        $this->serve(self::echoing(...));
        $body = RequestBody::stream(['whole']);
        $now = new RequestOptions(expectContinueBytes: \PHP_INT_MAX);
        $killed = new HttpClient();
        self::assertSame(200, $killed->get($this->url())->getStatusCode());
        $first = async(fn() => $killed->request('POST', $this->url(), body: $body, options: $now));
        EventLoop::queue($killed->kill(...)); // after the head was sent, and before the body is read
        self::thrown(ClientClosedException::class, $first->await(...));

        $response = $this->http()->request('POST', $this->url(), body: $body, options: $now);
        self::assertStringContainsString('whole', (string) $response->getBody());
    }

    public function testABodyWhoseFirstReadFailedIsNotSentAgain(): void
    {
        $this->serve(self::echoing(...));
        $body = RequestBody::stream((static function (): \Generator {
            throw new \DomainException('no first piece');
            yield ''; // @phpstan-ignore deadCode.unreachable
        })());
        foreach (['no first piece', 'another request sends it'] as $reason) {
            $send = fn() => $this->http()->request('POST', $this->url(), body: $body);
            $failure = self::thrown(InvalidRequestException::class, $send);
            self::assertStringContainsString($reason, $failure->getMessage());
        }
    }

    public function testAStreamThatCannotTellItsPositionIsSentAgainAfterItWasRefilled(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response
            => Response::text((string) \strlen((string) $request->getBody())));
        $body = new BufferStream();
        foreach (['', 'a', 'abc'] as $text) {
            $body->write($text);
            $answer = $this->http()->request('POST', $this->url(), body: $body)->getBody();
            self::assertSame((string) \strlen($text), (string) $answer);
        }
    }

    public function testConcurrentRequestsSendTheSameFile(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response
            => Response::text(md5((string) $request->getBody())));
        $bytes = implode(array_map(static fn(int $block): string => str_repeat(\chr($block), 262_144), range(65, 76)));
        $body = RequestBody::file($this->file('a.bin', $bytes));
        $http = $this->http();
        $send = fn(): string => (string) $http->request('POST', $this->url(), body: $body)->getBody();

        $answers = await([async($send), async($send), async($send)]); // in the order of their arrival
        self::assertSame(array_fill(0, 3, md5($bytes)), array_values($answers));
    }

    public function testPiecesOfABodyAreSentBeforeEachWaitOfTheIterator(): void
    {
        $gates = array_map(static fn(int $gate): DeferredFuture => new DeferredFuture(), range(1, 20));
        $this->serve(static function (ServerRequestInterface $request) use ($gates): Response {
            foreach ($gates as $gate) {
                $text = '';
                while (\strlen($text) < 9) {
                    $text .= $request->getBody()->read(9 - \strlen($text));
                }
                self::assertSame('onetwosix', $text, 'while the iterator waits');
                $gate->complete();
            }

            return Response::text('received');
        });
        $body = RequestBody::stream((static function () use ($gates): \Generator {
            foreach ($gates as $gate) {
                yield from ['one', 'two', 'six'];
                $gate->getFuture()->await();
            }
        })());

        self::assertSame('received', (string) $this->http()->request('POST', $this->url(), body: $body)->getBody());
    }

    public function testCloseIsRefusedInARequestBodyOfTheSameClient(): void
    {
        $server = new ScriptedServer(static function (Socket $socket): void {
            while ($socket->read() !== null);
        });
        $client = new HttpClient(new HttpClientOptions(request: new RequestOptions(readTimeout: 3)));
        $pieces = (static function () use ($client): \Generator {
            yield 'a';
            $client->close();
        })();
        $failure = self::thrown(
            InvalidRequestException::class,
            static fn() => $client->request('POST', $server->url(), [], RequestBody::stream($pieces)),
        );
        self::assertInstanceOf(\LogicException::class, $failure->getPrevious());
        self::assertStringContainsString('close() would wait for itself', $failure->getMessage());
        $server->close();
        $other = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));

        self::assertSame('ok', (string) $client->get($other->url())->getBody());
        $client->close();
        $other->close();
    }

    public function testInterimResponsesAndTrailersAreSkipped(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                . "2;ext=1\r\nab\r\n3\r\ncde\r\n0\r\nTrailer: x\r\n\r\n",
        ));

        self::assertSame('abcde', (string) $this->http()->get($server->url())->getBody());
        self::assertSame('abcde', (string) $this->http()->get($server->url())->getBody());
        self::assertSame(1, $server->accepted);
        $server->close();
    }

    public function testALongOperationMaySendManyInterimResponses(): void
    {
        $interim = str_repeat("HTTP/1.1 102 Processing\r\nDate: Sat, 28 Nov 2026 07:00:00 GMT\r\n\r\n", 500);
        $ok = "{$interim}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        $server = new ScriptedServer(ScriptedServer::answering($ok));

        self::assertSame('ok', (string) $this->http()->get($server->url())->getBody());
        $server->close();
    }

    #[TestWith(['HEAD', "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"])]
    #[TestWith(['GET', "HTTP/1.1 204 No Content\r\n\r\n"])]
    #[TestWith(['GET', "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"])]
    public function testResponsesWithoutABodyLeaveTheConnectionUsable(string $method, string $answer): void
    {
        $server = new ScriptedServer(ScriptedServer::answering($answer));
        for ($i = 0; $i < 2; ++$i) {
            self::assertSame('', (string) $this->http()->request($method, $server->url())->getBody());
        }

        self::assertSame(1, $server->accepted);
        $server->close();
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAShortBodyCanNotBeReadAfterItWasClosed(bool $isCompressed): void
    {
        $this->serve(static fn(): Response => $isCompressed
            ? new Response(200, ['Content-Encoding' => 'gzip'], (string) gzencode('hello'))
            : Response::text('hello'));
        $body = $this->http()->get($this->url())->getBody();
        self::assertSame(['hello', true], [(string) $body, $body->isReadable()]);
        $body->close();

        self::assertSame([false, false, true], [$body->isReadable(), $body->isSeekable(), $body->eof()]);
        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('The body was closed');
        $body->getContents();
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAClosedBodyIsAtItsEndAndIsNotSentAsAnEmptyOne(bool $isCompressed): void
    {
        $text = str_repeat('text', 100_000);
        $this->serve(static fn(): Response => $isCompressed
            ? new Response(200, ['Content-Encoding' => 'gzip'], (string) gzencode($text))
            : Response::text($text));
        $body = $this->http()->get($this->url())->getBody();
        self::assertSame(['te', false], [$body->read(2), $body->eof()]);
        $body->close();

        self::assertTrue($body->eof());
        foreach ([static fn(): string => $body->read(1), $body->getContents(...), $body->__toString(...)] as $read) {
            self::assertSame('The body was closed', self::thrown(\RuntimeException::class, $read)->getMessage());
        }
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage("the body of the request can't be read: it was closed, or is not readable");
        $this->http()->request('POST', $this->url(), body: $body);
    }

    public function testALongBodyCanBeReadAgainOnlyIfItWasReturnedAsAWhole(): void
    {
        $text = str_repeat('text', 500_000);
        $this->serve(static fn(): Response => Response::text($text));
        $whole = $this->http()->get($this->url())->getBody();
        self::assertFalse($whole->isSeekable());
        self::assertSame([$text, true, $text], [$whole->getContents(), $whole->isSeekable(), (string) $whole]);
        $whole->seek(1_999_996);
        self::assertSame('text', $whole->getContents());
        $pieces = $this->http()->get($this->url())->getBody();
        while (!$pieces->eof()) {
            $pieces->read(8192);
        }

        self::assertFalse($pieces->isSeekable());
        $this->expectException(\RuntimeException::class);
        $pieces->rewind();
    }

    #[TestWith(['close', 0])]
    #[TestWith(['Upgrade, Close', 0])]
    #[TestWith(['not-close', 1])]
    public function testAConnectionIsKeptUnlessTheServerClosesIt(string $option, int $connections): void
    {
        $server = new ScriptedServer(ScriptedServer::answering(
            "HTTP/1.1 200 OK\r\nConnection: {$option}\r\nContent-Length: 2\r\n\r\nok",
        ));

        self::assertSame('ok', (string) $this->http()->get($server->url())->getBody());
        self::assertSame($connections, $this->http()->statistics()['connections']);
        $server->close();
    }

    #[TestWith(['close', 0])]
    #[TestWith(['TE, Close', 0])]
    #[TestWith(['keep-alive', 1])]
    public function testAConnectionIsClosedIfItsRequestSaysSo(string $option, int $connections): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));

        self::assertSame('ok', (string) $this->http()->get($server->url(), ['Connection' => $option])->getBody());
        self::assertSame($connections, $this->http()->statistics()['connections']);
        $server->close();
    }

    public function testABodyWithoutALengthEndsWithTheConnection(): void
    {
        $server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.0 200 OK\r\n\r\nold");
            delay(0.01);
            $socket->write(' server');
        });

        self::assertSame('old server', (string) $this->http()->get($server->url())->getBody());
        self::assertSame(0, $this->http()->statistics()['connections']);
        $server->close();
    }

    public function testPsrRequestsAreSent(): void
    {
        $this->serve(self::echoing(...));
        $request = new Request('PUT', $this->url('/psr'), ['X-A' => 'b'], 'content');
        $seen = self::decoded($this->http()->sendRequest($request));

        self::assertSame(['PUT', '/psr', 'b'], [$seen['method'], $seen['target'], $seen['a']]);
        self::assertSame('content', $seen['body']);
        self::assertSame('content', self::decoded($this->http()->sendRequest($request))['body'], 'sent again');
        $request->getBody()->seek(3);
        self::assertSame('content', self::decoded($this->http()->sendRequest($request))['body'], 'partly read before');
        $invalid = new Request('GET', '/relative');
        $failure = self::thrown(InvalidRequestException::class, fn() => $this->http()->sendRequest($invalid));
        self::assertSame($invalid, $failure->getRequest());
    }

    #[RequiresPhpExtension('openssl')]
    public function testTlsVerifiesTheServer(): void
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = $certificates->forServer('127.0.0.1');
        $options = new HttpServerOptions(certificate: $certificate, key: $key);
        $this->serve(static fn(): Response => Response::text('secret'), $options, 'tls://127.0.0.1:0');
        $url = "https://{$this->authority()}/";
        $trusting = new RequestOptions(tls: new TlsOptions($certificates->authority));

        self::assertSame('secret', (string) $this->http()->get($url, options: $trusting)->getBody());
        self::assertSame('secret', (string) $this->http()->get($url, options: $trusting)->getBody());
        foreach ([
            [
                new TlsOptions(),
                "can't be verified: it is not valid at this time, or no authority in the system's store has signed it"
                    . ' (set the trusted authorities with RequestOptions::$tls, a Spindle\TlsOptions)',
            ],
            [
                new TlsOptions($certificates->authority, serverName: 'other.test'),
                "another host than 'other.test' (TlsOptions::\$serverName sets",
            ],
        ] as [$tls, $why]) {
            $failure = self::thrown(
                ConnectFailedException::class,
                fn() => $this->http()->get($url, options: new RequestOptions(tls: $tls)),
            );
            self::assertStringContainsString($why, $failure->getMessage());
        }
        self::assertSame(1, $this->http()->statistics()['connections']);
    }

    #[RequiresPhpExtension('openssl')]
    public function testATrailingDotIsNotPartOfTheNameInACertificate(): void
    {
        $certificates = new Certificates($this->path());
        [$default, $defaultKey] = $certificates->forServer('default.test');
        $files = $certificates->forServer('named.test');
        $named = $this->file('named.pem', implode('', array_map(file_get_contents(...), $files)));
        $options = new HttpServerOptions($default, $defaultKey, ['named.test' => $named]);
        $this->serve(static fn(): Response => Response::text('secret'), $options, 'tls://127.0.0.1:0');
        $tls = new TlsOptions($certificates->authority, serverName: 'named.test.');
        $response = $this->http()->get("https://{$this->authority()}/", options: new RequestOptions(tls: $tls));

        self::assertSame('secret', (string) $response->getBody());
    }

    #[RequiresPhpExtension('openssl')]
    public function testRequestsAreSentThroughProxies(): void
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = $certificates->forServer('127.0.0.1');
        $options = new HttpServerOptions(certificate: $certificate, key: $key);
        $this->serve(
            static fn(ServerRequestInterface $request): Response => Response::text(
                $request->hasHeader('Proxy-Authorization') ? 'leaked' : 'secret',
            ),
            $options,
            'tls://127.0.0.1:0',
        );
        $proxy = new ScriptedServer(static function (Socket $socket, ScriptedServer $server): void {
            $request = (string) $server->readRequest($socket);
            if (!str_starts_with($request, 'CONNECT ')) {
                $socket->write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy");

                return;
            }
            $target = connect(explode(' ', $request)[1]);
            $interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
            $socket->write("{$interim}HTTP/1.1 200 Connected\r\n\r\n");
            async(static function () use ($socket, $target): void {
                while (($bytes = $target->read()) !== null) {
                    $socket->write($bytes);
                }
            })->ignore();
            while (($bytes = $socket->read()) !== null) {
                $target->write($bytes);
            }
            $target->close();
        });
        $through = new RequestOptions(
            tls: new TlsOptions($certificates->authority),
            proxy: new Proxy("http://user:pw@{$proxy->address()}", "http://user:pw@{$proxy->address()}"),
        );

        $headers = ['Proxy-Authorization' => 'Basic own'];
        $tunnelled = $this->http()->get("https://{$this->authority()}/", $headers, $through);
        self::assertSame('secret', (string) $tunnelled->getBody());
        self::assertStringStartsWith("CONNECT {$this->authority()} HTTP/1.1\r\n", $proxy->heads[0]);
        self::assertSame('proxy', (string) $this->http()->get('http://any.test/path?q', [], $through)->getBody());
        self::assertStringStartsWith("GET http://any.test/path?q HTTP/1.1\r\nHost: any.test\r\n", $proxy->heads[1]);
        foreach ($proxy->heads as $head) {
            self::assertStringContainsString('Proxy-Authorization: Basic ' . base64_encode('user:pw'), $head);
        }
        $proxy->close();
    }

    public function testAHeaderForTheProxyIsNotSentToTheServer(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 204 No Content\r\n\r\n"));
        $headers = ['Proxy-Authorization' => 'Basic own'];
        $direct = new RequestOptions(proxy: new Proxy("http://{$server->address()}", noProxy: ['*']));
        $this->http()->get($server->url(), $headers);
        $this->http()->get($server->url(), $headers, $direct);
        $proxy = new RequestOptions(proxy: new Proxy("http://{$server->address()}"));
        $this->http()->get('http://any.test/', $headers, $proxy);
        $proxy = new RequestOptions(proxy: new Proxy("http://user:pw@{$server->address()}"));
        $this->http()->get('http://any.test/', $headers, $proxy);
        $server->close();

        $sent = array_map(
            static fn(string $head): array => preg_match_all('/^proxy-authorization: ([^\r]*)/mi', $head, $match) > 0
                ? $match[1]
                : [],
            $server->heads,
        );
        self::assertSame([[], [], ['Basic own'], ['Basic ' . base64_encode('user:pw')]], $sent);
    }

    public function testCredentialsForTheProxyStayForItAfterARedirectToAnotherOrigin(): void
    {
        $direct = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 204 No Content\r\n\r\n"));
        $proxy = new ScriptedServer(static function (Socket $socket, ScriptedServer $server) use ($direct): void {
            while (($request = $server->readRequest($socket)) !== null) {
                $location = str_contains($request, '//a.test/') ? 'http://b.test/' : $direct->url();
                $socket->write("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {$location}\r\n\r\n");
            }
        });
        $headers = ['Proxy-Authorization' => 'Basic own', 'Authorization' => 'Basic secret'];
        foreach (['', 'user:pw@'] as $user) {
            $through = new Proxy("{$user}{$proxy->address()}", noProxy: ['127.0.0.1']);
            $this->http()->get('http://a.test/', $headers, new RequestOptions(maxRedirects: 2, proxy: $through));
        }
        $authorizations = array_map(static function (string $head): array {
            preg_match_all('/^((?:proxy-)?authorization: [^\r]*)/mi', $head, $match);

            return $match[1];
        }, [...$proxy->heads, ...$direct->heads]);
        $proxy->close();
        $direct->close();

        $ofUrl = 'Proxy-Authorization: Basic ' . base64_encode('user:pw');
        self::assertSame([
            ['Proxy-Authorization: Basic own', 'Authorization: Basic secret'],
            ['Proxy-Authorization: Basic own'],
            ['Authorization: Basic secret', $ofUrl],
            [$ofUrl],
            [],
            [],
        ], $authorizations);
    }

    #[TestWith(["HTTP/1.1 403 Forbidden\r\n\r\n", 'the proxy refuses the connection with status 403'])]
    #[TestWith(["HTTP/1.1 101 Switching Protocols\r\n\r\n", 'the proxy refuses the connection with status 101'])]
    #[TestWith(["HTTP/1.1 100 Continue\r\n\r\n", 'the answer of the proxy is too long', 2_700])]
    #[TestWith(["HTTP/1.1 103\r\nA b\r\n\r\n", 'the answer of the proxy is malformed'])]
    #[TestWith(["HTTP/1.1 200 OK\n\n", 'the answer of the proxy is malformed'])]
    public function testAProxyThatRefusesIsNamed(string $answer, string $why, int $times = 1): void
    {
        $proxy = new ScriptedServer(ScriptedServer::answering(str_repeat($answer, $times)));
        $options = new RequestOptions(proxy: new Proxy(https: "http://user:pw@{$proxy->address()}"));
        try {
            $this->http()->get('https://any.test/', options: $options);
            self::fail('The proxy has not refused');
        } catch (ConnectFailedException $failure) {
            self::assertSame(
                "GET https://any.test/ failed: {$why} (through the proxy http://{$proxy->address()})",
                $failure->getMessage(),
            );
        } finally {
            $proxy->close();
        }
    }

    #[TestWith(['http://any.test/', 'failed: the proxy http://%s closed the connection without an answer'])]
    #[TestWith(['https://any.test/', 'failed: the proxy closed the connection before it had answered (through the'])]
    public function testAProxyThatClosesTheConnectionIsNamed(string $url, string $why): void
    {
        $proxy = new ScriptedServer(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
        });
        $address = "http://{$proxy->address()}";
        try {
            $this->http()->get($url, options: new RequestOptions(proxy: new Proxy($address, $address)));
            self::fail('The proxy has not closed the connection');
        } catch (ConnectFailedException|ConnectionLostException $failure) {
            self::assertStringContainsString(\sprintf($why, $proxy->address()), $failure->getMessage());
        } finally {
            $proxy->close();
        }
    }

    #[TestWith(['http://127.0.0.1/'])]
    #[TestWith(['http://[::1]/'])]
    #[TestWith(['http://localhost/'])]
    #[TestWith(['http://10.1.2.3/'])]
    #[TestWith(['http://169.254.169.254/latest/meta-data'])]
    #[TestWith(['http://[::ffff:192.168.0.1]/'])]
    #[TestWith(['http://[64:ff9b::a00:1]/'])]
    #[TestWith(['http://0.0.0.0/'])]
    #[TestWith(['http://100.64.0.1/'])]
    #[TestWith(['http://224.0.0.1/'])]
    #[TestWith(['http://[2002:7f00:1::]/'])]
    #[TestWith(['http://[fec0::1]/'])]
    #[TestWith(['http://[::ffff:0:7f00:1]/'])]
    public function testPrivateAddressesAreRefusedIfTheOptionsSaySo(string $url): void
    {
        $this->expectException(ConnectFailedException::class);
        $this->expectExceptionMessage('the address of the host is not public');
        $this->http()->get($url, options: new RequestOptions(blocksPrivateAddresses: true));
    }

    #[TestWith(["GET\r\nX: y"])]
    #[TestWith([''])]
    #[TestWith(['CONNECT'])]
    public function testAMethodThatIsNoneIsRefused(string $method): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->http()->request($method, 'http://127.0.0.1:1/');
    }

    public function testAServerWithoutTlsIsReported(): void
    {
        $this->serve(self::echoing(...));
        $url = str_replace('http:', 'https:', $this->url());

        $reason = 'the answer to the TLS handshake was not TLS. Does TLS use another port?';
        $this->expectExceptionMessage("GET {$url} failed: {$reason}");
        $this->http()->get($url);
    }

    public function testASecondHostIsRefused(): void
    {
        $message = 'A request can not have several Host headers';
        foreach ([['Host' => ['a.test', 'b.test']], ['Host' => 'a.test', 'host' => 'a.test']] as $headers) {
            $failure = self::thrown(
                \InvalidArgumentException::class,
                fn() => $this->http()->get('http://127.0.0.1:1/', $headers),
            );
            self::assertSame($message, $failure->getMessage());
        }
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage($message);
        $this->http()->sendRequest(
            (new Request('GET', 'http://127.0.0.1:1/'))->withHeader('Host', ['a.test', 'b.test']),
        );
    }

    public function testAHeaderWithALineBreakIsRefused(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->http()->get('http://127.0.0.1:1/', ['X-A' => "b\r\nEvil: c"]);
    }

    public function testOptionsOfAnotherClientAreRefusedAsHeaders(): void
    {
        $expected = 'The header json must be a string or a list of strings, not an array with names. '
            . 'The headers have no options such as json or query: write RequestBody::json() or ?name=value';
        $options = ['Accept' => ['text/html', 'text/plain'], 'json' => ['name' => 'secret']];
        $calls = [
            // @phpstan-ignore argument.type
            fn() => $this->http()->request('POST', 'http://127.0.0.1:1/', $options),
            // @phpstan-ignore argument.type
            fn() => $this->http()->serverSentEvents('http://127.0.0.1:1/', $options)->rewind(),
        ];
        foreach ($calls as $call) {
            self::assertSame($expected, self::thrown(\InvalidArgumentException::class, $call)->getMessage());
        }
    }

    public function testALineBreakInTheTypeOfABodyIsRefused(): void
    {
        $this->serve(self::echoing(...));
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage(
            'Content-Type can not have a control character: its value has a carriage return at offset 3',
        );
        $this->http()->request('POST', $this->url(), body: RequestBody::stream(['x'], "a/b\r\nX-A: evil"));
    }

    public function testALineBreakInTheUserAgentIsRefused(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage(
            'User-Agent can not have a control character: its value has a carriage return at offset 1',
        );
        new HttpClientOptions(userAgent: "a\r\nX-A: evil");
    }

    public function testABodyFromAPipeIsSent(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(
            (string) $request->getBody(),
        ));
        $pipe = popen('echo hello', 'r');
        self::assertIsResource($pipe);

        $response = $this->http()->request('POST', $this->url(), body: Stream::create($pipe));

        self::assertSame("hello\n", (string) $response->getBody());
    }

    /** @param \Closure(HttpClient, string, resource): string $send returns the body of the response */
    #[DataProvider('uncertainSizes')]
    public function testABodyWhoseSizeIsNotCertainIsSentCompletely(\Closure $send, string $kind): void
    {
        $content = str_repeat('content', 50_000);
        $this->serve(static fn(ServerRequestInterface $request): Response => match ($request->getRequestTarget()) {
            '/chunks' => Response::stream(str_split($content, 100_000)),
            '/gzip' => new Response(200, ['Content-Encoding' => 'gzip'], (string) gzencode($content)),
            default => Response::text(
                "{$request->getHeaderLine('Content-Length')} " . hash('xxh3', (string) $request->getBody()),
            ),
        });
        $file = $this->file('body', $content);
        $source = new SymfonyClient($this->http());
        $body = match ($kind) {
            'filter' => Streams::open($file, 'r'),
            'filter of temp' => Streams::open('php://temp', 'w+'),
            'php://filter' => Streams::open("php://filter/read=convert.base64-encode/resource={$file}", 'r'),
            'php://filter of data:' => Streams::open(
                'php://filter/read=convert.base64-encode/resource=data:;base64,' . base64_encode($content),
                'r',
            ),
            default => StreamWrapper::createResource($source->request('GET', $this->url("/{$kind}")), $source),
        };
        if ($kind === 'filter of temp') {
            fwrite($body, $content);
            rewind($body);
        }
        if (str_starts_with($kind, 'filter')) {
            stream_filter_append($body, 'convert.base64-encode', \STREAM_FILTER_READ);
        }
        $sent = str_contains($kind, 'filter') ? base64_encode($content) : $content;
        self::assertSame(' ' . hash('xxh3', $sent), $send($this->http(), $this->url('/'), $body));
        unset($body);

        $answer = $send($this->http(), $this->url('/'), Streams::open($file, 'r'));
        self::assertSame('350000 ' . hash('xxh3', $content), $answer);
    }

    /** @return iterable<string, array{\Closure(HttpClient, string, resource): string, string}> */
    public static function uncertainSizes(): iterable
    {
        yield 'filter of temp, SymfonyClient' => [self::postWithSymfony(...), 'filter of temp'];
        foreach (['chunks', 'gzip', 'filter', 'php://filter', 'php://filter of data:'] as $kind) {
            yield "{$kind}, HttpClient" => [self::postWithPsr(...), $kind];
            yield "{$kind}, SymfonyClient" => [self::postWithSymfony(...), $kind];
            if ($kind !== 'chunks') { // Guzzle 8 refuses the size -1 of this stream
                yield "{$kind}, GuzzleHandler" => [self::postWithGuzzle(...), $kind];
            }
        }
    }

    /** @param resource $body */
    private static function postWithPsr(HttpClient $client, string $url, mixed $body): string
    {
        $fields = ['Content-Type' => 'application/octet-stream'];

        return (string) $client->request('POST', $url, $fields, Stream::create($body))->getBody();
    }

    /** @param resource $body */
    private static function postWithSymfony(HttpClient $client, string $url, mixed $body): string
    {
        $options = ['body' => $body, 'headers' => ['Content-Type' => 'application/octet-stream']];

        return (new SymfonyClient($client))->request('POST', $url, $options)->getContent();
    }

    /** @param resource $body */
    private static function postWithGuzzle(HttpClient $client, string $url, mixed $body): string
    {
        // Without this header, Guzzle declares the size that PHP reports for the resource.
        $isKnown = str_starts_with(stream_get_meta_data($body)['uri'] ?? '', 'php://filter');
        $fields = $isKnown ? [] : ['Transfer-Encoding' => 'chunked'];
        $options = ['body' => $body, 'headers' => $fields + ['Content-Type' => 'application/octet-stream']];

        return (string) self::guzzle($client)->post($url, $options)->getBody();
    }

    private static function guzzle(HttpClient $client): Guzzle
    {
        return new Guzzle(['handler' => HandlerStack::create(new GuzzleHandler($client))]);
    }

    public function testOnlyTheFirstBytesOfAFileThatGrowsAreSent(): void
    {
        $file = $this->file('body', 'hello');
        $this->serve(static function (ServerRequestInterface $request) use ($file): Response {
            file_put_contents($file, ' world', \FILE_APPEND); // before the server asks for the body

            return Response::text("{$request->getHeaderLine('Content-Length')} {$request->getBody()}");
        });
        $options = new RequestOptions(expectContinueBytes: 1);

        foreach (['5 hello', '11 hello world'] as $answer) {
            $response = $this->http()->request('PUT', $this->url(), [], RequestBody::file($file), $options);
            self::assertSame($answer, (string) $response->getBody());
        }
        self::assertSame(1, $this->http()->statistics()['idle']);
    }

    public function testOnlyTheFirstBytesOfAResourceThatGrowsAreSent(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(
            md5((string) $request->getBody()),
        ));
        $content = str_repeat('body', 200_000);
        $file = $this->file('body', $content);
        $grow = static function (int $received, int $size, array $info) use ($file): void {
            if ($info['size_upload'] > 0) {
                file_put_contents($file, 'more', \FILE_APPEND);
            }
        };
        $response = (new SymfonyClient($this->http()))->request('PUT', $this->url(), [
            'body' => Streams::open($file, 'r'),
            'on_progress' => $grow,
        ]);

        self::assertSame(md5($content), $response->getContent());
        self::assertSame((float) \strlen($content), $response->getInfo('size_upload'));
        self::assertGreaterThan(\strlen($content), filesize($file));
    }

    public function testAFilteredFileDoesNotHaveTheLengthThatGuzzleDeclares(): void
    {
        $this->serve(static fn(): Response => new Response());
        $file = Streams::open($this->file('body', 'hello'), 'r');
        stream_filter_append($file, 'convert.base64-encode', \STREAM_FILTER_READ);

        $this->expectException(RequestException::class);
        $this->expectExceptionMessage('it is longer than its declared size of 5 bytes');
        self::guzzle($this->http())->put($this->url(), ['body' => $file]);
    }

    /** @param \Closure(HttpClient, string, string, \Generator<int, string>): string $send */
    #[DataProvider('sendersOfGenerators')]
    public function testTheCallerCanDeclareTheSizeOfAGenerator(\Closure $send): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(implode(' ', [
            $request->getHeaderLine('Content-Length'),
            $request->getHeaderLine('Transfer-Encoding'),
            $request->getBody(),
        ])));
        $body = static function (): \Generator {
            yield 'hello';
            yield 'world';
        };

        $answers = ['10' => '10  helloworld', '0010' => '10  helloworld', '0' => ' chunked helloworld'];
        $answers += ['-1' => ' chunked helloworld', 'ten' => ' chunked helloworld'];
        foreach ($answers as $size => $answer) {
            self::assertSame($answer, $send($this->http(), $this->url(), (string) $size, $body()));
        }
        foreach ([9 => 'longer than its declared size of 9 bytes', 11 => 'it ends after 10 bytes'] as $size => $why) {
            $failure = self::thrown(
                \Exception::class,
                fn() => $send($this->http(), $this->url(), (string) $size, $body()),
            );
            self::assertStringContainsString($why, $failure->getMessage());
        }
    }

    /** @return iterable<string, array{\Closure(HttpClient, string, string, \Generator<int, string>): string}> */
    public static function sendersOfGenerators(): iterable
    {
        yield 'HttpClient' => [
            static fn(HttpClient $client, string $url, string $size, \Generator $body): string
                => (string) $client->request('PUT', $url, ['Content-Length' => $size], RequestBody::stream($body))
                    ->getBody(),
        ];
        yield 'SymfonyClient' => [
            static fn(HttpClient $client, string $url, string $size, \Generator $body): string
                => (new SymfonyClient($client))->request('PUT', $url, [
                    'headers' => ['Content-Length' => $size],
                    'body' => $body,
                ])->getContent(),
        ];
        yield 'GuzzleHandler' => [
            static fn(HttpClient $client, string $url, string $size, \Generator $body): string
                => (string) (new Guzzle(['handler' => HandlerStack::create(new GuzzleHandler($client))]))
                    ->put($url, ['headers' => ['Content-Length' => $size], 'body' => $body])->getBody(),
        ];
    }

    public function testTheCallerCanDeclareTheSizeOfAFileWhileTheProcessHasAFilter(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(
            $request->getHeaderLine('Content-Length'),
        ));
        $file = $this->file('body', 'hello');
        $filtered = Streams::open($file, 'r');
        stream_filter_append($filtered, 'string.rot13', \STREAM_FILTER_READ);
        $fields = ['Content-Length' => '5'];

        $psr = $this->http()->request('PUT', $this->url(), $fields, Stream::create(Streams::open($file, 'r')));
        $options = ['headers' => $fields, 'body' => Streams::open($file, 'r')];
        $symfony = (new SymfonyClient($this->http()))->request('PUT', $this->url(), $options);
        self::assertSame(['5', '5'], [(string) $psr->getBody(), $symfony->getContent()]);
        foreach ([$fields, []] as $given) {
            $userSpace = GuzzleStreamWrapper::getResource(Stream::create('hello'));
            foreach ([Streams::open($file, 'r'), $userSpace] as $body) {
                $guzzle = self::guzzle($this->http())->put($this->url(), ['headers' => $given, 'body' => $body]);
                self::assertSame('5', (string) $guzzle->getBody());
            }
        }
        fclose($filtered);
    }

    public function testABodyWithNothingYetDoesNotHoldTheEventLoop(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(
            (string) $request->getBody(),
        ));
        $isReady = false;
        EventLoop::delay(0.02, static function () use (&$isReady): void {
            $isReady = true;
        });
        $body = RequestBody::stream((static function () use (&$isReady): \Generator {
            while (!$isReady) {
                yield '';
            }
            yield 'ready';
        })());

        $response = $this->http()->request('POST', $this->url(), body: $body);

        self::assertSame('ready', (string) $response->getBody());
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkUsesConnectionsOfItsOwn(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
        $this->http()->get($server->url());
        $pid = pcntl_fork();
        if ($pid === 0) {
            $this->http()->kill();
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($pid, $status);

        self::assertSame('ok', (string) $this->http()->get($server->url())->getBody());
        self::assertSame(1, $server->accepted);
        $server->close();
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkMayInheritAConnectionThatItsRequestHasEnded(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok"));
        $body = RequestBody::stream((static function (): \Generator {
            yield 'first';
            delay(0.01);
            throw new \DomainException('no more');
        })());
        $options = new RequestOptions(expectContinueBytes: \PHP_INT_MAX);
        $response = $this->http()->request('POST', $server->url(), [], $body, $options);
        delay(0.02);
        $pid = pcntl_fork();
        if ($pid === 0) {
            try {
                $this->http()->kill();
                pcntl_exec('/bin/sh', ['-c', 'exit 7']);
            } finally {
                posix_kill((int) getmypid(), \SIGKILL);
            }
        }
        pcntl_waitpid($pid, $status);
        \assert(\is_int($status));
        self::assertSame([200, 7], [$response->getStatusCode(), pcntl_wexitstatus($status)]);
        $server->close();
    }

    #[RequiresPhp('>= 8.4')]
    public function testADestructorSendsARequestAfterThoseOfItsClientHaveRunAtTheEndOfAScript(): void
    {
        $bodies = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$bodies): Response {
            $bodies[] = (string) $request->getBody();

            return new Response();
        });
        $host = Host::start(self::class . '::sendAtTheEnd', [$this->url()]);
        Eventually::holds(static fn(): bool => !$host->isRunning(), 'the process ends', 20.0);

        self::assertSame(['login', 'logout'], $bodies, $host->getOutput() . $host->getErrorOutput());
    }

    /** Makes PHP call the destructor of a later object, which sends a request, after those of the client's objects. */
    public static function sendAtTheEnd(string $url): void
    {
        $client = new HttpClient();
        $client->request('POST', $url, body: 'login');
        for ($handles = []; \count($handles) < 500;) {
            $handles[] = new \stdClass(); // gets the handle of a freed object
        }
        self::$last = new class ($client, $url) {
            public function __construct(private readonly HttpClient $client, private readonly string $url) {}

            public function __destruct()
            {
                $this->client->sendRequest(new Request('POST', $this->url, [], 'logout'));
            }
        };
    }

    private static function echoing(ServerRequestInterface $request): Response
    {
        return Response::json([
            'method' => $request->getMethod(),
            'target' => $request->getRequestTarget(),
            'host' => $request->getHeaderLine('Host'),
            'a' => $request->getHeaderLine('X-A'),
            'agent' => $request->getHeaderLine('User-Agent'),
            'type' => $request->getHeaderLine('Content-Type'),
            'body' => (string) $request->getBody(),
        ]);
    }

    /** @return array<string, string> */
    private static function decoded(ResponseInterface $response): array
    {
        /** @var array<string, string> $seen */
        $seen = json_decode((string) $response->getBody(), true, flags: \JSON_THROW_ON_ERROR);

        return $seen;
    }

    private function url(string $target = '/'): string
    {
        return "http://{$this->authority()}{$target}";
    }

    private function authority(): string
    {
        return (string) preg_replace('~^\w+://~', '', $this->address);
    }

    private function http(): HttpClient
    {
        return $this->httpClient ??= new HttpClient();
    }
}
