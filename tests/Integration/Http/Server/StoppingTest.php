<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;
use Spindle\Http\BackgroundWork;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Http\ServerClosedException;
use Spindle\Internal\CannotWaitException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\SuspendingLogger;

use function Amp\delay;

/** Stops of a server at any moment, in the same process. */
final class StoppingTest extends HttpServerTestCase
{
    /** @var DeferredFuture<null> that handlers of /wait are held up by */
    private DeferredFuture $gate;

    protected function setUp(): void
    {
        $this->gate = new DeferredFuture();
    }

    public function testAServerWithoutClientsStopsAtOnce(): void
    {
        $this->serveGated();
        $this->server()->close();

        self::assertTrue($this->server()->statistics()->stopping);
        $this->expectExceptionMessage('refused');
        RawClient::connect($this->address);
    }

    public function testAnOpenRequestIsAnswered(): void
    {
        $this->serveGated();
        $client = $this->client()->get('/wait');
        $stopped = $this->beginStop(inFlight: 1);
        self::assertFalse($stopped->isComplete());
        $this->gate->complete();

        $response = $client->response();
        self::assertSame(['answered', 'close'], [$response->body, $response->header('connection')]);
        self::assertTrue($client->isEnded());
        $client->close();
        $stopped->await();
    }

    public function testEventStreamsEndWhenTheServerStops(): void
    {
        $end = new DeferredFuture();
        $this->serve(static fn(): Response => Response::serverSentEvents((static function () use ($end): \Generator {
            try {
                while (true) {
                    yield 'told';
                    delay(0.05);
                }
            } finally {
                $end->complete();
            }
        })()));
        $client = $this->client()->get('/');
        $client->until('data: told');
        $stopped = $this->beginStop();

        self::assertStringEndsWith("0\r\n\r\n", $client->rest());
        $client->close();
        $stopped->await();
        $end->getFuture()->await();
    }

    public function testAnEventStreamThatStartsDuringAStopEndsAtOnce(): void
    {
        $gate = $this->gate->getFuture();
        $this->serve(static function () use ($gate): Response {
            $gate->await();

            return Response::serverSentEvents((static function (): \Generator {
                (new DeferredFuture())->getFuture()->await();
                yield 'never';
            })());
        });
        $client = $this->client()->get('/');
        $stopped = $this->beginStop(inFlight: 1);
        $this->gate->complete();

        self::assertSame('', $client->response()->body);
        $client->close();
        $stopped->await();
    }

    public function testPipelinedRequestsAreAllAnswered(): void
    {
        $this->serveGated();
        $client = $this->client()->send(
            "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"
            . "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
            . "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
            . "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHo",
        );
        $stopped = $this->beginStop(inFlight: 1);
        $this->gate->complete();

        foreach ([true, true, true, false] as $keeps) {
            $response = $client->response();
            self::assertSame(['answered', $keeps], [$response->body, $response->keepsConnection()]);
        }
        self::assertTrue($client->isEnded());
        $client->close();
        $stopped->await();
    }

    public function testARequestWithAnIncompleteHeadIsAnswered(): void
    {
        $this->serveGated();
        $client = $this->client()->send("GET / HTTP/1.1\r\nHo");
        delay(0.02);
        $stopped = $this->beginStop();
        $client->send("st: a\r\n\r\n");

        self::assertSame('close', $client->response()->header('connection'));
        $client->close();
        $stopped->await();
    }

