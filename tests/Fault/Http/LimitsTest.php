<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Amp\Cancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\SuspendingLogger;

use function Amp\delay;

/** Clients and handlers that exceed limits of bytes, time and connections. */
final class LimitsTest extends HttpServerTestCase
{
    private const MIB = 1_048_576;

    /** @return iterable<string, array{int, string}> */
    public static function tooMuch(): iterable
    {
        yield 'a head' => [431, "GET / HTTP/1.1\r\nHost: a\r\nX: " . str_repeat('x', 2_000)];
        yield 'header lines' => [431, "GET / HTTP/1.1\r\nHost: a\r\n" . str_repeat("X: y\r\n", 20)];
        yield 'a target' => [414, 'GET /' . str_repeat('x', 500)];
        yield 'a line without an end' => [414, str_repeat('x', 3_000)];
    }

    #[DataProvider('tooMuch')]
    public function testWhatExceedsALimitIsRefusedBeforeItIsComplete(int $status, string $bytes): void
    {
        $options = new HttpServerOptions(maxTargetBytes: 400, maxHeadBytes: 1_500, maxHeaderFields: 20);
        $this->serve(self::answer(...), $options);
        $client = $this->client()->get('/')->send($bytes);

        self::assertSame(200, $client->response()->status);
        $response = $client->response();
        self::assertSame([$status, 'close'], [$response->status, $response->header('connection')]);
        self::assertTrue($client->isEnded());
        self::assertSame([$status => 1], $this->server()->statistics()->refusedRequests);
    }

    public function testAHeadThatArrivesAByteAtATimeTimesOut(): void
    {
        $this->serve(self::answer(...), new HttpServerOptions(headTimeout: 0.15));
        $client = $this->client();

        self::assertLessThan(500, $this->trickle($client, 'GET / HTTP/1.1' . "\r\nX: " . str_repeat('x', 480)));
        $response = $client->response();
        self::assertSame([408, 'close'], [$response->status, $response->header('connection')]);
        self::assertTrue($client->isEnded());
    }

    /** Each line is quick, but all of them together are too slow. */
    public function testAHeadThatArrivesALineAtATimeTimesOut(): void
    {
        $this->serve(self::answer(...), new HttpServerOptions(headTimeout: 0.15));
        $client = $this->client()->send("GET / HTTP/1.1\r\n");

        self::assertLessThan(540, $this->trickle($client, str_repeat("X: y\r\n", 90), 6));
        self::assertSame(408, $client->response()->status);
        self::assertTrue($client->isEnded());
    }

    public function testTheNextHeadOnAKeptConnectionHasTheSameTimeout(): void
    {
        $this->serve(self::answer(...), new HttpServerOptions(headTimeout: 0.15));
        $client = $this->client()->get('/');
        $client->response();
        self::assertSame(408, $this->client()->send('G')->response()->status, 'a head may not take so long');
        $client->get('/');
        self::assertSame(200, $client->response()->status);
        $client->send('G');

        self::assertSame(408, $client->response()->status);
    }

    public function testAConnectionWithoutBytesIsClosedWithoutAResponse(): void
    {
        $this->serve(self::answer(...), new HttpServerOptions(headTimeout: 0.2));

        self::assertSame('', $this->client()->rest());
        self::assertSame([], $this->server()->statistics()->refusedRequests);
    }

    public function testAnIdleConnectionIsClosed(): void
    {
        $this->serve(self::answer(...), new HttpServerOptions(idleTimeout: 0.2));
        $client = $this->client()->get('/');

        self::assertTrue($client->response()->keepsConnection());
        self::assertSame('', $client->rest());
    }

    public function testABodyThatArrivesTooSlowlyTimesOut(): void
    {
        $this->serve(self::answer(...), new HttpServerOptions(minBodyRate: 1_000, rateWindow: 0.15));
        $client = $this->client()->send("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");

        self::assertLessThan(999, $this->trickle($client, str_repeat('x', 999)));
        $response = $client->response();
        self::assertSame(
            [408, "The body arrived too slowly\n", 'close'],
            [$response->status, $response->body, $response->header('connection')],
        );
        self::assertTrue($client->isEnded());
    }

