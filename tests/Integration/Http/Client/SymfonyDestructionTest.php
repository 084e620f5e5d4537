<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\Socket\Socket;
use GuzzleHttp\Psr7\StreamWrapper;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\Internal\Client\SymfonyResponse;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\Records;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Streams;
use Symfony\Component\HttpClient\EventSourceHttpClient;
use Symfony\Component\HttpClient\RetryableHttpClient;
use Symfony\Component\Process\Process;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Symfony\Contracts\HttpClient\ResponseInterface;

use function Amp\delay;

/** Tests responses that are destroyed unread, and waits in destructors. */
final class SymfonyDestructionTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use OwnDirectory;
    use ServesHttp;

    private const REQUEST_IN_A_DESTRUCTOR = <<<'PHP'
        $object = new class ($client, $url) {
            public function __construct(private object $client, private string $url) {}
            public function __destruct()
            {
                $this->client->request("POST", str_replace("://", "://user:password@", $this->url) . "/x?query=1");
            }
        };
        PHP;

    /** @var list<string> bodies of the requests that have arrived */
    private array $arrived = [];

    /** @return iterable<string, array{\Closure(HttpClientInterface): HttpClientInterface}> */
    public static function decorators(): iterable
    {
        yield 'none' => [static fn(HttpClientInterface $client): HttpClientInterface => $client];
        yield 'retries' => [static fn(HttpClientInterface $client) => new RetryableHttpClient($client)];
        yield 'event source' => [static fn(HttpClientInterface $client) => new EventSourceHttpClient($client)];
        yield 'two' => [
            static fn(HttpClientInterface $client) => new EventSourceHttpClient(new RetryableHttpClient($client)),
        ];
    }

    /** @param \Closure(HttpClientInterface): HttpClientInterface $decorate */
    #[DataProvider('decorators')]
    public function testTheRequestOfADestroyedResponseArrives(\Closure $decorate): void
    {
        $url = $this->url();
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        $decorate($client)->request('POST', $url, ['body' => 'a']);
        EventLoop::queue(static fn() => $decorate($client)->request('POST', $url, ['body' => 'b']));
        Eventually::holds(fn(): bool => \count($this->arrived) === 2, 'both requests arrive');

        sort($this->arrived);
        self::assertSame(['a', 'b'], $this->arrived);
        self::assertNotContains('warning', array_column($log->all, 'level'));
        self::assertSame(200, $decorate($client)->request('GET', $url)->getStatusCode());
    }

    /** @param \Closure(HttpClientInterface): HttpClientInterface $decorate */
    #[DataProvider('decorators')]
    public function testTheRequestsOfResponsesInADestroyedFiberArrive(\Closure $decorate): void
    {
        $url = $this->url();
        $log = new Records();
        $http = new HttpClient();
        $client = new SymfonyClient($http);
        $client->setLogger($log);
        foreach (['begun' => true, 'queued' => false] as $body => $hasBegun) {
            $fiber = new \Fiber(static function () use ($decorate, $client, $url, $body): void {
                $held = $decorate($client)->request('POST', $url, ['body' => $body]);
                \Fiber::suspend($held->getInfo('url'));
            });
            $fiber->start();
            $hasBegun ? delay(0) : null;
            unset($fiber);
        }
        Eventually::holds(fn(): bool => \count($this->arrived) === 2, 'both requests arrive');
        Eventually::holds(static fn(): bool => $http->statistics()['running'] === 0, 'both calls end');

        self::assertEqualsCanonicalizing(['begun', 'queued'], $this->arrived);
        self::assertNotContains('warning', array_column($log->all, 'level'));
    }

    public function testAWaitInADestroyedFiberIsRefused(): void
    {
        $url = $this->url();
        $client = new SymfonyClient();
        $fiber = new \Fiber(static function () use ($client, $url): void {
            try {
                \Fiber::suspend();
            } finally {
                $client->request('GET', $url)->getStatusCode();
            }
        });
        $fiber->start();
        self::thrown(TransportExceptionInterface::class, static function () use (&$fiber): void {
            $fiber = null;
        });

        self::assertSame(200, $client->request('GET', $url)->getStatusCode());
    }

    /** @return iterable<string, array{bool, bool}> */
    public static function collections(): iterable
    {
        yield 'queued' => [false, false];
        yield 'begun' => [false, true];
        yield 'queued, canary released first' => [true, false];
        yield 'begun, canary released first' => [true, true];
    }

    #[DataProvider('collections')]
    public function testTheRequestOfAResponseThatTheGarbageCollectorDestroysArrives(
        bool $isCanaryFirst,
        bool $hasBegun,
    ): void {
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        $response = $client->request('POST', $this->url(), ['body' => 'a']);
        $hasBegun ? delay(0) : null;
        self::holdInACycle($response, $isCanaryFirst);
        unset($response);
        gc_collect_cycles();
        Eventually::holds(fn(): bool => $this->arrived === ['a'], 'the request arrives');

        self::assertNotContains('warning', array_column($log->all, 'level'));
    }

    #[DataProvider('collections')]
    public function testTheBodyOfAResponseThatTheGarbageCollectorDestroysIsNotReceived(
        bool $isCanaryFirst,
        bool $hasBegun,
    ): void {
        /** @var \ArrayObject<int, string> $events */
        $events = new \ArrayObject();
        $this->serve(static fn(): Response => Response::stream((static function () use ($events): \Generator {
            $events[] = 'begin';
            try {
                for (;;) {
                    yield 'a';
                    delay(0.001);
                }
            } finally {
                $events[] = 'end';
            }
        })()));
        $response = (new SymfonyClient())->request('GET', $this->address());
        $hasBegun ? delay(0) : null;
        self::holdInACycle($response, $isCanaryFirst);
        unset($response);
        gc_collect_cycles();
        Eventually::holds(static fn(): bool => \count($events) === 2, 'the body begins and ends');

        self::assertSame(['begin', 'end'], $events->getArrayCopy());
    }

    #[DataProvider('collections')]
    public function testTheFailureOfAResponseThatIsCollectedInAFiberIsLogged(bool $isCanaryFirst, bool $hasBegun): void
    {
        $url = $this->url();
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        Async::run(static function () use ($client, $url, $isCanaryFirst, $hasBegun): void {
            $response = $client->request('POST', "{$url}/missing", ['body' => 'a']);
            $hasBegun ? delay(0) : null;
            self::holdInACycle($response, $isCanaryFirst);
            unset($response);
            gc_collect_cycles();
        })->await();
        Eventually::holds(
            static fn(): bool => \in_array('warning', array_column($log->all, 'level'), true),
            'the failure is logged',
        );

        self::assertSame(['a'], $this->arrived);
        self::assertStringContainsString('HTTP 404 returned for', implode($log->messages()));
    }

    public function testTheFailureOfAResponseWhoseOwnerIsCollectedInAFiberIsLogged(): void
    {
        $url = $this->url();
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        Async::run(static function () use ($client, $url): void {
            $owner = new class {
                public ?object $self = null;
                public ?ResponseInterface $response = null;

                public function __destruct()
                {
                    $this->response = null; // as TraceableResponse does
                }
            };
            $owner->self = $owner;
            $owner->response = $client->request('POST', "{$url}/missing");
            unset($owner);
            gc_collect_cycles();
        })->await();
        Eventually::holds(
            static fn(): bool => \in_array('warning', array_column($log->all, 'level'), true),
            'the failure is logged',
        );

        self::assertStringContainsString('HTTP 404 returned for', implode($log->messages()));
    }

    /** Makes a response part of a reference cycle. The order of releases changes PHP's order of destruction. */
    private static function holdInACycle(ResponseInterface $response, bool $isCanaryFirst): void
    {
        $holder = new \stdClass();
        $holder->self = $holder;
        $holder->response = $response;
        if ($isCanaryFirst) {
            (new \ReflectionProperty(SymfonyResponse::class, 'canary'))->getValue($response);
        }
    }

    #[RequiresPhp('< 8.4')]
    public function testAResponseCanBeReadAfterADecoratorHasCalledItsDestructor(): void
    {
        $this->serve(static fn(): Response => Response::stream([str_repeat('a', 3_000_000), 'b']));
        $response = (new SymfonyClient())->request('GET', $this->address());
        \assert($response instanceof SymfonyResponse);
        self::callInDestructor($response->__destruct(...));
        Eventually::holds(static fn(): bool => $response->getInfo('http_code') === 200, 'the head arrives');

        self::assertSame(3_000_001, \strlen($response->getContent()));
    }

    /** @return iterable<string, array{array<string, string>, string}> */
    public static function formsWithoutFiles(): iterable
    {
        yield 'fields' => [['a' => 'b', 'c' => 'd'], 'a=b&c=d'];
        yield 'empty' => [[], ''];
    }

    /** @param array<string, string> $form */
    #[DataProvider('formsWithoutFiles')]
    public function testTheFormOfADestroyedResponseArrives(array $form, string $expected): void
    {
        $url = $this->url();
        (new SymfonyClient())->request('POST', $url, ['body' => $form]);
        (new SymfonyClient())->withOptions(['body' => $form])->request('POST', $url);
        Eventually::holds(fn(): bool => \count($this->arrived) === 2, 'both requests arrive');

        self::assertSame([$expected, $expected], $this->arrived);
    }

    public function testTheFileOfADefaultFormIsReadBeforeTheCallerClosesIt(): void
    {
        $url = $this->url();
        $file = tmpfile();
        \assert($file !== false);
        fwrite($file, 'hello world');
        rewind($file);
        (new SymfonyClient())->withOptions(['body' => ['file' => $file]])->request('POST', $url);
        fclose($file);
        Eventually::holds(fn(): bool => $this->arrived !== [], 'the request arrives');

        self::assertStringContainsString('hello world', $this->arrived[0]);
    }

    public function testAFileIsReadBeforeTheCallerChangesIt(): void
    {
        $url = $this->url();
        $client = new SymfonyClient();
        $file = tmpfile();
        \assert($file !== false);
        foreach (['first', 'second', 'third'] as $body) {
            ftruncate($file, 0);
            rewind($file);
            fwrite($file, $body);
            rewind($file);
            $client->request('PUT', $url, ['body' => $file]);
        }
        fclose($file);
        Eventually::holds(fn(): bool => \count($this->arrived) === 3, 'all requests arrive');

        sort($this->arrived);
        self::assertSame(['first', 'second', 'third'], $this->arrived);
    }

    #[TestWith(['php://temp', 'w+'])]
    #[TestWith(['php://memory', 'w+'])]
    #[TestWith(['data:text/plain,hello', 'r'])]
    public function testAResourceInMemoryIsSentAlthoughTheErrorHandlerThrows(string $name, string $mode): void
    {
        $url = $this->url();
        $body = Streams::open($name, $mode);
        $mode === 'r' ? null : fwrite($body, 'hello');
        rewind($body);
        set_error_handler(static fn(int $level, string $message): never => throw new \ErrorException($message));
        try {
            (new SymfonyClient())->request('POST', $url, ['body' => $body]);
        } finally {
            restore_error_handler();
        }
        fclose($body);
        Eventually::holds(fn(): bool => $this->arrived !== [], 'the request arrives');

        self::assertSame(['hello'], $this->arrived);
    }

    #[RequiresPhp('< 8.4')]
    public function testAnUploadContinuesWithACopyOfTheFile(): void
    {
        [$begins, $isClosed, $ends] = [new DeferredFuture(), new DeferredFuture(), new DeferredFuture()];
        $server = new ScriptedServer(static function (Socket $socket) use ($begins, $isClosed, $ends): void {
            $bytes = (string) $socket->read();
            $begins->complete();
            $isClosed->getFuture()->await();
            while (\strlen($bytes) < 16_000_000 && ($piece = $socket->read()) !== null) {
                $bytes .= $piece;
            }
            $ends->complete(explode("\r\n\r\n", $bytes, 2)[1]);
            $socket->write("HTTP/1.1 204 No Content\r\n\r\n");
        });
        $body = str_repeat(random_bytes(1000), 16_000);
        $file = tmpfile();
        \assert($file !== false);
        fwrite($file, $body);
        rewind($file);
        $response = (new SymfonyClient())->request('PUT', $server->url(), ['body' => $file]);
        $begins->getFuture()->await();
        unset($response);
        fclose($file);
        $isClosed->complete();

        self::assertTrue($ends->getFuture()->await() === $body);
    }

    /** @return iterable<string, array{\Closure(mixed): mixed}> */
    public static function bodiesWithAPipe(): iterable
    {
        yield 'pipe' => [static fn(mixed $pipe): mixed => $pipe];
        yield 'form' => [static fn(mixed $pipe): array => ['title' => 'x', 'file' => $pipe]];
    }

    /** @param \Closure(mixed): mixed $body */
    #[DataProvider('bodiesWithAPipe')]
    public function testAPipeIsReadBeforeTheCallerClosesIt(\Closure $body): void
    {
        $url = $this->url();
        $pipe = popen('printf "hello world"', 'r');
        \assert($pipe !== false);
        (new SymfonyClient())->request('POST', $url, ['body' => $body($pipe)]);
        pclose($pipe);
        Eventually::holds(fn(): bool => $this->arrived !== [], 'the request arrives');

        self::assertStringContainsString('hello world', $this->arrived[0]);
    }

    /** @return iterable<string, array{\Closure(string): mixed}> */
    public static function bodiesThatSuspend(): iterable
    {
        $client = new SymfonyClient();
        yield 'stream' => [static fn(string $url): mixed => self::streamOf($client->request('GET', $url))];
        yield 'form' => [static fn(string $url): mixed => ['file' => $client->request('GET', $url)]];
        yield 'form with a stream' => [
            static fn(string $url): mixed => ['a' => ['b' => self::streamOf($client->request('GET', $url))]],
        ];
        yield 'body of PSR-7' => [
            static fn(string $url): mixed => StreamWrapper::getResource((new HttpClient())->get($url)->getBody()),
        ];
    }

    /** @param \Closure(string): mixed $body */
    #[DataProvider('bodiesThatSuspend')]
    public function testAResponseIsTheBodyOfARequestWhoseResponseIsDestroyed(\Closure $body): void
    {
        $url = $this->url();
        (new SymfonyClient())->request('PUT', $url, ['body' => $body("{$url}/slow")]);
        Eventually::holds(fn(): bool => \count($this->arrived) === 2, 'both requests arrive');

        self::assertStringContainsString('first second', $this->arrived[1]);
    }

    private static function streamOf(ResponseInterface $response): mixed
    {
        \assert($response instanceof SymfonyResponse);

        return $response->toStream();
    }

    #[RequiresPhp('< 8.4')]
    public function testTheFilesOfManyDestroyedResponsesNeedLittleMemory(): void
    {
        $url = $this->url();
        $file = tmpfile();
        \assert($file !== false);
        fwrite($file, str_repeat('x', 1_000_000));
        rewind($file);
        $client = new SymfonyClient();
        $before = memory_get_usage();
        for ($count = 0; $count < 10; ++$count) {
            $client->request('PUT', $url, ['body' => $file]);
        }
        $used = memory_get_usage() - $before;
        Eventually::holds(fn(): bool => \count($this->arrived) === 10, 'all requests arrive');

        self::assertLessThan(1_000_000, $used);
        self::assertSame([1_000_000], array_values(array_unique(array_map(\strlen(...), $this->arrived))));
    }

    #[RequiresPhp('< 8.4')]
    public function testACopyThatCanNotBeStoredIsLogged(): void
    {
        $process = $this->ended(<<<'PHP'
            $file = fopen(__DIR__ . "/file", "w+");
            fwrite($file, str_repeat("x", 100_000));
            rewind($file);
            $client->request("PUT", $url, ["body" => $file]);
            PHP, '-d', 'sys_temp_dir=/missing');

        self::assertStringContainsString(
            "The body can't be sent: its temporary copy can't be written to /missing.",
            $process->getOutput(),
        );
        self::assertStringNotContainsString('fwrite()', $process->getOutput());
        self::assertSame([], $this->arrived);
    }

    #[RequiresPhp('< 8.4')]
    public function testDescriptorsAreLeftForConnections(): void
    {
        $process = $this->ended(<<<'PHP'
            $file = __DIR__ . "/file";
            file_put_contents($file, str_repeat("x", 20_000));
            for ($count = 0; $count < 514; ++$count) {
                $client->request("PUT", $url, ["body" => fopen($file, "r")]);
            }
            PHP);

        self::assertSame(2, substr_count($process->getOutput(), '512 temporary copies of other bodies wait'));
        self::assertCount(512, $this->arrived);
    }

    #[RequiresPhp('< 8.4')]
    public function testTheFileOfADestroyedResponseIsReleased(): void
    {
        $url = $this->url();
        $file = tmpfile();
        \assert($file !== false);
        $id = get_resource_id($file);
        (new SymfonyClient())->request('PUT', $url, ['body' => $file]);
        unset($file);

        self::assertArrayNotHasKey($id, get_resources('stream'));
        Eventually::holds(fn(): bool => $this->arrived !== [], 'the request arrives');
    }

    public function testANonBlockingSocketStaysNonBlocking(): void
    {
        $url = $this->url();
        $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \assert($pair !== false);
        stream_set_blocking($pair[0], false);
        fwrite($pair[1], 'hello world');
        fclose($pair[1]);
        (new SymfonyClient())->request('POST', $url, ['body' => $pair[0]]);

        self::assertFalse(stream_get_meta_data($pair[0])['blocked']);
        Eventually::holds(fn(): bool => $this->arrived === ['hello world'], 'the request arrives');
    }

    #[RequiresPhp('< 8.4')]
    public function testABodyThatCanNotBeReadIsLogged(): void
    {
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \assert($pair !== false);
        stream_set_timeout($pair[0], 0, 1000);
        $client->request('POST', $this->url(), ['body' => $pair[0]]);
        delay(0); // the request is not sent

        self::assertStringContainsString('exceeded its time limit', $log->messages()[1]);
        self::assertSame([], $this->arrived);
    }

    public function testTheBodyOfADestroyedResponseIsNotReceived(): void
    {
        $ended = false;
        $body = static function () use (&$ended): \Generator {
            try {
                while (true) {
                    yield 'x';
                    delay(0.001);
                }
            } finally {
                $ended = true;
            }
        };
        $this->serve(static fn(): Response => Response::stream($body()));
        (new SymfonyClient())->request('GET', $this->address());

        Eventually::holds(static function () use (&$ended): bool {
            return $ended;
        }, 'the connection is closed');
    }

    #[RequiresPhp('< 8.4')]
    #[TestWith([false])]
    #[TestWith([true])]
    public function testTheIdleTimeOutBeginsWhenAConnectionIsFree(bool $hasBegun): void
    {
        $log = new Records();
        $this->serve(function (ServerRequestInterface $request): Response {
            $this->arrived[] = $request->getUri()->getPath();
            $request->getUri()->getPath() === '/long' ? delay(0.8) : null;

            return new Response();
        });
        $http = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1));
        $client = new SymfonyClient($http);
        $client->setLogger($log);
        $first = $client->request('GET', "{$this->address()}/long", ['timeout' => 20]);
        $waiting = $client->request('POST', "{$this->address()}/waiting", ['timeout' => 0.5]);
        if ($hasBegun) {
            Eventually::holds(static fn(): bool => $http->statistics()['waiting'] === 1, 'the request has begun');
        }
        unset($waiting);

        self::assertSame(200, $first->getStatusCode());
        self::assertSame(200, $client->request('GET', "{$this->address()}/last")->getStatusCode());
        self::assertSame(['/long', '/waiting', '/last'], $this->arrived);
        self::assertNotContains('warning', array_column($log->all, 'level'));
    }

    /** @return iterable<string, array{bool, bool}> */
    public static function uploads(): iterable
    {
        yield 'destroyed before it begins' => [true, false];
        yield 'destroyed during the upload' => [true, true];
        yield 'read' => [false, false];
    }

    #[DataProvider('uploads')]
    public function testTheIdleTimeOutDoesNotEndAnUploadThatMakesProgress(bool $isDestroyed, bool $hasBegun): void
    {
        $url = $this->url();
        $begins = new DeferredFuture();
        $body = static function () use ($begins): \Generator {
            for ($piece = 0; $piece < 8; ++$piece) {
                yield 'x';
                $piece === 0 ? $begins->complete() : null;
                delay(0.1);
            }
        };
        $response = (new SymfonyClient())->request('POST', $url, ['timeout' => 0.5, 'body' => $body()]);
        $hasBegun ? $begins->getFuture()->await() : null;
        if ($isDestroyed) {
            unset($response);
        } else {
            self::assertSame(200, $response->getStatusCode());
        }
        Eventually::holds(fn(): bool => $this->arrived !== [], 'the request arrives');

        self::assertSame(['xxxxxxxx'], $this->arrived);
    }

    /** @return iterable<string, array{string, float, string}> */
    public static function failures(): iterable
    {
        yield 'status' => ['%s/missing', 60, 'HTTP 404 returned for "http'];
        yield 'no answer' => ['%s/never', 0.05, 'Idle timeout reached for "http'];
        yield 'no connection' => ['http://127.0.0.1:1/', 60, 'failed: connection refused'];
    }

    #[RequiresPhp('< 8.4')]
    #[DataProvider('failures')]
    public function testTheLogLeavesOutTheSecretsOfTheUrl(string $url, float $timeout): void
    {
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        $url = str_replace('http://', 'http://user:password@', \sprintf($url, $this->url()));
        $client->request('POST', "{$url}?query=1", ['timeout' => $timeout]);
        Eventually::holds(static fn(): bool => \count($log->all) > 1, 'the failure is logged');

        self::assertDoesNotMatchRegularExpression('/user|password|query/', implode($log->messages()));
    }

    #[RequiresPhp('< 8.4')]
    #[DataProvider('failures')]
    public function testTheFailureOfADestroyedResponseIsLogged(string $url, float $timeout, string $why): void
    {
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        $url = \sprintf($url, $this->url());
        (new RetryableHttpClient($client))->request('POST', $url, ['timeout' => $timeout]);
        Eventually::holds(static fn(): bool => \count($log->all) > 1, 'the failure is logged');

        self::assertSame(['info', 'warning'], array_column($log->all, 'level'));
        self::assertStringContainsString($why, $log->messages()[1]);
        self::assertInstanceOf(TransportExceptionInterface::class, $log->failures()[0]);
    }

    #[RequiresPhp('< 8.4')]
    #[DataProvider('decorators')]
    public function testAResponseThatHasArrivedIsDestroyedUnread(\Closure $decorate): void
    {
        $url = $this->url();
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        /** @var \Closure(HttpClientInterface): HttpClientInterface $decorate */
        $response = $decorate($client)->request('GET', "{$url}/unavailable");
        Eventually::holds(static fn(): bool => $response->getInfo('http_code') === 503, 'the head arrives');
        unset($response);
        Eventually::holds(static fn(): bool => \count($log->all) > 1, 'the status is logged');

        self::assertStringContainsString('HTTP 503 returned', $log->messages()[1]);
        self::assertCount(1, $this->arrived);
    }

    public function testAReadStatusIsNotLogged(): void
    {
        $url = $this->url();
        $log = new Records();
        $client = new SymfonyClient();
        $client->setLogger($log);
        $client->request('GET', "{$url}/missing")->getStatusCode();
        delay(0);
        $client->request('GET', $url)->getStatusCode();

        self::assertNotContains('warning', array_column($log->all, 'level'));
    }

    public function testTheRequestOfACancelledResponseIsNotSent(): void
    {
        $url = $this->url();
        $client = new SymfonyClient();
        $response = $client->request('POST', $url, ['body' => 'cancelled']);
        $response->cancel();
        unset($response);
        $client->request('POST', $url, ['body' => 'sent'])->getStatusCode();

        self::assertSame(['sent'], $this->arrived);
    }

    #[RequiresPhp('< 8.4')]
    public function testAWaitInADestructorIsRefused(): void
    {
        $client = new SymfonyClient();
        $response = $client->request('POST', $this->url(), ['body' => 'a']);
        $stream = static function () use ($client, $response): void {
            foreach ($client->stream($response) as $_) {
                break;
            }
        };
        foreach ([$response->getStatusCode(...), $stream] as $wait) {
            $refusal = self::thrown(
                TransportExceptionInterface::class,
                static fn() => self::callInDestructor($wait),
            );
            self::assertStringContainsString('Waiting is not possible here', $refusal->getMessage());
            self::assertStringEndsWith('may have been carried out nevertheless', $refusal->getMessage());
        }

        self::assertSame(200, $response->getStatusCode());
        self::assertSame(['a'], $this->arrived);
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAWaitInASignalHandlerIsRefused(): void
    {
        $refusal = null;
        $response = (new SymfonyClient())->request('POST', $this->url(), ['body' => 'a']);
        pcntl_signal(\SIGUSR2, static function () use ($response, &$refusal): void {
            $refusal = self::thrown(TransportExceptionInterface::class, $response->getStatusCode(...));
        });
        posix_kill((int) getmypid(), \SIGUSR2);
        pcntl_signal_dispatch();
        pcntl_signal(\SIGUSR2, \SIG_DFL);

        self::assertStringEndsWith('may have been carried out nevertheless', $refusal?->getMessage() ?? '');
        self::assertSame(200, $response->getStatusCode());
        self::assertSame(['a'], $this->arrived);
    }

    public function testAPendingResponseHasNoErrorInADestructor(): void
    {
        $response = (new SymfonyClient())->request('GET', $this->url());
        $error = '';
        self::callInDestructor(static function () use ($response, &$error): void {
            $error = $response->getInfo('error');
        });

        self::assertNull($error);
        self::assertSame(200, $response->getStatusCode());
    }

    /** @return iterable<string, array{string, int}> */
    public static function ends(): iterable
    {
        yield 'destroyed response' => ['(static fn() => $client->request("POST", $url, ["body" => "a"]))();', 0];
        yield 'response in a variable' => ['$response = $client->request("POST", $url, ["body" => "a"]);', 0];
        yield 'exit()' => ['$client->request("POST", $url, ["body" => "a"]); exit(3);', 3];
    }

    #[DataProvider('ends')]
    public function testRequestsArriveAlthoughTheScriptEnds(string $script, int $status): void
    {
        $process = $this->ended($script);

        self::assertSame([['a'], '', $status], [$this->arrived, $process->getOutput(), $process->getExitCode()]);
    }

    /** @return iterable<string, array{string}> */
    public static function heldResponses(): iterable
    {
        $begin = '$client->request("GET", $url)->getStatusCode(); ';
        $cycle = '(static function () use ($client, $url) { $job = new stdClass; $job->self = $job; '
            . '$job->response = $client->request("POST", $url, ["body" => "a"]); unset($job); gc_collect_cycles(); })';
        yield 'list' => [$begin . '$responses = [$client->request("POST", $url, ["body" => "a"])];'];
        yield 'static property' => [$begin . 'class Held { public static $response; } '
            . 'Held::$response = $client->request("POST", $url, ["body" => "a"]);'];
        yield 'cycle' => ["{$begin}{$cycle}();"];
        yield 'cycle in a fiber' => ["{$begin}Amp\async{$cycle}->await();"];
        yield 'suspended fiber' => [$begin . 'Amp\async(static function () use ($client, $url) { '
            . '$response = $client->request("POST", $url, ["body" => "a"]); Amp\delay(60); }); Amp\delay(0);'];
    }

    #[DataProvider('heldResponses')]
    public function testTheRequestOfAHeldResponseArrivesAlthoughTheScriptEnds(string $script): void
    {
        $process = $this->ended($script);

        self::assertSame([['', 'a'], '', 0], [$this->arrived, $process->getOutput(), $process->getExitCode()]);
    }

    /** exit() in a callback of the loop ends the script without a wait for the response. */
    public function testAFiberThatWaitsForAResponseDoesNotChangeTheExitStatusOfTheScript(): void
    {
        $process = $this->ended(<<<'PHP'
            $client = new Spindle\Http\Client\SymfonyClient(); // without a logger
            Amp\async(static fn() => $client->request("POST", "{$url}/never")->getContent())->ignore();
            Revolt\EventLoop::delay(0.01, static fn() => exit(3));
            Amp\delay(20);
            PHP);

        self::assertSame(['', 3], [$process->getOutput(), $process->getExitCode()]);
    }

    public function testAFailureAtTheEndOfTheScriptIsLogged(): void
    {
        $process = $this->ended('$response = $client->request("GET", "{$url}/missing");');

        self::assertStringContainsString('HTTP 404 returned for', $process->getOutput());
    }

    /** @return iterable<string, array{string, string}> */
    public static function failuresAtTheEnd(): iterable
    {
        $never = '$client->request("POST", "{$url}/never", ["timeout" => 0.1]);';
        yield 'status' => ['$client->request("GET", "{$url}/missing");', 'HTTP 404 returned for'];
        yield 'idle' => [$never, 'Idle timeout reached for'];
        yield 'begun' => ["{$never} Amp\\delay(0);", 'Idle timeout reached for'];
    }

    #[RequiresPhp('< 8.4')]
    #[DataProvider('failuresAtTheEnd')]
    public function testAFailureOfADestroyedResponseAtTheEndOfTheScriptIsLoggedOnce(string $script, string $why): void
    {
        $output = $this->ended($script)->getOutput();

        self::assertStringStartsWith('A request whose response was destroyed unread has failed: ' . $why, $output);
        self::assertSame(1, substr_count($output, 'request'), $output);
    }

    #[RequiresPhp('< 8.4')]
    #[TestWith(['$client->request("POST", $url)->getStatusCode();'])]
    #[TestWith([''])]
    public function testARequestInADestructorAtTheEndOfTheScriptIsReported(string $earlierRequest): void
    {
        $process = $this->ended(self::REQUEST_IN_A_DESTRUCTOR . $earlierRequest);

        self::assertStringContainsString('A request may be lost, because the script ends', $process->getOutput());
        self::assertStringEndsWith("response: {$this->address()}/x", $process->getOutput());
    }

    #[RequiresPhp('>= 8.4')]
    #[TestWith(['$client->request("POST", $url)->getStatusCode();', 2])]
    #[TestWith(['', 1])]
    public function testARequestInADestructorAtTheEndOfTheScriptArrives(string $earlierRequest, int $expected): void
    {
        $process = $this->ended(self::REQUEST_IN_A_DESTRUCTOR . $earlierRequest);

        self::assertSame([$expected, '', 0], [
            \count($this->arrived),
            $process->getOutput(),
            $process->getExitCode(),
        ]);
    }

    #[RequiresPhp('< 8.4')]
    public function testALostRequestIsLoggedAlthoughACallbackOfTheEventLoopFails(): void
    {
        $process = $this->ended(<<<'PHP'
            $client->request("POST", "{$url}/never");
            Revolt\EventLoop::delay(0.01, static fn() => throw new RuntimeException("of a callback"));
            PHP);

        self::assertStringContainsString('A request may be lost, because the script ends', $process->getOutput());
        self::assertStringContainsString('of a callback', $process->getErrorOutput() . $process->getOutput());
    }

    #[RequiresPhpExtension('pcntl')]
    #[TestWith(['exit(0);'])]
    #[TestWith(['unset($response); exit(0);'])]
    #[TestWith(['Amp\delay(0.01); exit(0);'])]
    public function testAForkLeavesTheRequestToItsParent(string $child): void
    {
        $process = $this->ended(<<<'PHP'
            $response = $client->request("POST", $url, ["body" => "a"]);
            if (($pid = pcntl_fork()) === 0) {
            PHP . $child . <<<'PHP'
            }
            pcntl_waitpid($pid, $status);
            echo $response->getStatusCode(), pcntl_wexitstatus($status);
            PHP);

        self::assertSame([['a'], '2000'], [$this->arrived, $process->getOutput()]);
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkDoesNotLogADestroyedRequestOfItsParent(): void
    {
        $process = $this->ended(<<<'PHP'
            $client->request("POST", $url, ["body" => "a"]);
            if (($pid = pcntl_fork()) === 0) {
                Amp\delay(0.01);
                exit(0);
            }
            pcntl_waitpid($pid, $status);
            echo pcntl_wexitstatus($status);
            PHP);

        self::assertSame([['a'], '0'], [$this->arrived, $process->getOutput()]);
    }

    public function testACancelledRequestIsNotLoggedAtTheEndOfTheScript(): void
    {
        $process = $this->ended('$response = $client->request("POST", $url); $response->cancel();');

        self::assertSame([[], '', 0], [$this->arrived, $process->getOutput(), $process->getExitCode()]);
    }

    public function testARequestCanBeCancelledWhileTheEndOfTheScriptWaits(): void
    {
        $process = $this->ended(<<<'PHP'
            $response = $client->request("POST", "{$url}/never", ["body" => "a"]);
            Revolt\EventLoop::delay(0.05, static function () use ($response): void {
                $response->cancel();
                echo "cancelled ", hrtime(true), " ";
            });
            $object = new class {
                public function __destruct()
                {
                    echo "over ", hrtime(true); // PHP destroys the global variables after the wait
                }
            };
            PHP);
        [$text, $cancelledAt, $over, $overAt] = explode(' ', $process->getOutput());

        self::assertSame(['cancelled', 'over'], [$text, $over]);
        self::assertLessThan(5e9, (int) $overAt - (int) $cancelledAt);
    }

    #[TestWith(['200', '/^$/D'])]
    #[TestWith(['missing', '/^A request whose response was destroyed unread has failed: HTTP 404 returned for/'])]
    public function testAResponseThatHasArrivedIsNotLostAtTheEndOfTheScript(string $path, string $warning): void
    {
        $output = $this->ended(<<<PHP
            \$response = \$client->request("GET", "{\$url}/{$path}");
            while (\$response->getInfo("http_code") === 0) {
                Amp\delay(0.001);
            }
            PHP)->getOutput();

        self::assertMatchesRegularExpression($warning, $output);
    }

    /** Runs a script whose client prints warnings. */
    private function ended(string $script, string ...$phpOptions): Process
    {
        $url = $this->url();
        $autoload = var_export(\dirname(__DIR__, 4) . '/vendor/autoload.php', true);
        $file = $this->file('script.php', <<<PHP
            <?php
            require {$autoload};
            \$client = new Spindle\\Http\\Client\\SymfonyClient();
            \$client->setLogger(new class extends Psr\\Log\\AbstractLogger {
                public function log(\$level, string|Stringable \$message, array \$context = []): void
                {
                    echo \$level === 'warning' ? \$message : '';
                }
            });
            \$url = '{$url}';
            {$script}
            PHP);
        $process = new Process([\PHP_BINARY, ...$phpOptions, $file]);
        $process->start();
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the script ends', 20);

        return $process;
    }

    /** Starts a server, and returns its address. */
    private function url(): string
    {
        $this->serve(function (ServerRequestInterface $request): Response {
            $this->arrived[] = (string) $request->getBody();

            if ($request->getUri()->getPath() === '/never') {
                $left = $request->getAttribute(Cancellation::class);
                \assert($left instanceof Cancellation);
                delay(25, cancellation: $left);
            }

            if ($request->getUri()->getPath() === '/slow') {
                return Response::stream((static function (): \Generator {
                    yield 'first ';
                    delay(0.01);
                    yield 'second';
                })());
            }

            return new Response(match ($request->getUri()->getPath()) {
                '/missing' => 404,
                '/unavailable' => 503,
                default => 200,
            });
        });

        return $this->address();
    }

    private function address(): string
    {
        return 'http' . substr($this->address, \strlen('tcp'));
    }

    private static function callInDestructor(\Closure $call): void
    {
        $object = new class ($call) {
            public function __construct(private readonly \Closure $call) {}

            public function __destruct()
            {
                ($this->call)();
            }
        };
        unset($object);
    }
}
