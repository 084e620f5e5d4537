<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\DeferredFuture;
use Amp\Socket\Socket;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Client\SymfonyState;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Tests\Streams;
use Symfony\Component\HttpClient\RetryableHttpClient;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Symfony\Contracts\HttpClient\Test\HttpClientTestCase;

use function Amp\async;
use function Amp\delay;

/** The tests that Symfony has for each implementation of its interface. */
final class SymfonyClientTest extends HttpClientTestCase
{
    use CatchesThrown;
    use EndsInTime;
    use ServesHttp;

    /** Tests of features that the client does not have, with the reason. */
    private const LEFT_OUT = [
        'testHttpVersion' => 'requests are HTTP/1.1',
        'testResolve' => 'the option resolve is refused',
        'testIdnResolve' => 'the option resolve is refused',
        'testIPv6Resolve' => 'the option resolve is refused',
        'testBindToPort' => 'the option bindto is refused',
        'testBindToPortV6' => 'the option bindto is refused',
        'testInformationalResponseStream' => 'interim responses are skipped',
        'testMaxConnectDuration' => 'it needs an address that does not answer, which not every network has',
    ];

    /** Tests of responses that are dropped before their status was read. */
    private const WITH_DESTRUCTORS = [
        'testTimeoutOnDestruct', 'testDestruct', 'testGetContentAfterDestruct', 'testGetEncodedContentAfterDestruct',
    ];

    protected function setUp(): void
    {
        if (isset(self::LEFT_OUT[$this->name()])) {
            self::markTestSkipped(self::LEFT_OUT[$this->name()]);
        }
        if (\PHP_VERSION_ID < 80_400 && \in_array($this->name(), self::WITH_DESTRUCTORS, true)) {
            self::markTestSkipped('PHP < 8.4 can not suspend in destructors');
        }
    }

    protected function getHttpClient(string $testCase): HttpClientInterface
    {
        return new SymfonyClient();
    }

    /** @param array<string, mixed> $options */
    #[DataProvider('unsupportedOptions')]
    public function testOptionsThatAreNotSupportedAreRefused(array $options): void
    {
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage('The option "' . array_key_first($options) . '" is not supported here');
        (new SymfonyClient())->request('GET', 'http://127.0.0.1:1/', $options);
    }

    public function testTheReplacementOfTheClientWithoutPrivateNetworksIsNamed(): void
    {
        $optionOfThatClient = ['resolve' => ['localhost' => '127.0.0.1']];
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage('give the HttpClient the option blocksPrivateAddresses');
        (new SymfonyClient())->request('GET', 'http://localhost:1/', $optionOfThatClient);
    }

    #[TestWith(['proxy', 'socks5://127.0.0.1:1', 'the proxy for http (the option proxy) must be an http:// URL'])]
    #[TestWith(['cafile', '/missing.pem', "can't read the file '/missing.pem'"])]
    public function testAnInvalidOptionFailsAsSymfonyDocumentsIt(string $name, string $value, string $why): void
    {
        $response = (new SymfonyClient())->request('GET', 'http://127.0.0.1:1/', [$name => $value]);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage($why);
        $response->getStatusCode();
    }

    public function testOptionsOfTheClientApplyWhereSymfonyHasNone(): void
    {
        $client = new HttpClient(new HttpClientOptions(request: new RequestOptions(blocksPrivateAddresses: true)));
        $response = (new SymfonyClient($client))->request('GET', 'http://127.0.0.1:1/');
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage('the address of the host is not public');
        $response->getStatusCode();
    }

    public function testAHeaderWhoseNameIsANumberIsReceived(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 204 No Content\r\n7: x\r\n\r\n"));
        $headers = (new SymfonyClient())->request('GET', $server->url())->getHeaders();
        $server->close();

        self::assertSame('{"7":["x"]}', json_encode($headers));
    }

    /** @param \Closure(): mixed $body */
    #[DataProvider('bodiesThatAreReadOnce')]
    public function testARedirectRepeatsABodyThatCanBeReadOnlyOnce(\Closure $body): void
    {
        $bodies = $this->serveRedirects();
        $response = (new SymfonyClient())->request('POST', $this->url('/unread'), ['body' => $body()]);

        self::assertSame(200, $response->getStatusCode());
        self::assertStringContainsString('hello world', (string) $bodies[0]);
        self::assertSame([$bodies[0], $bodies[0]], $bodies->getArrayCopy());
    }

