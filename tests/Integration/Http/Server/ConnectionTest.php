<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\FiberLocal;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Processes;

use function Amp\delay;

/** Lifetime of connections, and the order of responses. */
final class ConnectionTest extends HttpServerTestCase
{
    public function testAConnectionServesOneRequestAfterTheOther(): void
    {
        $this->serve(self::path(...));
        $client = $this->client();

        foreach (['/a', '/b', '/c'] as $target) {
            $response = $client->get($target)->response();
            self::assertSame([200, $target, true], [$response->status, $response->body, $response->keepsConnection()]);
            self::assertNull($response->header('connection'), 'HTTP/1.1 keeps it without a word');
        }
        self::assertSame(1, $this->server()->statistics()->acceptedConnections);
    }

    public function testAConnectionIsClosedIfTheClientRequestsIt(): void
    {
        $this->serve(self::path(...));
        $client = $this->client()->get('/a', "Connection: close\r\n");

        self::assertSame('close', $client->response()->header('connection'));
        self::assertTrue($client->isEnded());
    }

    public function testAProgramThatAHandlerHasStartedDoesNotKeepAConnectionOpen(): void
    {
        $program = null;
        $this->serve(static function () use (&$program): Response {
            $program = proc_open(['sleep', '20'], [], $pipes);

            return Response::text('started');
        });
        $client = $this->client()->get('/', "Connection: close\r\n");

        try {
            self::assertSame('started', $client->response()->body);
            self::assertTrue($client->isEnded());
        } finally {
            self::assertIsResource($program);
            proc_terminate($program, \SIGKILL);
            proc_close($program);
        }
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramThatAHandlerHasStartedDoesNotInheritConnections(): void
    {
        $this->serve(static fn(): Response => Response::text(implode(' ', Processes::inheritedSockets())));
        $idle = $this->client()->get('/');
        $idle->response();
        $client = $this->client();
        $ofClients = implode(' ', Processes::inheritedSockets());

        self::assertSame($ofClients, $client->get('/')->response()->body);
    }

    public function testAnHttp10ClientGetsTheConnectionClosed(): void
    {
        $this->serve(self::path(...));
        $client = $this->client()->send("GET /a HTTP/1.0\r\n\r\n");

        $response = $client->response();
        self::assertSame(
            ['/a', '2', 'close'],
            [$response->body, $response->header('content-length'), $response->header('connection')],
        );
        self::assertTrue($client->isEnded());
    }

    public function testAnHttp10ClientCanKeepTheConnection(): void
    {
        $this->serve(self::path(...));
        $client = $this->client();

        foreach (['/a', '/b'] as $target) {
            $response = $client->send("GET {$target} HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")->response();
            self::assertSame([$target, 'keep-alive'], [$response->body, $response->header('connection')]);
        }
    }

    public function testAHandlerCanCloseTheConnection(): void
    {
        $this->serve(static fn(): Response => Response::text('bye', headers: ['Connection' => 'close']));
        $client = $this->client()->get('/');

        self::assertSame('close', $client->response()->header('connection'));
        self::assertTrue($client->isEnded());
    }

    public function testAHandlerCanNotKeepAConnectionThatTheClientCloses(): void
    {
        $this->serve(
            static fn(): Response
                => Response::text('bye', headers: ['Connection' => 'keep-alive', 'Keep-Alive' => 'timeout=5']),
        );
        $client = $this->client()->get('/', "Connection: close\r\n");

        $response = $client->response();
        self::assertSame(['close', null], [$response->header('connection'), $response->header('keep-alive')]);
        self::assertTrue($client->isEnded());
    }

    public function testPipelinedRequestsAreAnsweredInTheirOrder(): void
    {
        $this->serve(self::path(...));
        $client = $this->client()->send(implode(
            '',
            array_map(static fn(int $i): string => "GET /{$i} HTTP/1.1\r\nHost: a\r\n\r\n", range(1, 100)),
        ));

        foreach (range(1, 100) as $i) {
            self::assertSame("/{$i}", $client->response()->body);
        }
    }

    public function testPipelinedRequestsAreAnsweredInOrderWhenAHandlerSuspends(): void
    {
        $begun = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$begun): Response {
            $begun[] = $request->getRequestTarget();
            delay($request->getRequestTarget() === '/slow' ? 0.05 : 0);

            return self::path($request);
        });
        $client = $this->client()->get('/a')->get('/slow')->get('/b');

