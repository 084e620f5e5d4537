<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;

use function Amp\delay;

/**
 * Clients that leave, or end only their side, at any moment. Other clients are not affected, and no resources are kept.
 */
final class LeavingClientsTest extends HttpServerTestCase
{
    use OwnDirectory;

    private const MIB = 1_048_576;

    /** Number of responses being produced. */
    private int $streams = 0;

    /**
     * @return iterable<string, array{\Closure(RawClient): mixed, \Closure(RawClient): mixed}> what a client does before
     *         it leaves, and how it leaves
     */
    public static function departures(): iterable
    {
        $get = static fn(string $target): string => "GET {$target} HTTP/1.1\r\nHost: a\r\n\r\n";
        $post = static fn(string $target, string $fields = 'Content-Length: 1000'): string
            => "POST {$target} HTTP/1.1\r\nHost: a\r\n{$fields}\r\n\r\n";
        $phases = [
            'before it has sent anything' => static fn(RawClient $client) => null,
            'in the head' => static fn(RawClient $client) => $client->send("GET / HTTP/1.1\r\nHo"),
            'on an idle connection' => static fn(RawClient $client) => $client->send($get('/'))->response(),
            'in a body that is read' => static fn(RawClient $client) => $client->send($post('/read') . 'abc'),
            'in a chunk' => static fn(RawClient $client)
                => $client->send($post('/read', 'Transfer-Encoding: chunked') . "10\r\nabc"),
            'in a body that is not read' => static fn(RawClient $client)
                => $client->send($post('/') . 'abc')->response(),
            'when it is to continue' => static fn(RawClient $client)
                => $client->send($post('/read', "Content-Length: 10\r\nExpect: 100-continue"))->response(),
            'while 100 Continue may still be sent' => static fn(RawClient $client)
                => $client->send($post('/stream-late', "Content-Length: 10\r\nExpect: 100-continue")),
            'in a large upload' => static fn(RawClient $client)
                => $client->sendConcurrently($post('/wait', 'Content-Length: 5000000') . str_repeat('x', 5_000_000)),
            'while the handler is suspended' => static fn(RawClient $client) => $client->send($get('/wait')),
            'while a handler is suspended, with more requests' => static fn(RawClient $client)
                => $client->send($get('/') . $get('/wait') . $get('/') . $get('/wait'))->response(),
            'with more requests than are read' => static fn(RawClient $client)
                => $client->send($get('/wait'))->sendConcurrently(str_repeat($get('/'), 10_000)),
            'in a streamed answer' => static fn(RawClient $client) => $client->send($get('/stream'))->until('piece'),
            'in a streamed answer that waits' => static fn(RawClient $client)
                => $client->send($get('/stream-wait'))->until('piece'),
            'in a large answer' => static fn(RawClient $client) => $client->send($get('/large'))->until("\r\n\r\n"),
            'without reading a large answer' => static fn(RawClient $client) => $client->send($get('/large')),
            'after it was refused' => static fn(RawClient $client) => $client->send("no request\r\n\r\n")->response(),
            'without reading why it was refused' => static fn(RawClient $client) => $client->send("no request\r\n\r\n"),
            'after the last answer' => static fn(RawClient $client)
                => $client->send("GET / HTTP/1.0\r\n\r\n")->response(),
        ];
        foreach ($phases as $name => $phase) {
            yield "a reset {$name}" => [$phase, static fn(RawClient $client) => $client->reset()];
            yield "an end {$name}" => [$phase, static fn(RawClient $client) => $client->close()];
        }
    }

    /**
     * @param \Closure(RawClient): mixed $begin
     * @param \Closure(RawClient): mixed $leave
     */
    #[DataProvider('departures')]
    #[RequiresPhpExtension('sockets')]
    public function testADisconnectHarmsNoOtherClient(\Closure $begin, \Closure $leave): void
    {
        $this->serveAll();
        $this->leave(fn(): RawClient => $this->client(), $begin, $leave);
    }