    public function testABodyThatArrivesTooSlowlyTimesOutDuringTheResponse(): void
    {
        $failure = null;
        $pieces = static function (ServerRequestInterface $request) use (&$failure): \Generator {
            $reading = Async::run(static fn(): string => $request->getBody()->getContents());
            while (!$reading->isComplete()) {
                yield '.';
                delay(0.02);
            }
            try {
                $reading->await();
            } catch (HttpException $failure) {
            }
        };
        $handler = static fn(ServerRequestInterface $request): Response => Response::stream($pieces($request));
        $this->serve($handler, new HttpServerOptions(minBodyRate: 1_000, rateWindow: 0.15));

        $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nab")->response();
        self::assertInstanceOf(HttpException::class, $failure);
        self::assertSame(408, $failure->status);
    }

    public function testABodyThatIsFastEnoughHasNoTimeout(): void
    {
        $options = new HttpServerOptions(handlerTimeout: 0.2, minBodyRate: 1_000, rateWindow: 0.2);
        $this->serve(self::answer(...), $options);
        $client = $this->client()->send("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 150000\r\n\r\n");
        $this->trickle($client, str_repeat('x', 150_000), 5_000);

        self::assertSame(
            '150000',
            $client->response()->body,
            'the time in which the client is waited for is not the handler\'s',
        );
    }

    public function testTheRestOfAnUnreadBodyIsNotAwaitedForever(): void
    {
        $this->serve(self::answer(...), new HttpServerOptions(minBodyRate: 1_000, rateWindow: 0.15));
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n");
        self::assertTrue($client->response()->keepsConnection());

        self::assertLessThan(500, $this->trickle($client, str_repeat('x', 500)), 'it was left in between');
        self::assertSame('', $client->rest());
        self::assertSame(0, $this->server()->statistics()->connections);
    }

    public function testAClientThatNeverReadsTimesOut(): void
    {
        $left = null;
        $pieces = static function () use (&$left): \Generator {
            try {
                for ($left = false; ;) {
                    yield str_repeat('x', 100_000);
                }
            } finally {
                $left = true;
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()), new HttpServerOptions(writeTimeout: 0.15));
        $before = memory_get_usage();
        $client = $this->client()->get('/');

        Eventually::holds(function () use (&$left): bool {
            return $left === true;
        }, 'the generator is let go');
        self::assertLessThan(4 * self::MIB, memory_get_usage() - $before);
        self::assertSame(0, $this->server()->statistics()->connections);
        unset($client);
    }

    public function testAClientThatNeverReadsACompleteResponseTimesOut(): void
    {
        $options = new HttpServerOptions(writeTimeout: 0.15);
        $this->serve(static fn(): Response => Response::text(str_repeat('x', 20 * self::MIB)), $options);
        $before = memory_get_usage();
        $this->client()->get('/');

        Eventually::holds(
            fn(): bool
                => $this->server()->statistics()->acceptedConnections === 1
                    && $this->server()->statistics()->connections === 0,
            'it is given up',
        );
        self::assertLessThan(4 * self::MIB, memory_get_usage() - $before, 'and what it was to get is gone');
    }

    public function testASlowReaderGetsTheWholeResponse(): void
    {
        $this->serve(
            static fn(): Response => Response::text(str_repeat('x', 20 * self::MIB)),
            new HttpServerOptions(writeTimeout: 0.4),
        );
        $client = $this->client()->get('/');
        $client->until("\r\n\r\n");

        for ($i = 0; $i < 20; ++$i) {
            self::assertSame(self::MIB, \strlen($client->bytes(self::MIB)));
            delay(0.05);
        }
    }

    public function testASlowReaderThatTheKernelDoesNotReportGetsEverything(): void
    {
        $this->serve(
            static fn(): Response => Response::text(str_repeat('x', 8 * self::MIB)),
            new HttpServerOptions(writeTimeout: 0.2),
        );
        $client = $this->client()->get('/');
        $client->until("\r\n\r\n");

        for ($i = 0; $i < 40; ++$i) {
            $client->bytes(20_000); // many windows pass before a third of the buffer is free
            delay(0.03);
        }
        self::assertSame(1, $this->server()->statistics()->connections);
        self::assertSame(8 * self::MIB - 800_000, \strlen($client->bytes(8 * self::MIB - 800_000)));
    }