    public function testARedirectOfALongBodyThatCanBeReadOnlyOnceFails(): void
    {
        $bodies = $this->serveRedirects();
        $pieces = (static fn(): \Generator => yield from array_fill(0, 21, str_repeat('x', 50_000)))();
        $response = (new SymfonyClient())->request('POST', $this->url('/read'), ['body' => $pieces]);
        $failure = self::thrown(TransportExceptionInterface::class, static fn() => $response->getStatusCode());
        self::assertStringContainsString('longer than 1048576 bytes', $failure->getMessage());
        self::assertCount(1, $bodies);
    }

    public function testTheResourceOfABodyIsSentAgainAndStaysOpen(): void
    {
        $bodies = $this->serveRedirects();
        $file = fopen('php://temp', 'w+');
        \assert($file !== false);
        fwrite($file, 'readhello world');
        fseek($file, 4);
        $response = (new SymfonyClient())->request('POST', $this->url('/unread'), ['body' => $file]);

        self::assertSame('', $response->getContent());
        self::assertSame(['hello world', 'hello world'], $bodies->getArrayCopy());
        unset($response);
        gc_collect_cycles();
        self::assertIsResource($file);
    }

    /** @param \Closure(mixed): mixed $body */
    #[DataProvider('bodiesOfAFile')]
    public function testAResourceThatWasClosedTooEarlyIsReported(\Closure $body, string $why): void
    {
        $bodies = $this->serveRedirects();
        $file = tmpfile();
        \assert($file !== false);
        $response = (new SymfonyClient())->request('PUT', $this->url('/end'), ['body' => $body($file)]);
        fclose($file);
        $failure = self::thrown(TransportExceptionInterface::class, static fn() => $response->getStatusCode());
        self::assertStringContainsString($why, $failure->getMessage());
        self::assertCount(0, $bodies);
    }

    public function testAResourceThatIsClosedDuringItsUploadIsReported(): void
    {
        $begins = new DeferredFuture();
        $server = new ScriptedServer(static function (Socket $socket) use ($begins): void {
            $socket->read();
            $begins->complete();
            while ($socket->read() !== null);
        });
        $file = tmpfile();
        \assert($file !== false);
        ftruncate($file, 1 << 30);
        $response = (new SymfonyClient())->request('PUT', $server->url(), ['body' => $file]);
        $begins->getFuture()->await();
        fclose($file);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage("The body can't be sent: its resource was closed too early.");
        $response->getStatusCode();
    }

    public function testSentBytesOfAStringAreReported(): void
    {
        $mayRead = new DeferredFuture();
        $server = new ScriptedServer(static function (Socket $socket) use ($mayRead): void {
            $left = \strlen(explode("\r\n\r\n", (string) $socket->read(), 2)[1] ?? '') - 50_000_000;
            $mayRead->getFuture()->await();
            while ($left < 0 && ($bytes = $socket->read()) !== null) {
                $left += \strlen($bytes);
            }
            $socket->write("HTTP/1.1 204 No Content\r\n\r\n");
        });
        $body = str_repeat('x', 50_000_000);
        $response = (new SymfonyClient())->request('PUT', $server->url(), ['body' => $body]);
        Eventually::holds(static fn(): bool => $response->getInfo('size_upload') > 100_000, 'a part was sent');
        self::assertLessThan(50_000_000, $response->getInfo('size_upload'));
        $mayRead->complete();

        self::assertSame(204, $response->getStatusCode());
        self::assertSame(50_000_000.0, $response->getInfo('size_upload'));
    }