    /**
     * @param \Closure(RawClient): mixed $begin
     * @param \Closure(RawClient): mixed $leave
     */
    #[DataProvider('departures')]
    #[RequiresPhpExtension('sockets')]
    #[RequiresPhpExtension('openssl')]
    public function testADisconnectWithTlsHarmsNoOtherClient(\Closure $begin, \Closure $leave): void
    {
        $this->serveAll(secure: true);
        $this->leave(fn(): RawClient => $this->clients[] = RawClient::connectSecurely($this->address), $begin, $leave);
    }

    /** @return iterable<string, array{string}> */
    public static function handshakes(): iterable
    {
        yield 'nothing' => [''];
        yield 'a part of it' => ["\x16\x03\x01\x02\x00\x01\x00\x01"];
        yield 'another protocol' => ["SSH-2.0-OpenSSH\r\n"];
        yield 'garbage' => [str_repeat("\xff\x00", 500)];
    }

    #[DataProvider('handshakes')]
    #[RequiresPhpExtension('sockets')]
    #[RequiresPhpExtension('openssl')]
    public function testADisconnectInTheHandshakeHarmsNoOtherClient(string $bytes): void
    {
        $this->serveAll(secure: true);
        $this->leave(
            fn(): RawClient => $this->client(),
            static fn(RawClient $client) => $client->send($bytes),
            static fn(RawClient $client) => $client->reset(),
        );
        self::assertSame(5, $this->server()->statistics()->failedHandshakes);
    }

    public function testAClientThatEndsItsSideStillGetsItsResponse(): void
    {
        $this->serve(static function (): Response {
            delay(0.05);

            return Response::text('still answered');
        });

        self::assertStringEndsWith("\r\n\r\nstill answered", $this->client()->get('/')->end()->rest());
        self::assertSame([200 => 1], $this->server()->statistics()->answeredRequests);
    }

