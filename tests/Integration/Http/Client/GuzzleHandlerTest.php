<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Amp\Socket\Socket;
use GuzzleHttp\Client;
use GuzzleHttp\Cookie\CookieJar;
use GuzzleHttp\Exception\ClientException;
use GuzzleHttp\Exception\ConnectException;
use GuzzleHttp\Exception\RequestException;
use GuzzleHttp\HandlerStack;
use GuzzleHttp\Pool;
use GuzzleHttp\Promise\PromiseInterface;
use GuzzleHttp\Promise\Utils as PromiseUtils;
use GuzzleHttp\Psr7\FnStream;
use GuzzleHttp\Psr7\PumpStream;
use GuzzleHttp\Psr7\Request;
use GuzzleHttp\Psr7\Utils;
use GuzzleHttp\TransferStats;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\GuzzleHandler;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Response;
use Spindle\Internal\CannotWaitException;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Tests\OwnDirectory;

use function Amp\delay;
use function Amp\Future\await;

final class GuzzleHandlerTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use OwnDirectory;
    use ServesHttp;

    private ?HttpClient $httpClient = null;

    /** Number of requests that are handled now, and the maximum so far; and of finished ones. */
    private int $running = 0;
    private int $most = 0;
    private int $done = 0;

    protected function tearDown(): void
    {
        $this->httpClient?->kill();
    }

    public function testACallSendsTheRequestAndReturnsTheResponse(): void
    {
        $this->serve(self::echoing(...));
        $response = $this->guzzle()->post('/path', [
            'json' => ['a' => 1],
            'query' => ['b' => 2],
            'headers' => ['X-A' => 'c'],
        ]);

        self::assertSame(
            ['POST', '/path?b=2', 'c', 'application/json', '{"a":1}'],
            json_decode((string) $response->getBody(), true),
        );
        self::assertSame($response->getBody()->getSize(), \strlen((string) $response->getBody()));
    }

    public function testOptionsOfTheClientApplyWhereGuzzleHasNone(): void
    {
        $client = new HttpClient(new HttpClientOptions(request: new RequestOptions(blocksPrivateAddresses: true)));
        $guzzle = new Client(['handler' => HandlerStack::create(new GuzzleHandler($client))]);
        $this->expectException(ConnectException::class);
        $this->expectExceptionMessage('the address of the host is not public');
        $guzzle->get('http://127.0.0.1:1/');
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testABodyWithoutASinkHasALimit(bool $isCompressed): void
    {
        $body = str_repeat('x', 2_000_000);
        $this->serve(static fn(): Response => new Response(
            200,
            $isCompressed ? ['Content-Encoding' => 'gzip'] : [],
            $isCompressed ? (string) gzencode($body) : $body,
        ));
        $options = new HttpClientOptions(request: new RequestOptions(maxBodyBytes: 100_000));
        $this->httpClient = new HttpClient($options);
        $sink = Utils::streamFor('');
        $this->guzzle()->get('/', ['sink' => $sink]);

        self::assertSame($body, (string) $sink);
        $this->expectException(RequestException::class);
        $this->expectExceptionMessage('is longer than 100000 bytes (RequestOptions::$maxBodyBytes)');
        $this->guzzle()->get('/');
    }

    public function testASinkThatDoesNotTakeAllBytesFails(): void
    {
        $this->serve(static fn(): Response => Response::text('the whole body'));
        $sink = FnStream::decorate(Utils::streamFor(''), ['write' => static fn(string $bytes): int => 5]);
        $this->expectException(RequestException::class);
        $this->expectExceptionMessage('The sink accepted only 5 bytes');
        $this->guzzle()->get('/', ['sink' => $sink]);
    }

    /** @param array<string, mixed> $options */
    #[DataProvider('failuresOfCallbacks')]
    public function testOnStatsIsCalledOnceAfterAFailure(array $options): void
    {
        $this->serve(static fn(): Response => Response::text(str_repeat('x', 1_000_000)));
        $stats = [];
        $options['on_stats'] = static function (TransferStats $given) use (&$stats): void {
            $stats[] = $given;
        };
        $send = new GuzzleHandler($this->httpClient = new HttpClient());
        $failure = self::thrown(
            \RuntimeException::class,
            fn() => $send(new Request('GET', str_replace('tcp:', 'http:', $this->address)), $options)->wait(),
        );
        self::assertCount(1, $stats);
        self::assertSame($failure, $stats[0]->getHandlerErrorData());
        self::assertSame(200, $stats[0]->getResponse()?->getStatusCode());
        self::assertSame(0, $this->httpClient->statistics()['connections']);
    }

    /** @return iterable<string, array{array<string, mixed>}> */
    public static function failuresOfCallbacks(): iterable
    {
        $throw = static fn() => throw new \RuntimeException('refused');
        $short = static fn(string $bytes): int => 5;
        yield 'on_headers' => [['on_headers' => $throw]];
        yield 'progress' => [['progress' => $throw]];
        yield 'a sink that throws' => [['sink' => FnStream::decorate(Utils::streamFor(''), ['write' => $throw])]];
        yield 'a sink that is full' => [['sink' => FnStream::decorate(Utils::streamFor(''), ['write' => $short])]];
    }

    public function testAnExceptionOfOnStatsIsThrown(): void
    {
        $this->serve(static fn(): Response => Response::text('ok'));
        $calls = [];
        $options = ['on_stats' => static function () use (&$calls): void {
            $calls[] = 'on_stats';

            throw new \RuntimeException('no statistics');
        }];
        $failure = self::thrown(\RuntimeException::class, fn() => $this->guzzle()->get('/', $options));

        self::assertSame(['no statistics', ['on_stats']], [$failure->getMessage(), $calls]);
    }

    public function testAFormWithFilesIsSent(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::json([
            $request->getParsedBody(),
            array_keys($request->getUploadedFiles()),
        ]));
        $response = $this->guzzle()->post('/', ['multipart' => [
            ['name' => 'text', 'contents' => 'a'],
            ['name' => 'file', 'contents' => str_repeat('b', 100_000), 'filename' => 'b.txt'],
        ]]);

        self::assertSame([['text' => 'a'], ['file']], json_decode((string) $response->getBody(), true));
    }

    public function testPromisesRunSideBySideAndCallTheirCallbacks(): void
    {
        $this->serve(function (ServerRequestInterface $request): Response {
            $this->most = max($this->most, ++$this->running);
            delay(0.05);
            --$this->running;

            return Response::text($request->getRequestTarget());
        });
        $promises = array_map(
            fn(int $i): PromiseInterface => $this->guzzle()->getAsync("/{$i}")->then(
                static fn(ResponseInterface $response): string => "got {$response->getBody()}",
            ),
            range(1, 5),
        );

        self::assertSame(['got /1', 'got /2', 'got /3', 'got /4', 'got /5'], PromiseUtils::unwrap($promises));
        self::assertSame(5, $this->most);
    }

    public function testRequestsWaitForAConnectionWhileOtherRequestsAreAnswered(): void
    {
        $this->serve(static function (): Response {
            delay(0.1);

            return Response::text('');
        });
        $this->httpClient = new HttpClient(new HttpClientOptions(
            maxConnectionsPerHost: 2,
            acquireTimeout: 0.05,
            maxWaiting: 1,
        ));
        $guzzle = $this->guzzle();
        $outcomes = PromiseUtils::settle(array_map(static fn() => $guzzle->getAsync('/'), range(1, 10)))->wait();

        self::assertSame(array_fill(0, 10, PromiseInterface::FULFILLED), array_column($outcomes, 'state'));
    }

    public function testABodyThatWaitsForAConnectionOfItsOwnRequestFails(): void
    {
        $this->serve(self::echoing(...));
        $this->httpClient = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1, acquireTimeout: 0.05));
        $guzzle = $this->guzzle();
        $body = new PumpStream(static fn(): string => (string) $guzzle->get('/')->getBody());
        $failure = self::thrown(RequestException::class, static fn() => $guzzle->put('/', ['body' => $body]));

        $causes = [];
        for ($cause = $failure; $cause !== null; $cause = $cause->getPrevious()) {
            $causes[] = $cause::class;
        }
        self::assertContains(ConnectException::class, $causes);
    }

    public function testAWaitSuspendsOnlyItsFiber(): void
    {
        $this->serve(static function (): Response {
            delay(0.1);

            return Response::text('late');
        });
        $order = [];
        $request = Async::run(function () use (&$order): void {
            $this->guzzle()->get('/');
            $order[] = 'response';
        });
        delay(0.02);
        $order[] = 'other work';
        $request->await();

        self::assertSame(['other work', 'response'], $order);
    }

    public function testAPoolKeepsItsConcurrency(): void
    {
        $this->serve(function (): Response {
            $this->most = max($this->most, ++$this->running);
            delay(0.005);
            --$this->running;

            return Response::text('x');
        });
        $requests = static function (): \Generator {
            for ($i = 0; $i < 30; ++$i) {
                yield new Request('GET', "/{$i}");
            }
        };
        $pool = new Pool($this->guzzle(), $requests(), ['concurrency' => 3, 'fulfilled' => function (): void {
            ++$this->done;
        }]);
        $pool->promise()->wait();

        self::assertSame([30, 3], [$this->done, $this->most]);
    }

    public function testCallbacksCanSendRequestsAndWaitForThem(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response => Response::text($request->getRequestTarget()),
        );
        $seen = [];
        $next = function (ResponseInterface $response) use (&$seen): string {
            return $seen[] = (string) $this->guzzle()->get("{$response->getBody()}/next")->getBody();
        };
        $then = [$this->guzzle()->getAsync('/1')->then($next), $this->guzzle()->getAsync('/2')->then($next)];
        $requests = [new Request('GET', '/3'), new Request('GET', '/4')];

        self::assertSame(['/1/next', '/2/next'], PromiseUtils::unwrap($then));
        (new Pool($this->guzzle(), $requests, ['concurrency' => 1, 'fulfilled' => $next]))->promise()->wait();
        self::assertSame(['/3/next', '/4/next'], \array_slice($seen, 2));
    }

    public function testTwoFibersCanWaitForOneRequest(): void
    {
        $this->serve(static fn(): Response => Response::text('ok'));
        $promise = $this->guzzle()->getAsync('/');
        $text = static fn(): string => (string) $promise->wait()->getBody();

        self::assertSame(['ok', 'ok'], await([Async::run($text), Async::run($text)]));
    }

    public function testACancelledPromiseEndsItsRequest(): void
    {
        $server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server): void {
            $server->readRequest($socket);
            $socket->read();
        });
        $promise = $this->guzzle()->getAsync($server->url());
        Eventually::holds(static fn(): bool => $server->heads !== [], 'the request has arrived');
        $promise->cancel();

        self::assertSame(PromiseInterface::REJECTED, $promise->getState());
        Eventually::holds(
            fn(): bool => $this->httpClient?->statistics()['connections'] === 0,
            'the connection is closed',
        );
        $server->close();
    }

    public function testStatusesAndConnectionFailuresHaveTheExceptionsOfGuzzle(): void
    {
        $this->serve(static fn(): Response => Response::text('missing', 404));
        self::thrown(ClientException::class, fn() => $this->guzzle()->get('/'));
        self::thrown(ConnectException::class, fn() => $this->guzzle()->get('http://127.0.0.1:1/'));
        self::thrown(ConnectException::class, function (): void {
            $server = new ScriptedServer(static function (Socket $socket): void {
                $socket->read();
                delay(0.5);
            });
            try {
                $this->guzzle()->get($server->url(), ['timeout' => 0.05]);
            } finally {
                $server->close();
            }
        });
        self::thrown(RequestException::class, function (): void {
            $server = new ScriptedServer(ScriptedServer::answering("nonsense\r\n\r\n"));
            try {
                $this->guzzle()->get($server->url());
            } finally {
                $server->close();
            }
        });
    }

    public function testStatisticsHaveTheUrlAfterRedirectsAndTheTimes(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => $request->getRequestTarget() === '/start'
            ? Response::redirect('/target')
            : Response::text('x'));
        $last = null;
        $response = $this->guzzle()->get('/start', [
            'allow_redirects' => ['track_redirects' => true],
            'on_stats' => static function (TransferStats $stats) use (&$last): void {
                $last = $stats;
            },
        ]);
        $url = str_replace('tcp:', 'http:', $this->address) . '/target';

        self::assertInstanceOf(TransferStats::class, $last);
        self::assertSame([$url], $response->getHeader('X-Guzzle-Redirect-History'));
        self::assertSame($url, (string) $last->getEffectiveUri());
        self::assertSame(
            ['url' => $url, 'content_type' => 'text/plain; charset=utf-8', 'http_code' => 200],
            \array_slice($last->getHandlerStats(), 0, 3),
        );
        self::assertSame($last->getTransferTime(), $last->getHandlerStat('total_time'));
        self::assertGreaterThan(0, $last->getHandlerStat('starttransfer_time'));
        self::assertLessThanOrEqual($last->getTransferTime(), $last->getHandlerStat('starttransfer_time'));
    }

    public function testRedirectsAndCookiesAreHandledByTheMiddlewareOfGuzzle(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => $request->getRequestTarget() === '/from'
            ? new Response(302, ['Location' => '/to', 'Set-Cookie' => 'a=b; Path=/'])
            : Response::text("{$request->getRequestTarget()} {$request->getHeaderLine('Cookie')}"));
        $response = $this->guzzle()->get('/from', ['cookies' => new CookieJar()]);

        self::assertSame('/to a=b', (string) $response->getBody());
    }

    public function testAStreamedResponseIsReadAsItArrives(): void
    {
        $sent = 0;
        $pieces = static function () use (&$sent): \Generator {
            for ($i = 0; $i < 3; ++$i) {
                ++$sent;
                yield "piece {$i};";
                delay(0.05);
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()));
        $body = $this->guzzle()->get('/', ['stream' => true])->getBody();

        self::assertSame(['piece 0;', 1], [$body->read(100), $sent]);
        self::assertSame('piece 1;piece 2;', $body->getContents());
    }

    public function testASinkReceivesTheBodyAndProgressIsReported(): void
    {
        $this->serve(static fn(): Response => Response::text(str_repeat('x', 500_000)));
        $file = $this->path('sink');
        $seen = [];
        $stats = null;
        $response = $this->guzzle()->get('/', [
            'sink' => $file,
            'progress' => static function (int $total, int $received) use (&$seen): void {
                $seen[] = [$total, $received];
            },
            'on_stats' => static function (TransferStats $given) use (&$stats): void {
                $stats = $given;
            },
        ]);

        self::assertSame(500_000, filesize($file));
        self::assertSame(500_000, $response->getBody()->getSize());
        self::assertSame([500_000, 500_000], end($seen));
        self::assertSame(200, $stats?->getResponse()?->getStatusCode());
        self::assertGreaterThan(0, $stats->getTransferTime());
    }

    public function testHeadersCanBeRefusedBeforeTheBody(): void
    {
        $this->serve(static fn(): Response => Response::text('large'));
        $failure = self::thrown(RequestException::class, fn() => $this->guzzle()->get('/', [
            'on_headers' => static fn(ResponseInterface $response) => throw new \RuntimeException('too large'),
        ]));

        self::assertSame('too large', $failure->getPrevious()?->getMessage());
    }

    public function testAFailureAfterTheHeadHasTheClassOfGuzzle8IfThereIsOne(): void
    {
        $class = 'GuzzleHttp\Exception\ResponseTransferException';
        $this->serve(static fn(): Response => Response::text('large'));
        $failure = self::thrown(RequestException::class, fn() => $this->guzzle()->get('/', [
            'on_headers' => static fn(ResponseInterface $response) => throw new \RuntimeException('too large'),
        ]));

        self::assertTrue(!class_exists($class) || is_a($failure, $class));
    }

    /** @param non-empty-list<string>|null $protocols */
    #[TestWith([['https'], false])]
    #[TestWith([['http'], true])]
    #[TestWith([['http', 'https'], true])]
    #[TestWith([null, true])]
    public function testTheOptionProtocolsLimitsTheSchemes(?array $protocols, bool $isAllowed): void
    {
        $received = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$received): Response {
            $received[] = $request->getHeaderLine('Authorization');

            return new Response();
        });
        $options = $protocols === null ? [] : ['protocols' => $protocols];
        try {
            $this->guzzle()->get('/', [...$options, 'headers' => ['Authorization' => 'Bearer secret']]);
        } catch (RequestException $failure) {
            self::assertSame(
                'The scheme "http" is not allowed by the protocols request option.',
                $failure->getMessage(),
            );
        }

        self::assertSame([isset($failure), $received], $isAllowed ? [false, ['Bearer secret']] : [true, []]);
    }

    public function testAMissingFileIsAnInvalidArgument(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        (new GuzzleHandler())(new Request('GET', 'http://127.0.0.1:1/'), ['verify' => '/missing.pem']);
    }

    #[RequiresPhp('< 8.4')]
    public function testAWaitInADestructorIsRefused(): void
    {
        $arrived = 0;
        $this->serve(static function () use (&$arrived): Response {
            ++$arrived;

            return new Response();
        });
        $promise = $this->guzzle()->getAsync('/');
        $refusals = [];
        foreach ([fn() => $this->guzzle()->get('/'), $promise->wait(...)] as $wait) {
            $refusals[] = self::thrown(CannotWaitException::class, static function () use ($wait): void {
                $object = new class ($wait) {
                    public function __construct(private readonly \Closure $wait) {}

                    public function __destruct()
                    {
                        ($this->wait)();
                    }
                };
                unset($object);
            });
        }
        $response = $promise->wait();

        self::assertStringEndsWith('was refused before it had an effect', $refusals[0]->getMessage());
        self::assertStringEndsWith('may have been carried out nevertheless', $refusals[1]->getMessage());
        self::assertSame(200, $response->getStatusCode());
        self::assertSame(1, $arrived);
    }

    public function testAWaitInADestroyedFiberIsRefused(): void
    {
        $this->serve(static fn(): Response => Response::text('a'));
        $promise = $this->guzzle()->getAsync('/');
        $fiber = new \Fiber(static function () use ($promise): void {
            try {
                \Fiber::suspend();
            } finally {
                $promise->wait();
            }
        });
        $fiber->start();
        self::thrown(CannotWaitException::class, static function () use (&$fiber): void {
            $fiber = null;
        });

        self::assertSame('a', (string) $promise->wait()->getBody());
    }

    /** @param array<string, mixed> $options */
    #[TestWith([[]])]
    #[TestWith([['delay' => 60_000]])]
    public function testAWaitForARequestOfWhichPhpHasDestroyedAPartThrows(array $options): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $left = $request->getAttribute(Cancellation::class);
            \assert($left instanceof Cancellation);
            delay(25, cancellation: $left);

            return new Response();
        });
        $url = 'http' . substr($this->address, \strlen('tcp'));
        $promise = (new GuzzleHandler())(new Request('GET', $url), $options);
        delay(0);
        $onCancel = (new \ReflectionProperty($promise, 'onCancel'))->getValue($promise);
        \assert($onCancel instanceof \Closure);
        $cancellation = (new \ReflectionFunction($onCancel))->getClosureThis();
        \assert($cancellation instanceof DeferredCancellation);
        $cancellation->__destruct(); // at the end of the script, PHP destroys objects that are in use

        $failure = self::thrown(ConnectException::class, static fn() => $promise->wait());
        self::assertStringStartsWith('PHP has destroyed the request, because the script has', $failure->getMessage());
    }

    public function testAProxyThatIsNotSupportedFailsOnlyTheRequestsThatWouldUseIt(): void
    {
        $this->serve(static fn(): Response => Response::text('direct'));
        $proxies = ['http' => '', 'https' => 'socks5://127.0.0.1:1'];

        self::assertSame('direct', (string) $this->guzzle()->get('/', ['proxy' => $proxies])->getBody());
        $this->expectException(ConnectException::class);
        $this->expectExceptionMessage('the proxy for https (the option proxy) must be an http:// URL');
        $this->guzzle()->get('https://127.0.0.1:1/', ['proxy' => $proxies]);
    }

    /** @param array<string, mixed> $options */
    #[DataProvider('unsupportedOptions')]
    public function testOptionsThatAreNotSupportedAreRefused(array $options, string $name): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage($name);
        (new GuzzleHandler())(new Request('GET', 'http://127.0.0.1:1/'), $options);
    }

    /** @return iterable<string, array{array<string, mixed>, string}> */
    public static function unsupportedOptions(): iterable
    {
        yield 'curl' => [['curl' => [10_062 => 'eth0']], 'curl'];
        yield 'stream_context' => [['stream_context' => ['http' => []]], 'stream_context'];
        yield 'force_ip_resolve' => [['force_ip_resolve' => 'v4'], 'force_ip_resolve'];
        yield 'crypto_method_max' => [
            ['crypto_method_max' => \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT],
            'crypto_method_max',
        ];
        yield 'a minimum of TLS 1.3' => [
            ['crypto_method' => \STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT],
            'crypto_method (the lowest version) must be TLS 1.0, 1.1 or 1.2 here',
        ];
        yield 'on_trailers' => [['on_trailers' => static fn() => null], 'on_trailers'];
        yield 'a certificate that is not PEM' => [['cert' => __FILE__, 'cert_type' => 'P12'], 'cert_type'];
        yield 'a key that is not PEM' => [['ssl_key' => __FILE__, 'ssl_key_type' => 'DER'], 'ssl_key_type'];
        yield 'required HTTP/2' => [['multiplex' => 'require_wait'], 'multiplex must be none or eager or wait here'];
        yield 'an unknown protocol' => [['protocols' => ['https', 'ftp']], 'protocols must be'];
        yield 'no protocol' => [['protocols' => []], 'protocols must be'];
        yield 'a password' => [['cert' => [__FILE__, 'password']], 'cert'];
    }

    private static function echoing(ServerRequestInterface $request): Response
    {
        return Response::json([
            $request->getMethod(),
            $request->getRequestTarget(),
            $request->getHeaderLine('X-A'),
            $request->getHeaderLine('Content-Type'),
            (string) $request->getBody(),
        ]);
    }

    private function guzzle(): Client
    {
        return new Client([
            'handler' => HandlerStack::create(new GuzzleHandler($this->httpClient ??= new HttpClient())),
            'base_uri' => str_replace('tcp:', 'http:', $this->address),
        ]);
    }
}