    public function testARequestThatWaitsInTheKernelIsAnswered(): void
    {
        $this->serveGated();
        $clients = array_map(fn(): RawClient => $this->client(), range(1, 50));
        foreach ($clients as $client) {
            // before the server's next turn
            stream_socket_sendto($client->stream(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        $stopped = $this->beginStop();

        foreach ($clients as $client) {
            self::assertSame('answered', $client->response()->body);
            $client->close();
        }
        $stopped->await();
    }

    public function testAnIdleConnectionMayStillSendARequestForAShortTime(): void
    {
        $this->serveGated(new HttpServerOptions(idleGracePeriod: 5));
        $client = $this->client()->get('/');
        $client->response();
        $stopped = $this->beginStop();

        self::assertFalse($client->get('/')->response()->keepsConnection());
        $client->close();
        $stopped->await();
    }

    public function testIdleConnectionsEndAfterTheGrace(): void
    {
        $this->serveGated(new HttpServerOptions(idleGracePeriod: 0.1));
        $used = $this->client()->get('/');
        $used->response();
        $fresh = $this->client();
        delay(0.02);
        $begin = microtime(true);
        $this->server()->close();

        self::assertLessThan(3.0, microtime(true) - $begin, 'long before the other timeouts');
        self::assertTrue($used->isEnded());
        self::assertTrue($fresh->isEnded());
    }

    public function testAStreamedResponseIsCompletedBeforeItsConnectionEnds(): void
    {
        $this->serveGated(new HttpServerOptions(idleGracePeriod: 0.1));
        $client = $this->client()->get('/stream');
        $client->until("5\r\nbegin\r\n");
        $stopped = $this->beginStop();
        $this->gate->complete();
        $begin = microtime(true);

        self::assertSame("3\r\nend\r\n0\r\n\r\n", $client->rest());
        $stopped->await();
        self::assertLessThan(
            3.0,
            microtime(true) - $begin,
            'it said that it would keep the connection, but not for how long',
        );
    }

    public function testAConnectionWithAnIncompleteUnreadBodyEnds(): void
    {
        $this->serveGated(new HttpServerOptions(idleGracePeriod: 0.1));
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
        self::assertTrue($client->response()->keepsConnection());
        $stopped = $this->beginStop();
        $client->send('56789');

        self::assertTrue($client->isEnded());
        $stopped->await();
    }

    public function testRequestsAreEndedAtTheTimeout(): void
    {
        $thrown = null;
        $server = $this->serve(static function (ServerRequestInterface $request) use (&$thrown): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            try {
                delay(1_000, cancellation: $cancellation);
            } catch (CancelledException $thrown) {
            }

            return Response::text('too late');
        }, new HttpServerOptions(stopTimeout: 0.2));
        $client = $this->client()->get('/');
        Eventually::holds(static fn(): bool => $server->statistics()->inFlight === 1, 'it has begun');
        $server->close();

        self::assertSame(0, $server->statistics()->connections);
        self::assertSame(
            [['The server stopped with 1 unanswered request after 0.2 s'], 1],
            [$this->log()->messages(), $server->unanswered()],
        );
        $response = $client->response();
        self::assertSame(
            [503, 'close', [503 => 1], 0],
            [
                $response->status,
                $response->header('connection'),
                $server->statistics()->answeredRequests,
                $server->statistics()->abandonedRequests,
            ],
        );
        self::assertSame('', $client->rest());
        Eventually::holds(static function () use (&$thrown): bool {
            return $thrown !== null;
        }, 'the handler is cancelled');
        self::assertInstanceOf(CancelledException::class, $thrown);
        self::assertInstanceOf(ClientDisconnectedException::class, $thrown->getPrevious());
        self::assertSame('The server stopped', $thrown->getPrevious()->getMessage());
    }

    public function testAnEndedRequestIsAnsweredOnlyIfItsResponseHasNotStarted(): void
    {
        $this->serveGated(new HttpServerOptions(stopTimeout: 0.2));
        $begun = $this->client()->get('/stream');
        $begun->until("5\r\nbegin\r\n");
        $several = $this->client()->get('/')->get('/wait')->get('/');
        $reading = $this->client()->send("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
        $uploading = $this->client()->send(
            "POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" . str_repeat('x', 150_000),
        );
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 3, 'they have begun');
        $this->server()->close();

        self::assertSame('', $begun->rest());
        self::assertSame(
            [200, 503, ''],
            [$several->response()->status, $several->response()->status, $several->rest()],
        );
        self::assertSame([503, 503], [$reading->response()->status, $uploading->response()->status]);
        self::assertSame(4, $this->server()->unanswered());
        $this->gate->complete();
    }

    /** @return iterable<string, array{\Closure(RawClient): mixed}> after which the server does not watch the client */
    public static function unwatchedClients(): iterable
    {
        yield 'its side has ended' => [static fn(RawClient $client) => $client->end()];
        yield 'many bytes are unread' => [static fn(RawClient $client) => $client->send(str_repeat('x', 200_000))];
    }

    /** @param \Closure(RawClient): mixed $makeUnwatched */
    #[DataProvider('unwatchedClients')]
    public function testTheTimeoutKeepsTheEventLoopRunning(\Closure $makeUnwatched): void
    {
        $this->serveGated(new HttpServerOptions(stopTimeout: 0.2));
        $client = $this->client()->get('/wait');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler has begun');
        $makeUnwatched($client);
        $this->server()->close();

        self::assertSame([503, ''], [$client->response()->status, $client->rest()]);
        $this->gate->complete();
    }

    public function testAStopWithoutATimeoutKeepsTheEventLoopRunning(): void
    {
        $this->serveGated(new HttpServerOptions(stopTimeout: \INF, handlerTimeout: 0.2));
        $client = $this->client()->get('/wait');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler has begun');
        $client->end();
        $this->server()->close();

        self::assertSame([503, ''], [$client->response()->status, $client->rest()]);
        $this->gate->complete();
    }

    #[RequiresPhpExtension('sockets')]
    public function testALoggerThatSuspendsDoesNotDelayTheEndAtTheTimeout(): void
    {
        $logger = new SuspendingLogger();
        $this->serveGated(new HttpServerOptions(stopTimeout: 0.2), $logger);
        $leaving = $this->client()->get('/wait');
        $client = $this->client()->get('/wait');
        $stopped = $this->beginStop(inFlight: 2);
        Eventually::holds(static fn(): bool => $logger->messages !== [], 'the timeout is logged');
        $leaving->reset();

        $stopped->await(new TimeoutCancellation(5));
        self::assertSame([503, ''], [$client->response()->status, $client->rest()]);
        self::assertSame(['The server stopped with 2 unanswered requests after 0.2 s'], $logger->messages);
        $logger->release();
        $this->gate->complete();
    }

    public function testConnectionsWithoutARequestAreClosedWithoutAResponse(): void
    {
        $this->serveGated(new HttpServerOptions(idleGracePeriod: 5, stopTimeout: 0.1));
        $this->client()->get('/')->response();
        $this->server()->close();

        self::assertSame([[], 0], [$this->log()->messages(), $this->server()->unanswered()]);
    }

    public function testBackgroundWorkIsCompleted(): void
    {
        $this->serveBackgroundWork();
        self::assertSame('answered', $this->client()->get('/')->response()->body);
        $stopped = $this->beginStop();
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'no connection is left');
        delay(0);
        self::assertFalse($stopped->isComplete(), 'work is left');
        $this->gate->complete();
        $stopped->await();

        self::assertSame([0, []], [BackgroundWork::running(), $this->log()->messages()]);
    }

    #[TestWith([1, '1 unfinished function'])]
    #[TestWith([2, '2 unfinished functions'])]
    public function testBackgroundWorkIsGivenUpAtTheTimeout(int $functions, string $text): void
    {
        $this->serveBackgroundWork($functions, new HttpServerOptions(stopTimeout: 0.2));
        $this->client()->get('/')->response();
        $this->server()->close();

        self::assertSame($functions, BackgroundWork::running());
        self::assertSame(
            ["The server stopped with {$text} of BackgroundWork after 0.2 s"],
            $this->log()->messages(),
        );
        $this->gate->complete();
        BackgroundWork::awaitEnd();
    }

    public function testKillingDoesNotWaitForBackgroundWork(): void
    {
        $this->serveBackgroundWork();
        $this->client()->get('/')->response();
        $stopped = $this->beginStop();
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'no connection is left');
        $this->server()->kill();
        $stopped->await();

        self::assertSame(1, BackgroundWork::running());
        $this->gate->complete();
        BackgroundWork::awaitEnd();
    }