    public function testAClientThatEndsItsSideStillGetsAllItsResponses(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            delay($request->getRequestTarget() === '/2' ? 0.05 : 0);

            return Response::stream([$request->getRequestTarget()]);
        });
        $client = $this->client()->get('/1')->get('/2')->request('POST', '/3', '', 'body')->get('/4')->end();

        self::assertSame(['/1', '/2', '/3', '/4'], array_map(static fn() => $client->response()->body, range(1, 4)));
        self::assertTrue($client->isEnded());
    }

    public function testAClientThatEndsItsSideBeforeTheServerReadsStillGetsALargeResponse(): void
    {
        $this->serve(static fn(): Response => Response::text(str_repeat('x', 10 * self::MIB)));

        self::assertSame(10 * self::MIB, \strlen($this->client()->get('/')->end()->response()->body));
    }

    public function testAConnectionWithoutBytesIsNotARequest(): void
    {
        $this->serveAll();

        self::assertSame('', $this->client()->end()->rest());
        self::assertSame('', $this->client()->send("GET / HTTP/1.1\r\n")->end()->rest());
        self::assertSame([[], []], [$this->server()->statistics()->answeredRequests, $this->log()->all]);
    }

    /**
     * The client may still want its responses. The handler may give up at its cancellation, but earlier responses are
     * sent.
     */
    public function testResponsesBeforeACancelledRequestAreSent(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            if ($request->getRequestTarget() === '/careful') {
                $cancellation = $request->getAttribute(Cancellation::class);
                \assert($cancellation instanceof Cancellation);
                delay(0.02);
                $cancellation->throwIfRequested();
            }

            return Response::text('answered');
        });
        $client = $this->client()
            ->send(
                "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /careful HTTP/1.1\r\nHost: a\r\n\r\n"
                    . "GET /careful HTTP/1.1\r\nHost: a\r\n\r\n",
            )
            ->end();

        self::assertSame('answered', $client->response()->body);
        self::assertSame('', $client->rest());
        self::assertSame([], $this->log()->all);
    }

    /** The same without a suspension in between. */
    public function testCollectedResponsesAreSentWhenAHandlerIsCancelled(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            if ($request->getRequestTarget() === '/careful') {
                $cancellation = $request->getAttribute(Cancellation::class);
                \assert($cancellation instanceof Cancellation);
                $cancellation->throwIfRequested();
            }
            $request->getRequestTarget() === '/slow' ? delay(0.05) : null;

            return Response::text('answered');
        });
        $client = $this->client()
            ->send(
                "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
                    . "GET /careful HTTP/1.1\r\nHost: a\r\n\r\n",
            )
            ->end();

        self::assertSame(['answered', 'answered'], [$client->response()->body, $client->response()->body]);
        self::assertSame('', $client->rest());
    }

    /** The same if the body of the response gives up, which then can't be read to its end. */
    public function testCollectedResponsesAreSentWhenTheBodyOfAResponseFails(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $request->getRequestTarget() === '/slow' ? delay(0.05) : null;

            return $request->getRequestTarget() === '/echo'
                ? new Response(200, [], $request->getBody())
                : Response::text('answered');
        });
        $client = $this->client()
            ->send(
                "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
                    . "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n",
            )
            ->end();

        self::assertSame(['answered', 'answered'], [$client->response()->body, $client->response()->body]);
        self::assertSame('', $client->rest());
    }

    public function testTheTimeoutOfAHandlerIsNotReportedAsADisconnect(): void
    {
        $this->serve(static function (): Response {
            (new DeferredFuture())->getFuture()->await(new TimeoutCancellation(0.05));

            return Response::text('never');
        });

        self::assertSame(500, $this->client()->get('/')->end()->response()->status);
        self::assertCount(1, $this->log()->failures());
    }

    #[RequiresPhpExtension('sockets')]
    public function testAClientThatResetsItsConnectionBeforeItIsAcceptedHasAnAddress(): void
    {
        $addresses = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$addresses): Response {
            $addresses += [json_encode($request->getServerParams()['REMOTE_ADDR'], \JSON_THROW_ON_ERROR) => true];

            return Response::text('');
        });
        for ($i = 0; $i < 5; ++$i) {
            $client = $this->client()->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            usleep(1_000);
            $client->reset();
        }
        Eventually::holds(
            fn(): bool
                => $this->server()->statistics()->acceptedConnections === 5
                    && $this->server()->statistics()->connections === 0,
            'all were taken',
        );

        self::assertSame(['"127.0.0.1"' => true], $addresses);
    }

    #[RequiresPhpExtension('sockets')]
    public function testAResetClosesAConnectionWhoseStreamIsSuspended(): void
    {
        $left = false;
        /** @var DeferredFuture<null> $never */
        $never = new DeferredFuture();
        $pieces = static function () use (&$left, $never): \Generator {
            try {
                yield 'begin';
                $never->getFuture()->await();
            } finally {
                $left = true;
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()));
        $client = $this->client()->get('/');
        $client->until('begin');
        $client->reset();

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        $never->complete();
        Eventually::holds(static function () use (&$left): bool {
            return $left;
        }, 'it comes to its end');
    }

    /**
     * @return iterable<string, array{string, string, \Closure(RawClient): mixed}> the bytes not yet read, the server's
     *         address, and how the client leaves
     */
    public static function departuresUnread(): iterable
    {
        $requests = str_repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 4_000);
        $body = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" . str_repeat('x', 100_000);
        $close = static fn(RawClient $client) => $client->close();
        foreach (['TCP' => '127.0.0.1:0', 'TLS' => 'tls://127.0.0.1:0'] as $name => $address) {
            yield "an end behind requests, {$name}" => [$requests, $address, $close];
            yield "an end of its side behind requests, {$name}" => [
                $requests,
                $address,
                static fn(RawClient $client) => $client->end(),
            ];
            yield "a reset behind requests, {$name}" => [
                $requests,
                $address,
                static fn(RawClient $client) => $client->reset(),
            ];
            yield "an end behind a body, {$name}" => [$body, $address, $close];
        }
        yield 'an end behind requests, Unix' => [$requests, 'unix://', $close];
    }

    /**
     * The server reads at most 64 KiB ahead of a handler.
     *
     * @param \Closure(RawClient): mixed $leave
     */
    #[DataProvider('departuresUnread')]
    #[RequiresPhpExtension('sockets')]
    #[RequiresPhpExtension('openssl')]
    public function testADisconnectAfterUnreadBytesIsNoticed(
        string $unread,
        string $address,
        \Closure $leave,
    ): void {
        [$certificate, $key] = str_starts_with($address, 'tls')
            ? (new Certificates($this->path()))->forServer('server.test')
            : [null, null];
        $cancelled = 0;
        $this->serve(static function (ServerRequestInterface $request) use (&$cancelled): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            try {
                delay(60, cancellation: $cancellation);
            } finally {
                $cancelled += $cancellation->isRequested() ? 1 : 0;
            }

            return Response::text('unused');
        }, new HttpServerOptions(
            certificate: $certificate,
            key: $key,
        ), $address === 'unix://' ? "unix://{$this->path('socket')}" : $address);
        $client = $this->clients[] = $certificate === null
            ? RawClient::connect($this->address)
            : RawClient::connectSecurely($this->address);
        $client->send($unread);
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler waits');
        $leave($client);

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        self::assertSame([1, 0, []], [$cancelled, $this->server()->statistics()->inFlight, $this->log()->all]);
    }

    /** Handlers that ignore their cancellation answer all requests. */
    public function testAClientThatEndsItsSideAfterUnreadRequestsStillGetsAllItsResponses(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $cancelled = false;
        $this->serve(static function (ServerRequestInterface $request) use (&$cancelled, $gate): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            $cancellation->subscribe(static function () use (&$cancelled): void {
                $cancelled = true;
            });
            $gate->getFuture()->await();

            return Response::text($request->getRequestTarget());
        });
        $client = $this->client()
            ->send(implode(
                '',
                array_map(static fn(int $i): string => "GET /{$i} HTTP/1.1\r\nHost: a\r\n\r\n", range(1, 4_000)),
            ))
            ->end();
        Eventually::holds(static function () use (&$cancelled): bool {
            return $cancelled;
        }, 'the first request is cancelled');
        $gate->complete();

        foreach (range(1, 4_000) as $i) {
            self::assertSame("/{$i}", $client->response()->body);
        }
        self::assertTrue($client->isEnded());
    }

    /**
     * @param \Closure(): RawClient      $connect
     * @param \Closure(RawClient): mixed $begin
     * @param \Closure(RawClient): mixed $leave
     */
    private function leave(\Closure $connect, \Closure $begin, \Closure $leave): void
    {
        $healthy = str_starts_with($this->address, 'tls')
            ? $this->clients[] = RawClient::connectSecurely($this->address)
            : $this->client();
        for ($i = 0; $i < 5; ++$i) {
            $client = $connect();
            $begin($client);
            delay($i === 0 ? 0.03 : 0.001 * $i);
            $leave($client);
            self::assertSame('served', $healthy->get('/')->response()->body);
        }
        Eventually::holds(
            fn(): bool => $this->server()->statistics()->connections === 1,
            'their connections are gone',
            8,
        );
        Eventually::holds(
            fn(): bool => $this->server()->statistics()->inFlight + $this->streams === 0,
            'and so are their handlers',
        );
        self::assertSame([], $this->log()->all, 'clients that leave are not logged');
    }

    private function serveAll(bool $secure = false): void
    {
        [$certificate, $key] = $secure ? (new Certificates($this->path()))->forServer('server.test') : [null, null];
        $this->serve(function (ServerRequestInterface $request): Response {
            match ($request->getRequestTarget()) {
                '/wait' => delay(0.1),
                '/read' => $request->getBody()->getContents(),
                default => null,
            };

            return match ($request->getRequestTarget()) {
                '/stream' => Response::stream($this->pieces(0.002)),
                '/stream-wait' => Response::stream($this->pieces(0.1)),
                '/stream-late' => Response::stream($this->late()),
                '/large' => Response::text(str_repeat('x', 20 * self::MIB)),
                default => Response::text('served'),
            };
        }, new HttpServerOptions(
            certificate: $certificate,
            key: $key,
            writeTimeout: 60,
        ), $secure ? 'tls://127.0.0.1:0' : '127.0.0.1:0');
    }

    /** @return \Generator<string> */
    private function late(): \Generator
    {
        ++$this->streams;
        try {
            delay(0.05);
            yield 'piece';
        } finally {
            --$this->streams;
        }
    }

    /** @return \Generator<string> */
    private function pieces(float $pause): \Generator
    {
        ++$this->streams;
        try {
            for (; ;) {
                yield 'piece';
                delay($pause);
            }
        } finally {
            --$this->streams;
        }
    }
}