    /** @param \Closure(): mixed $body */
    #[DataProvider('bodiesWithProgress')]
    public function testAnExceptionOfTheProgressCallbackIsReportedUnchanged(\Closure $body): void
    {
        $bodies = $this->serveRedirects();
        $abort = new \DomainException('aborted by the user');
        $isThrown = false;
        $progress = static function (int $now, int $size, array $info) use ($abort, &$isThrown): void {
            if (!$isThrown && $info['size_upload'] > 0) {
                $isThrown = true; // during the upload, so that the later calls of Symfony's code do not throw

                throw $abort;
            }
        };
        $response = (new SymfonyClient())->request(
            'PUT',
            $this->url('/end'),
            ['body' => $body(), 'on_progress' => $progress],
        );
        Eventually::holds(static function () use (&$isThrown): bool {
            return $isThrown;
        }, 'a part is sent');
        $failure = self::thrown(TransportExceptionInterface::class, static fn() => $response->getStatusCode());
        self::assertSame('aborted by the user', $failure->getMessage());
        self::assertSame($abort, $failure->getPrevious());
        self::assertCount(0, $bodies);
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function bodiesWithProgress(): iterable
    {
        yield 'short' => [static fn(): string => 'hello'];
        yield 'long' => [static fn(): string => str_repeat('x', 3_000_000)];
        yield 'file' => [static fn(): mixed => Streams::open(__FILE__, 'r')];
        yield 'generator' => [static fn(): \Generator => yield 'hello'];
    }

    public function testRequestsCanReadTheSameFileAtTheSameTime(): void
    {
        $bodies = $this->serveRedirects();
        $body = str_repeat(random_bytes(1000), 1500);
        $file = tmpfile();
        \assert($file !== false);
        fwrite($file, "read{$body}");
        fseek($file, 4);
        $client = new SymfonyClient();
        $options = ['body' => $file];
        $responses = array_map(fn() => $client->request('PUT', $this->url('/end'), $options), range(1, 3));
        Eventually::holds(static fn(): bool => $responses[0]->getInfo('size_upload') > 0, 'the upload begins');
        $responses[] = $client->request('PUT', $this->url('/end'), $options);
        foreach ($responses as $response) {
            self::assertSame(200, $response->getStatusCode());
        }
        $client->request('PUT', $this->url('/end'), $options)->getStatusCode();
        self::assertTrue($bodies->getArrayCopy() === array_fill(0, 5, $body));
        fseek($file, -3, \SEEK_END);
        $client->request('PUT', $this->url('/end'), $options)->getStatusCode();

        self::assertSame(substr($body, -3), $bodies[5]);
        self::assertSame(\strlen($body) + 1, ftell($file));
    }

    #[TestWith(['read'])]
    #[TestWith(['cancel'])]
    #[TestWith(['destroy'])]
    public function testTheCallerCanUseItsFileAfterTheStatus(string $end): void
    {
        $mayEnd = new DeferredFuture();
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::stream(
            (static function () use ($request, $mayEnd): \Generator {
                yield (string) $request->getBody();
                $mayEnd->getFuture()->await();
            })(),
        ));
        $file = Streams::open('php://temp', 'w+');
        fwrite($file, 'first');
        rewind($file);
        $client = new SymfonyClient();
        $response = $client->request('PUT', $this->url('/'), ['body' => $file]);
        self::assertSame(200, $response->getStatusCode());
        if ($end === 'cancel') {
            $response->cancel();
        } elseif ($end === 'destroy') {
            unset($response);
        }
        self::assertSame(0, ftell($file));
        fseek($file, 5);
        $mayEnd->complete();
        isset($response) && $end === 'read' ? self::assertSame('first', $response->getContent()) : null;
        fwrite($file, 'second');
        fseek($file, 5);

        $second = $client->request('PUT', $this->url('/'), ['body' => $file]);
        self::assertSame('second', $second->getContent());
    }

    public function testARequestIsCancelledBeforeTheCallerUsesItsFile(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => new Response(
            body: (string) $request->getBody(),
        ));
        $file = tmpfile();
        \assert($file !== false);
        ftruncate($file, 1 << 20);
        $client = new SymfonyClient();
        $first = $client->request('PUT', $this->url('/'), ['body' => $file]);
        Eventually::holds(static fn(): bool => $first->getInfo('size_upload') > 0, 'the upload begins');
        $position = ftell($file);
        $first->cancel();
        self::assertSame(0, ftell($file));
        fseek($file, (int) $position);
        delay(0);