    public function testAServerThatHasEndedDoesNotWaitForLaterBackgroundWork(): void
    {
        $this->serveGated(new HttpServerOptions(stopTimeout: 0.2));
        $this->server()->close();
        BackgroundWork::start($this->gate->getFuture()->await(...));
        $this->server()->close();
        $this->server()->awaitEnd();

        self::assertSame([1, []], [BackgroundWork::running(), $this->log()->messages()]);
        $this->gate->complete();
        BackgroundWork::awaitEnd();
    }

    public function testBackgroundWorkOfAReplacedEventLoopIsNotAwaited(): void
    {
        self::assertSame([1, 0, 1], Host::call(self::class . '::replaceTheLoop', timeout: 20));
    }

    /** @return list<int> numbers of functions before the loop is replaced, then, and when the new loop has one */
    public static function replaceTheLoop(): array
    {
        BackgroundWork::start(static fn() => null);
        $numbers = [BackgroundWork::running()];
        EventLoop::setDriver((new DriverFactory())->create());
        $numbers[] = BackgroundWork::running();
        BackgroundWork::start(static fn() => null);
        $numbers[] = BackgroundWork::running();
        (new HttpServer(static fn(): ResponseInterface => Response::text('')))->close(); // waits for the new function

        return $numbers;
    }