        self::assertSame(
            ['/a', '/slow', '/b'],
            [$client->response()->body, $client->response()->body, $client->response()->body],
        );
        self::assertSame(['/a', '/slow', '/b'], $begun, 'each begins when the one before is answered');
    }

    public function testCompleteResponsesAreSentWhileALaterHandlerIsSuspended(): void
    {
        $held = null;
        $this->serve(static function (ServerRequestInterface $request) use (&$held): Response {
            if ($request->getRequestTarget() === '/held') {
                $held = EventLoop::getSuspension();
                $held->suspend();
            }

            return self::path($request);
        });
        $client = $this->client()->send(
            "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\nGET /held HTTP/1.1\r\nHost: a\r\n\r\n",
        );

        self::assertSame(['/a', '/b'], [$client->response()->body, $client->response()->body]);
        self::assertNotNull($held);
        $held->resume();
        self::assertSame('/held', $client->response()->body);
    }

    public function testRequestsThatArriveDuringASlowWriteAreAnswered(): void
    {
        $body = str_repeat('x', 60_000);
        $served = 0;
        $this->serve(static function () use ($body, &$served): Response {
            ++$served;

            return Response::text($body);
        });
        $client = $this->clients[] = RawClient::connect($this->address, ['socket' => ['tcp_nodelay' => true]]);
        $sent = 0;
        do {
            $client->get('/');
            ++$sent;
            delay(0.005);
        } while ($served === $sent); // another request is not started, because the previous response can't be sent
        $client->get('/');

        foreach (range(1, $sent + 1) as $i) {
            self::assertSame(60_000, \strlen($client->response()->body), "answer {$i}");
        }
    }

    public function testAClientThatPipelinesDoesNotBlockOtherClients(): void
    {
        $handled = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$handled): Response {
            $handled[] = $request->getRequestTarget();
            for ($end = hrtime(true) + 2_000_000; hrtime(true) < $end;);

            return Response::text($request->getRequestTarget());
        });
        [$greedy, $modest] = [$this->client()->get('/first'), $this->client()->get('/first')];
        $greedy->response();
        $modest->response();
        $greedy->send(str_repeat("GET /greedy HTTP/1.1\r\nHost: a\r\n\r\n", 60));
        $modest->get('/modest')->response();

        self::assertLessThan(30, array_search('/modest', $handled, true));
        $greedy->send("GET /last HTTP/1.1\r\nHost: a\r\n\r\n");
        array_map(static fn(): string => $greedy->response()->body, range(1, 60));
        self::assertSame('/last', $greedy->response()->body);
    }

    /** A connection may be closed while it lets others have their turn. */
    public function testAClientThatPipelinesMayDisconnectWhileOthersAreServed(): void
    {
        $handled = 0;
        $this->serve(static function () use (&$handled): Response {
            ++$handled;
            for ($end = hrtime(true) + 2_000_000; hrtime(true) < $end;);

            return Response::text('');
        });
        $client = $this->client()->send(str_repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 90));
        $client->response();
        $client->reset();

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection has ended');
        self::assertLessThan(90, $handled);
    }

    /** The server notices the reset only when it sends the first response. */
    public function testNoPipelinedRequestIsHandledOnAConnectionThatHasFailed(): void
    {
        /** @var RawClient|null $client */
        $client = null;
        $handled = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$client, &$handled): Response {
            $handled[] = $request->getRequestTarget();
            \count($handled) === 1 ? $client?->reset() : null;

            return Response::text(str_repeat('x', 100_000));
        });
        $client = $this->client();
        $client->send("GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n");

        Eventually::holds(static function () use (&$handled): bool {
            return $handled !== [];
        }, 'the first request is handled');
        self::assertSame([['/first'], 0], [$handled, $this->server()->statistics()->connections]);
    }

    public function testPipelinedRequestsShareNoFiberLocalValues(): void
    {
        /** @var FiberLocal<string> $last */
        $last = new FiberLocal(static fn(): string => 'nothing');
        $this->serve(static function (ServerRequestInterface $request) use ($last): Response {
            $found = $last->get();
            $last->set($request->getRequestTarget());

            return Response::text($found);
        });
        $client = $this->client()->send(str_repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 2));

        self::assertSame(['nothing', 'nothing'], [$client->response()->body, $client->response()->body]);
    }

    public function testARequestMayArriveInAnyPieces(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::text($request->getHeaderLine('X') . $request->getBody()),
        );
        $client = $this->client();

        foreach (str_split(
            "POST /a HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 3\r\n\r\nabc"
                . "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n",
        ) as $byte) {
            $client->send($byte);
            delay(0);
        }
        self::assertSame(['yabc', 'de'], [$client->response()->body, $client->response()->body]);
    }

    public function testSuspendedHandlersWaitConcurrently(): void
    {
        $most = 0;
        $this->serve(function () use (&$most): Response {
            $most = max($most, $this->server()->statistics()->inFlight);
            delay(0.2);

            return Response::text('waited');
        });
        $clients = array_map(fn(): RawClient => $this->client()->get('/'), range(1, 10));
        $begin = microtime(true);

        self::assertSame(
            array_fill(0, 10, 'waited'),
            array_map(static fn(RawClient $client): string => $client->response()->body, $clients),
        );
        self::assertLessThan(1.0, microtime(true) - $begin, 'ten times 0.2 s, one after the other, would take 2 s');
    }

    public function testASuspendedHandlerDelaysNoOtherConnection(): void
    {
        $held = null;
        $this->serve(static function (ServerRequestInterface $request) use (&$held): Response {
            if ($request->getRequestTarget() === '/held') {
                $held = EventLoop::getSuspension();
                $held->suspend();
            }

            return self::path($request);
        });
        $waiting = $this->client()->get('/held');
        foreach (range(1, 20) as $i) {
            self::assertSame("/{$i}", $this->client()->get("/{$i}")->response()->body);
        }
        self::assertSame(1, $this->server()->statistics()->inFlight);
        self::assertNotNull($held);
        $held->resume();
        self::assertSame('/held', $waiting->response()->body);
    }

    public function testTheLastResponseOfAConnectionAnnouncesTheEnd(): void
    {
        $this->serve(self::path(...), new HttpServerOptions(maxRequests: 3));
        $client = $this->client()->get('/1')->get('/2')->get('/3')->get('/4');

        self::assertTrue($client->response()->keepsConnection());
        self::assertTrue($client->response()->keepsConnection());
        self::assertFalse($client->response()->keepsConnection());
        self::assertTrue($client->isEnded(), 'the fourth is for another connection');
    }

    public function testGarbageAfterARequestDoesNotHarmItsResponse(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            delay(0.02);

            return self::path($request);
        });
        $client = $this->client()->get('/a')->get('/b')->send("\0\r\n\r\n");

        self::assertSame(['/a', '/b'], [$client->response()->body, $client->response()->body]);
        self::assertSame(400, $client->response()->status);
        self::assertTrue($client->isEnded());
    }

    public function testALongResponseDoesNotCountAsIdleTime(): void
    {
        $this->serve(static fn(): Response => Response::stream((static function (): \Generator {
            yield 'a';
            delay(0.5);
            yield 'b';
        })()), new HttpServerOptions(headTimeout: 0.1, idleTimeout: 0.4));
        $client = $this->client();

        self::assertSame('ab', $client->get('/')->response()->body);
        self::assertSame(408, $this->client()->send('G')->response()->status, 'connections that are late were ended');
        self::assertSame('ab', $client->get('/')->response()->body);
    }

    public function testAClientMayContinueToSendAfterItsLastRequest(): void
    {
        $this->serve(self::path(...));
        $client = $this->client()->send(
            "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" . str_repeat('garbage', 30_000),
        );

        self::assertSame('/last', $client->response()->body, 'no reset has taken the answer away');
        self::assertTrue($client->isEnded());
        $client->close();
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is closed');
        self::assertSame([], $this->server()->statistics()->refusedRequests);
    }

    private static function path(ServerRequestInterface $request): Response
    {
        return Response::text($request->getRequestTarget());
    }
}