        self::assertSame($position, ftell($file));
    }

    public function testAnUploadAfterTheStatusKeepsThePositionOfTheFile(): void
    {
        $mayRead = new DeferredFuture();
        $server = new ScriptedServer(static function (Socket $socket) use ($mayRead): void {
            $left = \strlen(explode("\r\n\r\n", (string) $socket->read(), 2)[1] ?? '') - 10_000_000;
            $socket->write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
            $mayRead->getFuture()->await();
            while ($left < 0 && ($bytes = $socket->read()) !== null) {
                $left += \strlen($bytes);
            }
            $socket->write('done');
        });
        $file = tmpfile();
        \assert($file !== false);
        ftruncate($file, 10_000_000);
        $response = (new SymfonyClient())->request('PUT', $server->url(), ['body' => $file]);
        self::assertSame(200, $response->getStatusCode());
        fseek($file, 7);
        $mayRead->complete();

        self::assertSame('done', $response->getContent());
        self::assertSame(10_000_000.0, $response->getInfo('size_upload'));
        self::assertSame(7, ftell($file));
    }

    public function testAFailedRequestIsRepeatedFromThePositionOfItsFile(): void
    {
        $bodies = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$bodies): Response {
            $bodies[] = (string) $request->getBody();

            return new Response(\count($bodies) === 1 ? 503 : 200, ['Retry-After' => '0']);
        });
        $file = Streams::open('php://temp', 'w+');
        fwrite($file, 'readhello');
        fseek($file, 4);
        $client = new RetryableHttpClient(new SymfonyClient());

        self::assertSame(200, $client->request('PUT', $this->url('/'), ['body' => $file])->getStatusCode());
        self::assertSame(['hello', 'hello'], $bodies);
    }

    #[TestWith(['text/plain', false])]
    #[TestWith(['text/plain', true])]
    #[TestWith(['image/png', false])]
    #[TestWith(['image/png', true])]
    public function testABodyThatIsReadAtOnceHasALimit(string $type, bool $isCompressed): void
    {
        $body = str_repeat('x', 2_000_000);
        $this->serve(static fn(): Response => new Response(
            200,
            ['Content-Type' => $type] + ($isCompressed ? ['Content-Encoding' => 'gzip'] : []),
            $isCompressed ? (string) gzencode($body) : $body,
        ));
        $limited = new HttpClient(new HttpClientOptions(request: new RequestOptions(maxBodyBytes: 100_000)));
        $client = new SymfonyClient($limited);
        $streamed = '';
        $response = $client->request('GET', $this->url('/'));
        foreach ($client->stream($response) as $chunk) {
            $streamed .= $chunk->getContent();
        }

        self::assertSame($body, $streamed);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage('is longer than 100000 bytes (RequestOptions::$maxBodyBytes)');
        $client->request('GET', $this->url('/'))->getContent();
    }

    public function testALongBodyCanBeStreamedAndCancelledThroughADecorator(): void
    {
        $body = str_repeat('x', 2_000_000);
        $this->serve(static fn(): Response => new Response(200, [], $body));
        $limited = new HttpClient(new HttpClientOptions(request: new RequestOptions(maxBodyBytes: 100_000)));
        $client = new RetryableHttpClient(new SymfonyClient($limited));
        foreach ([\PHP_INT_MAX, 1_000_000] as $limit) {
            $response = $client->request('GET', $this->url('/'), ['buffer' => false]);
            $streamed = '';
            foreach ($client->stream($response) as $chunk) {
                $streamed .= $chunk->getContent();
                if (\strlen($streamed) > $limit) {
                    $response->cancel();
                    break;
                }
            }

            self::assertSame($limit > 2_000_000, $streamed === $body);
            self::assertSame($limit < 2_000_000, $response->getInfo('canceled'));
        }
    }

    public function testATimeOutDoesNotCountForLaterRequests(): void
    {
        $this->serve(static fn(): Response => Response::text('ok'));
        $client = new SymfonyClient();
        $state = (new \ReflectionProperty(SymfonyClient::class, 'state'))->getValue($client);
        \assert($state instanceof SymfonyState);
        $state->lastTimeout = hrtime(true) / 1e9 - 100; // as after an idle timeout 100 seconds ago

        self::assertSame('ok', $client->request('GET', $this->url('/'), ['timeout' => 50])->getContent());
    }

    public function testOnlyPartsOfItsOwnResponsesWakeAFiber(): void
    {
        $mayAnswer = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($mayAnswer): Response {
            $request->getUri()->getPath() === '/late' ? $mayAnswer->getFuture()->await() : null;

            return new Response();
        });
        $wakeCount = 0;
        $client = new SymfonyClient();
        $count = static function () use (&$wakeCount): void {
            ++$wakeCount; // Symfony's code calls this before each wait
        };
        $late = $client->request('GET', $this->url('/late'), ['on_progress' => $count]);
        $status = async($late->getStatusCode(...));
        for ($request = 0; $request < 100; ++$request) {
            $client->request('GET', $this->url('/'))->getStatusCode();
        }
        $mayAnswer->complete();

        self::assertSame(200, $status->await());
        self::assertLessThan(50, $wakeCount);
    }

    public function testAPartOfAnyResponseWakesAStreamOfSeveral(): void
    {
        $mayAnswer = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($mayAnswer): Response {
            $request->getUri()->getPath() === '/late' ? $mayAnswer->getFuture()->await() : null;

            return new Response();
        });
        $client = new SymfonyClient();
        $responses = [];
        foreach (['/late', '/early', '/late'] as $path) {
            $responses[] = $client->request('GET', $this->url($path), ['user_data' => $path]);
        }
        $paths = [];
        foreach ($client->stream($responses) as $response => $chunk) {
            if ($chunk->isLast()) {
                $paths[] = $response->getInfo('user_data');
                $mayAnswer->isComplete() ? null : $mayAnswer->complete();
            }
        }

        self::assertSame(['/early', '/late', '/late'], $paths);
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAStreamWithoutATimeOutMakesProgress(bool $isInFiber): void
    {
        $this->serve(static fn(): Response => Response::text('ok'));
        $client = new SymfonyClient();
        $poll = function () use ($client): string {
            $response = $client->request('GET', $this->url('/'));
            [$content, $isComplete, $deadline] = ['', false, microtime(true) + 5];
            while (!$isComplete && microtime(true) < $deadline) {
                foreach ($client->stream($response, 0.0) as $chunk) {
                    if (!$chunk->isTimeout()) {
                        $content .= $chunk->getContent();
                        $isComplete = $chunk->isLast();
                    }
                }
            }

            return $content;
        };

        self::assertSame('ok', $isInFiber ? async($poll)->await() : $poll());
    }

    public function testTheMaximumDurationIncludesRedirects(): void
    {
        $this->serve(static function (): Response {
            delay(0.05);

            return new Response(302, ['Location' => '/']);
        });
        $options = ['max_duration' => 0.3, 'max_redirects' => 20];
        $response = (new SymfonyClient())->request('GET', $this->url('/'), $options);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage("Max duration was reached for \"{$this->url('/')}\": 0.3 s (max_duration)");
        $response->getStatusCode();
    }

    #[TestWith(['max_duration', 'Max duration was reached for "%s": 0.05 s (max_duration)'])]
    #[TestWith(['max_connect_duration', 'no connection within 0.05 s (max_connect_duration)'])]
    public function testATimeOutWhileConnectingNamesSymfonysOption(string $option, string $why): void
    {
        $server = new ScriptedServer(static function (Socket $socket): void {
            while ($socket->read() !== null); // answers no handshake
        });
        $url = str_replace('http:', 'https:', $server->url());
        $response = (new SymfonyClient())->request('GET', $url, [$option => 0.05]);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage(\sprintf($why, $url));
        $response->getStatusCode();
    }

    public function testATimeOutOfTheBodyNamesSymfonysOption(): void
    {
        $head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx";
        $server = new ScriptedServer(ScriptedServer::answering($head));
        $response = (new SymfonyClient())->request('GET', $server->url(), ['max_duration' => 0.1]);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage("Max duration was reached for \"{$server->url()}\": 0.1 s (max_duration)");
        $response->getContent();
    }

    public function testTheMessageOfATimeOutLeavesOutTheSecretsOfTheUrl(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering(''));
        $url = str_replace('http://', 'http://user:password@', $server->url('/path?query=1'));
        $response = (new SymfonyClient())->request('GET', $url, ['max_duration' => 0.05]);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage("Max duration was reached for \"{$server->url('/path')}\": 0.05 s");
        $response->getStatusCode();
    }

    #[TestWith(['0'])]
    #[TestWith(['1'])]
    public function testTheBodyOfAFailedRequestIsFreedWithoutTheGarbageCollector(string $ignoresArguments): void
    {
        // PHP's default, "0", adds the arguments of functions to the traces of exceptions.
        $growth = Host::call(self::class . '::failRequests', options: [
            '-d',
            "zend.exception_ignore_args={$ignoresArguments}",
        ]);

        self::assertLessThan(400_000, $growth, 'bytes');
    }

    /** Returns the growth of memory by failed requests with bodies of 1 MiB. */
    public static function failRequests(): int
    {
        gc_disable();
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($socket);
        $silent = 'http://' . stream_socket_get_name($socket, false);
        $client = new SymfonyClient();
        /** @param array<string, mixed> $options */
        $fail = static function (string $url, array $options) use ($client): void {
            try {
                $client->request('POST', $url, ['body' => str_repeat('x', 1 << 20)] + $options)->getStatusCode();
                self::fail('The request did not fail');
            } catch (TransportExceptionInterface) {
            }
        };
        $before = 0;
        for ($round = 0; $round < 3; ++$round) {
            $fail('http://127.0.0.1:1', []);
            $fail($silent, ['max_duration' => 0.02]);
            $fail($silent, ['timeout' => 0.02]);
            $before = $round === 0 ? memory_get_usage() : $before;
        }

        return memory_get_usage() - $before;
    }

    private function url(string $path): string
    {
        return 'http' . substr($this->address, \strlen('tcp')) . $path;
    }

    /**
     * Serves redirects from /unread to /read, and from there to /end.
     *
     * @return \ArrayObject<int, string> bodies that arrived at /read and /end
     */
    private function serveRedirects(): \ArrayObject
    {
        /** @var \ArrayObject<int, string> $bodies */
        $bodies = new \ArrayObject();
        $this->serve(static function (ServerRequestInterface $request) use ($bodies): Response {
            $path = $request->getUri()->getPath();
            if ($path === '/unread') {
                return new Response(308, ['Location' => '/read']);
            }
            $bodies->append((string) $request->getBody());

            return $path === '/read' ? new Response(307, ['Location' => '/end']) : new Response();
        }, new HttpServerOptions(maxBodyBytes: 2_000_000));

        return $bodies;
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function bodiesThatAreReadOnce(): iterable
    {
        $pieces = static function (): \Generator {
            yield 'hello ';
            delay(0.05); // a redirect arrives here
            yield 'world';
        };
        $socket = static function (): mixed {
            $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
            \assert($pair !== false);
            fwrite($pair[1], 'hello world');

            return $pair[0];
        };
        yield 'generator' => [$pieces];
        yield 'closure' => [static function (): \Closure {
            $left = ['', 'hello world'];

            return static function () use (&$left): string {
                return (string) array_pop($left);
            };
        }];
        yield 'form with a file' => [static fn(): array => ['title' => 'x', 'file' => $socket()]];
        yield 'socket' => [$socket];
    }

    /** @return iterable<string, array{\Closure(mixed): mixed, string}> */
    public static function bodiesOfAFile(): iterable
    {
        yield 'file' => [static fn(mixed $file): mixed => $file, 'its resource was closed too early'];
        $form = static fn(mixed $file): array => ['title' => 'x', 'file' => $file];
        yield 'form' => [$form, 'stream resource'];
    }

    /** @return iterable<string, array{array<string, mixed>}> */
    public static function unsupportedOptions(): iterable
    {
        yield 'resolve' => [['resolve' => ['example.test' => '127.0.0.1']]];
        yield 'bindto' => [['bindto' => '127.0.0.1:9876']];
        yield 'verify_host' => [['verify_host' => false]];
        yield 'passphrase' => [['passphrase' => 'secret']];
        yield 'ciphers' => [['ciphers' => 'AES']];
        yield 'capath' => [['capath' => '/etc/ssl']];
        yield 'crypto_method' => [['crypto_method' => \STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT]];
        yield 'peer_fingerprint' => [['peer_fingerprint' => ['pin-sha256' => [base64_encode(str_repeat('x', 32))]]]];
    }
}