    public function testBackgroundWorkOfAnEarlierEventLoopIsNotCountedWhenItReturns(): void
    {
        self::assertSame([0, 0], Host::call(self::class . '::returnToALoop', timeout: 20));
    }

    /** @return list<int> numbers of running and ended functions after the functions of a loop that is used again */
    public static function returnToALoop(): array
    {
        $loop = EventLoop::getDriver();
        BackgroundWork::start(static fn() => delay(0.01));
        EventLoop::defer($loop->stop(...));
        EventLoop::run();
        BackgroundWork::start(static fn() => null);
        EventLoop::setDriver((new DriverFactory())->create());
        BackgroundWork::running();
        EventLoop::setDriver($loop);
        BackgroundWork::running();
        EventLoop::run();

        return [BackgroundWork::running(), BackgroundWork::ended()];
    }

    public function testBackgroundWorkIsCountedPerEventLoop(): void
    {
        self::assertSame(
            [[2, 0], [1, 0, 0], [1, 0]],
            Host::call(self::class . '::replaceAndRestoreTheLoop', timeout: 20),
        );
    }

    /** @return list<list<int>> numbers of running and ended functions, and of notifications of the first loop */
    public static function replaceAndRestoreTheLoop(): array
    {
        [$first, $second] = [EventLoop::getDriver(), (new DriverFactory())->create()];
        [$gate, $otherGate, $notified] = [new DeferredFuture(), new DeferredFuture(), 0];
        BackgroundWork::start($gate->getFuture()->await(...));
        EventLoop::run();
        EventLoop::setDriver($second);
        BackgroundWork::running();
        EventLoop::setDriver($first);
        BackgroundWork::start($otherGate->getFuture()->await(...));
        BackgroundWork::onEnd($first, static function () use (&$notified): void {
            ++$notified;
        });
        EventLoop::run();
        $counts = [[BackgroundWork::running(), BackgroundWork::ended()]];
        $gate->complete();
        EventLoop::run();
        $counts[] = [BackgroundWork::running(), BackgroundWork::ended(), $notified];
        $otherGate->complete();
        EventLoop::run();
        $counts[] = [$notified, BackgroundWork::running()];

        return $counts;
    }