    public function testAClientThatSendsButNeverReadsTimesOut(): void
    {
        $options = new HttpServerOptions(writeTimeout: 0.15);
        $this->serve(static fn(): Response => Response::text(str_repeat('x', 20 * self::MIB)), $options);
        $client = $this->client()->get('/');
        $sent = 0;

        while ($sent < 120 && ($sent === 0 || $this->server()->statistics()->connections === 1)) {
            $client->send("GET /{$sent} HTTP/1.1\r\nHost: a\r\nX: " . str_repeat('x', 100) . "\r\n\r\n");
            ++$sent;
            delay(0.05);
        }
        self::assertLessThan(120, $sent, 'it was left in between');
    }

    public function testARequestIsAnsweredWhenItsHandlerTakesTooLong(): void
    {
        $cancelled = null;
        $handled = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$cancelled, &$handled): Response {
            $handled[] = $request->getRequestTarget();
            if ($request->getRequestTarget() === '/slow') {
                $cancellation = $request->getAttribute(Cancellation::class);
                \assert($cancellation instanceof Cancellation);
                delay(0.5);
                $cancelled = $cancellation->isRequested();
            }

            return Response::text('answer');
        }, new HttpServerOptions(handlerTimeout: 0.2));
        $client = $this->client()->get('/')->get('/slow')->get('/after');

        self::assertSame(200, $client->response()->status);
        $response = $client->response();
        self::assertSame([503, 'close'], [$response->status, $response->header('connection')]);
        self::assertSame('', $client->rest(), 'neither a late answer nor one to what came after');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 0, 'it has ended');
        self::assertTrue($cancelled);
        self::assertSame(['/', '/slow'], $handled);
        $statistics = $this->server()->statistics();
        self::assertSame(
            [[200 => 1, 503 => 1], [], 0],
            [$statistics->answeredRequests, $statistics->refusedRequests, $statistics->abandonedRequests],
        );
        self::assertSame(['The handler of {method} {target} did not answer within 0.2 s'], $this->log()->messages());
    }

    public function testALoggerThatSuspendsLetsNoLaterResponseReplaceThatOfALateHandler(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $logger = new SuspendingLogger();
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $request->getRequestTarget() === '/slow' ? $gate->getFuture()->await() : null;

            return Response::text('answer');
        }, new HttpServerOptions(handlerTimeout: 0.2), logger: $logger);
        $client = $this->client()->get('/slow')->get('/after');
        Eventually::holds(static fn(): bool => $logger->messages !== [], 'the timeout is logged');
        $gate->complete();

        self::assertSame(503, $client->response()->status);
        $logger->release();
        self::assertSame('', $client->rest());
    }

    public function testALoggerThatSuspendsDelaysNoOtherDeadline(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $logger = new SuspendingLogger();
        $this->serve(static function () use ($gate): Response {
            $gate->getFuture()->await();

            return Response::text('unused');
        }, new HttpServerOptions(handlerTimeout: 0.2), logger: $logger);
        $this->client()->get('/');
        $this->client()->get('/');

        // After 2 s, the end of the first connection would check all deadlines again.
        Eventually::holds(
            fn(): bool => $this->server()->statistics()->answeredRequests === [503 => 2],
            'both are answered',
            1.5,
        );
        $gate->complete();
        $logger->release();
    }

    public function testAHandlerThatEndsAtItsDeadlineIsNotAnError(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            delay(1_000, cancellation: $cancellation);

            return Response::text('never');
        }, new HttpServerOptions(handlerTimeout: 0.2));
        $client = $this->client()->get('/');

        self::assertSame(503, $client->response()->status);
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 0, 'it has ended');
        self::assertCount(1, $this->log()->all, 'only the deadline is logged');
    }

    public function testARequestIsAnsweredWhenItsHandlerIsNeverResumed(): void
    {
        $this->serve(static function (): Response {
            EventLoop::getSuspension()->suspend();

            return Response::text('never');
        }, new HttpServerOptions(handlerTimeout: 0.2));
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'it has begun');
        gc_collect_cycles(); // a fiber whose client is waiting must survive this
        self::assertSame(1, $this->server()->statistics()->inFlight);

        self::assertSame(503, $client->response()->status);
        gc_collect_cycles();
        self::assertSame(0, $this->server()->statistics()->inFlight);
    }

    public function testRequestsWhoseBodiesAreNeverReadAreForgotten(): void
    {
        $requests = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$requests): Response {
            $exchange = $request->getAttribute(RequestExchange::class);
            \assert($exchange instanceof RequestExchange);
            $requests[] = \WeakReference::create($exchange);

            return new Response(body: new SuspendedStream());
        }, new HttpServerOptions(handlerTimeout: 0.1));
        for ($i = 0; $i < 3; ++$i) {
            self::assertSame(503, $this->client()->get('/')->response()->status);
            gc_collect_cycles();
        }
        $kept = array_filter($requests, static fn(\WeakReference $request): bool => $request->get() !== null);

        self::assertLessThan(2, \count($kept), 'the last one may be kept');
    }

    public function testReadingTheBodyGivesAHandlerNoMoreTime(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            for ($i = 0; $i < 20; ++$i) {
                $request->getBody()->read(1);
                delay(0.05);
            }

            return Response::text('answer');
        }, new HttpServerOptions(handlerTimeout: 0.25));
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n");
        $sent = Async::run(fn() => $this->trickle($client, str_repeat('x', 20), pause: 0.055));

        self::assertSame(503, $client->response()->status);
        $sent->await();
        self::assertCount(1, $this->log()->all, 'the cancellation is not logged');
    }

    public function testRequestsAboveTheLimitGetRetryAfter(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $request->getRequestTarget() === '/wait' ? $gate->getFuture()->await() : null;

            return Response::text('answer');
        }, new HttpServerOptions(maxInFlight: 2));
        $waiting = [$this->client()->get('/wait'), $this->client()->get('/wait')];
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 2, 'both wait');
        $client = $this->client()->get('/');

        $response = $client->response();
        self::assertSame(
            [503, '1', true],
            [$response->status, $response->header('retry-after'), $response->keepsConnection()],
        );
        self::assertSame(2, $this->server()->statistics()->inFlight);
        $gate->complete();
        array_map(static fn(RawClient $client) => self::assertSame(200, $client->response()->status), $waiting);
        self::assertSame(200, $client->get('/')->response()->status);
        self::assertSame(0, $this->server()->statistics()->inFlight);
    }

    public function testAClientThatStaysAfterARefusalIsDisconnected(): void
    {
        $this->serve(self::answer(...));
        $client = $this->client()->send("no request\r\n\r\n");
        self::assertSame(400, $client->response()->status);
        self::assertTrue($client->isEnded(), 'the server has ended its side');

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'it is not waited for');
    }

    public function testAClientCanSendAfterARefusal(): void
    {
        $this->serve(self::answer(...));
        $client = $this->client()->send("no request\r\n\r\n");
        self::assertSame(400, $client->response()->status);
        $client->send(str_repeat('x', 50 * self::MIB));
        self::assertSame('', $client->warning(), 'a reset could make the client lose the response');
        $client->close();

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'it is closed');
    }

    /**
     * Sends $size bytes at a time, until all are sent, or the server has answered or closed the connection.
     *
     * @return int number of bytes sent
     */
    private function trickle(RawClient $client, string $bytes, int $size = 1, float $pause = 0.02): int
    {
        $sent = 0;
        foreach (str_split($bytes, max(1, $size)) as $part) {
            if (@stream_socket_recvfrom($client->stream(), 1, \STREAM_PEEK) !== false) {
                break;
            }
            $client->send($part);
            $sent += \strlen($part);
            delay($pause);
        }

        return $sent;
    }

    private static function answer(ServerRequestInterface $request): Response
    {
        return Response::text(
            $request->getRequestTarget() === '/read' ? (string) \strlen((string) $request->getBody()) : 'answer',
        );
    }
}