    public function testRequestsAndBackgroundWorkAtTheTimeoutAreOneLogEntry(): void
    {
        $logger = new SuspendingLogger();
        $gate = $this->gate->getFuture();
        $this->serve(static function () use ($gate): Response {
            BackgroundWork::start($gate->await(...));
            $gate->await();

            return Response::text('too late');
        }, new HttpServerOptions(stopTimeout: 0.2), logger: $logger);
        $this->client()->get('/');
        $this->beginStop(inFlight: 1)->await();

        self::assertSame(
            ['The server stopped with 1 unanswered request and 1 unfinished function of BackgroundWork after 0.2 s'],
            $logger->messages,
        );
        $logger->release();
        $this->gate->complete();
        BackgroundWork::awaitEnd();
    }

    public function testBackgroundWorkThatFailsHasEnded(): void
    {
        $failures = [];
        $handler = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler(static function (\Throwable $failure) use (&$failures): void {
            $failures[] = $failure->getMessage();
        });
        $this->serve(static function (): Response {
            BackgroundWork::start(static fn() => throw new \RuntimeException('The work failed'));

            return Response::text('answered');
        });
        self::assertSame('answered', $this->client()->get('/')->response()->body);
        $this->server()->close();
        EventLoop::setErrorHandler($handler);

        self::assertSame(['The work failed'], $failures);
    }

    public function testAHandOverDoesNotShortenTheTimeOfAHandler(): void
    {
        foreach ([60, \INF] as $handlerTimeout) {
            $this->gate = new DeferredFuture();
            $this->serveGated(new HttpServerOptions(handlerTimeout: $handlerTimeout, stopTimeout: 0.2));
            $idle = $this->client()->get('/');
            $idle->response();
            $client = $this->client()->get('/wait');
            Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'it has begun');
            [$leaving, $log] = [$this->server(), $this->log()];
            $left = Async::run(static fn() => $leaving->handOver(\INF));

            self::assertTrue($idle->isEnded());
            $this->serveGated(new HttpServerOptions(stopTimeout: 0.3));
            $givenUp = $this->client()->get('/wait');
            $this->beginStop(inFlight: 1)->await();
            self::assertSame(503, $givenUp->response()->status, 'a server that stops waits no longer');
            $this->gate->complete();
            self::assertSame('answered', $client->response()->body);
            $client->close();
            $left->await();
            self::assertSame([[], 0], [$log->messages(), $leaving->unanswered()]);
        }
    }

    public function testAHandOverEndsAResponseWithoutAnEnd(): void
    {
        $this->serveGated(new HttpServerOptions(handlerTimeout: 0.2, stopTimeout: 0.1));
        $client = $this->client()->get('/stream');
        $client->until("5\r\nbegin\r\n");
        $this->server()->handOver(0.1);

        self::assertSame(
            ['The server stopped with 1 unanswered request after 0.3 s'],
            $this->log()->messages(),
        );
        $this->gate->complete();
    }

    /** Covers each phase of a connection, and a handler that continues. */
    public function testKillingClosesConnectionsInAnyState(): void
    {
        $this->serveGated(new HttpServerOptions(blockWarning: 0));
        $clients = [
            'fresh' => $this->client(),
            'head' => $this->client()->send("GET / HTTP/1.1\r\nHo"),
            'handler' => $this->client()->get('/wait'),
            'body' => $this->client()->send("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234"),
            'chunked body' => $this->client()->send(
                "POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
            ),
            'stream' => $this->client()->get('/stream'),
            'writing' => $this->client()->get('/large'),
            'linger' => $this->client()->send("no request\r\n\r\n"),
            'pipeline' => $this->client()->get('/')->get('/wait')->get('/'),
        ];
        $idle = $this->client()->get('/');
        $idle->response();
        delay(0.05);
        $this->server()->kill();

        self::assertSame(
            [0, true],
            [$this->server()->statistics()->connections, $this->server()->statistics()->stopping],
        );
        foreach ($clients as $client) {
            $client->rest();
        }
        self::assertSame('', $idle->rest());
        $this->gate->complete();
        Eventually::holds(
            fn(): bool => $this->server()->statistics()->inFlight === 0,
            'the handlers come to their ends',
        );
        delay(0.02);
        self::assertSame([], $this->log()->all);
    }

    public function testStoppingTwiceHasNoFurtherEffect(): void
    {
        $this->serveGated();
        $client = $this->client()->get('/wait');
        $first = $this->beginStop(inFlight: 1);
        $second = Async::run($this->server()->close(...));
        $this->gate->complete();
        $client->response();
        $client->close();

        $first->await();
        $second->await();
        $this->server()->close();
        $this->server()->kill();
        self::assertSame(0, $this->server()->statistics()->connections);
    }

    public function testAStoppedServerCanNotBeStartedAgain(): void
    {
        $this->serveGated();
        $this->server()->close();

        $this->expectException(ServerClosedException::class);
        $this->server()->start('127.0.0.1:0');
    }

    #[RequiresPhpExtension('pcntl')]
    public function testWhereCloseCanNotWaitItClosesTheServerAndThrows(): void
    {
        $this->serveGated(new HttpServerOptions(stopTimeout: 0.2));
        $client = $this->client()->get('/wait');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler has begun');
        $thrown = Async::inSignalHandler($this->server()->close(...));

        self::assertInstanceOf(CannotWaitException::class, $thrown);
        self::assertTrue($this->server()->statistics()->stopping);
        self::assertSame(503, $client->response()->status, 'the stop timeout remains');
        $this->gate->complete();
    }

    public function testListenReturnsWhenTheServerIsStopped(): void
    {
        $server = $this->servers[] = new HttpServer(static fn(): Response => Response::text(''));
        $listening = Async::run(static fn() => $server->listen('127.0.0.1:0'));
        delay(0.01);
        self::assertFalse($listening->isComplete());
        $server->close();
        $listening->await();

        $server = $this->servers[] = new HttpServer(static fn(): Response => Response::text(''));
        $listening = Async::run(static fn() => $server->listen('127.0.0.1:0'));
        delay(0.01);
        $server->kill();
        $listening->await();
        self::assertTrue($server->statistics()->stopping);
    }

    private function serveGated(?HttpServerOptions $options = null, ?LoggerInterface $logger = null): void
    {
        $gate = $this->gate->getFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            match ($request->getRequestTarget()) {
                '/wait' => $gate->await(),
                '/read' => $request->getBody()->getContents(),
                default => null,
            };

            return match ($request->getRequestTarget()) {
                '/stream' => Response::stream(self::pieces($gate)),
                '/large' => Response::text(str_repeat('x', 50_000_000)),
                default => Response::text('answered'),
            };
        }, $options, logger: $logger);
    }

    /**
     * @param Future<null> $gate
     *
     * @return \Generator<string>
     */
    private static function pieces(Future $gate): \Generator
    {
        yield 'begin';
        $gate->await();
        yield 'end';
    }

    private function serveBackgroundWork(int $functions = 1, ?HttpServerOptions $options = null): void
    {
        $gate = $this->gate->getFuture();
        $this->serve(static function () use ($functions, $gate): Response {
            for ($started = 0; $started < $functions; ++$started) {
                BackgroundWork::start($gate->await(...));
            }

            return Response::text('answered');
        }, $options);
    }

    /** @return Future<void> complete when the server has stopped; it is already stopping when this method returns */
    private function beginStop(int $inFlight = 0): Future
    {
        Eventually::holds(
            fn(): bool => $this->server()->statistics()->inFlight === $inFlight,
            'the handlers have begun',
        );
        $stopped = Async::run($this->server()->close(...));
        Eventually::holds(fn(): bool => $this->server()->statistics()->stopping, 'it stops');

        return $stopped;
    }
}
