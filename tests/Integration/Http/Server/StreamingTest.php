<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Nyholm\Psr7\Response as ForeignResponse;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Message\ReadOnlyStream;
use Spindle\Http\Middleware\Compression;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Streams;

use function Amp\delay;

/** Responses that are produced while they are sent. */
final class StreamingTest extends HttpServerTestCase
{
    use UsesCluster;

    private const MIB = 1_048_576;

    public function testEachPieceIsSentAtOnce(): void
    {
        /** @var list<DeferredFuture<null>> $gates */
        $gates = [new DeferredFuture(), new DeferredFuture()];
        $this->serve(static fn(): Response => Response::stream((static function () use ($gates): \Generator {
            yield 'first';
            $gates[0]->getFuture()->await();
            yield 'second';
            $gates[1]->getFuture()->await();
        })()));
        $client = $this->client()->get('/');

        $client->until("\r\n\r\n");
        self::assertSame("5\r\nfirst\r\n", $client->bytes(10));
        $gates[0]->complete();
        self::assertSame("6\r\nsecond\r\n", $client->bytes(11));
        $gates[1]->complete();
        self::assertSame("0\r\n\r\n", $client->bytes(5));
    }

    public function testPiecesAreCollectedUntilTheIteratorWaits(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static fn(): Response => Response::stream((static function () use ($gate): \Generator {
            yield from ['one', 'two', 'six'];
            $gate->getFuture()->await();
        })()));
        $client = $this->client()->get('/');

        $client->until("\r\n\r\n");
        self::assertSame('onetwosix', self::chunksOf(9, $client), 'while the iterator waits');
        $gate->complete();
        self::assertSame("0\r\n\r\n", $client->bytes(5));
    }

    public function testPiecesAreSentBeforeEachWaitOfTheIterator(): void
    {
        $gates = array_map(static fn(int $gate): DeferredFuture => new DeferredFuture(), range(1, 20));
        $this->serve(static fn(): Response => Response::stream((static function () use ($gates): \Generator {
            foreach ($gates as $gate) {
                yield 'two';
                yield 'six';
                yield '';
                yield 'ten';
                $gate->getFuture()->await();
            }
        })()));
        $client = $this->client()->get('/');

        $client->until("\r\n\r\n");
        foreach ($gates as $gate) {
            self::assertSame('twosixten', self::chunksOf(9, $client));
            $gate->complete();
        }
        self::assertSame("0\r\n\r\n", $client->bytes(5));
    }

    #[TestWith(['HTTP/1.1', '6'])]
    #[TestWith(['HTTP/1.1', '8'])]
    #[TestWith(['HTTP/1.0', null])]
    public function testPiecesWithoutChunksAreSentBeforeTheIteratorWaits(string $version, ?string $length): void
    {
        $headers = $length === null ? [] : ['Content-Length' => $length];
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static fn(): Response => Response::stream((static function () use ($gate): \Generator {
            yield from ['one', 'two'];
            $gate->getFuture()->await();
            yield 'cd';
        })(), headers: $headers));
        $client = $this->client()->send("GET / {$version}\r\nHost: a\r\nConnection: close\r\n\r\n");

        $client->until("\r\n\r\n");
        self::assertSame('onetwo', $client->bytes(6), 'while the iterator waits');
        $gate->complete();
        self::assertSame($length === '6' ? '' : 'cd', $client->rest());
    }

    public function testAForeignStreamThatCanBeReadAgainIsSentAgain(): void
    {
        $body = new class implements StreamInterface {
            use ReadOnlyStream;

            private int $position = 0;

            public function read(int $length): string
            {
                $bytes = substr('again', $this->position, $length);
                $this->position += \strlen($bytes);

                return $bytes;
            }

            public function eof(): bool
            {
                return $this->position === 5;
            }

            public function tell(): int
            {
                return $this->position;
            }

            public function close(): void
            {
                $this->position = 0;
            }
        };
        $this->serve(static fn(): ResponseInterface => new ForeignResponse(200, [], $body));
        for ($i = 0; $i < 2; ++$i) {
            self::assertStringEndsWith("\r\nagain", $this->client()->get('/')->until("\r\n0\r\n\r\n"));
        }
    }

    #[TestWith(['GET'])]
    #[TestWith(['HEAD'])]
    public function testAForeignStreamThatIsBeingSentIsNotSentInASecondResponse(string $method): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $body = new class ($gate) implements StreamInterface {
            use ReadOnlyStream;

            private int $reads = 0;

            /** @param DeferredFuture<null> $gate */
            public function __construct(private readonly DeferredFuture $gate) {}

            public function read(int $length): string
            {
                if (++$this->reads === 2) {
                    $this->gate->getFuture()->await();
                }

                return [1 => 'one', 'two'][$this->reads] ?? '';
            }

            public function eof(): bool
            {
                return $this->reads > 2;
            }

            public function tell(): int
            {
                return $this->reads;
            }

            public function close(): void
            {
                $this->reads = 3;
            }
        };
        $this->serve(static fn(): ResponseInterface => new ForeignResponse(200, [], $body));
        $first = $this->client()->get('/');
        $first->until('one');
        $second = $this->client()->send("{$method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        $status = substr($second->until("\r\n"), 5);
        $second->rest();
        $gate->complete();

        self::assertStringContainsString('two', $first->until("\r\n0\r\n\r\n"));
        self::assertSame($method === 'HEAD' ? '1.1 200 OK' : '1.1 500 Internal Server Error', $status);
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAForeignStreamIsNotSentAgainBeforeItsReadHasEnded(bool $isCompressed): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $body = new class ($gate) implements StreamInterface {
            use ReadOnlyStream;

            public int $closes = 0;

            public int $reads = 0;

            /** @param DeferredFuture<null> $gate */
            public function __construct(private readonly DeferredFuture $gate) {}

            public function read(int $length): string
            {
                if (++$this->reads === 2) {
                    $this->gate->getFuture()->await();
                }

                return [1 => 'one', 'two'][$this->reads] ?? '';
            }

            public function eof(): bool
            {
                return $this->reads > 2;
            }

            public function tell(): int
            {
                return $this->reads;
            }

            public function close(): void
            {
                ++$this->closes;
                $this->reads = 0;
            }
        };
        $this->serve(new MiddlewareStack(
            static fn(): ResponseInterface => new ForeignResponse(200, ['Content-Type' => 'text/plain'], $body),
            ...($isCompressed ? [new Compression()] : []),
        ));
        $request = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
        $first = $this->client()->send($request);
        Eventually::holds(static fn(): bool => $body->reads === 2, 'the response is read');
        $first->close();
        Eventually::holds(static fn(): bool => $body->closes > 0, 'the client has left');
        self::assertSame([500, 1], [$this->client()->send($request)->response()->status, $body->closes]);
        $gate->complete();
        Eventually::holds(static fn(): bool => $body->closes > 1, 'the read has ended');

        self::assertSame(200, $this->client()->send($request)->response()->status);
    }

    #[TestWith(['GET', false])]
    #[TestWith(['GET', true])]
    #[TestWith(['HEAD', false])]
    #[TestWith(['HEAD', true])]
    public function testABodyThatIsBeingSentIsNotSentInASecondResponse(string $method, bool $hasEvents): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $pieces = (static function () use ($gate): \Generator {
            yield 'one';
            $gate->getFuture()->await();
            yield 'two';
        })();
        $response = $hasEvents ? Response::serverSentEvents($pieces) : Response::stream($pieces);
        $this->serve(static fn(): Response => $response);
        $first = $this->client()->get('/');
        $first->until('one');
        $second = $this->client()->send("{$method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        $status = substr($second->until("\r\n"), 5);
        $second->rest();
        $gate->complete();

        self::assertStringContainsString('two', $first->until("\r\n0\r\n\r\n"));
        self::assertSame($method === 'HEAD' ? '1.1 200 OK' : '1.1 500 Internal Server Error', $status);
    }

    public function testSmallPiecesThatFollowOneAnotherFormLongChunks(): void
    {
        $this->serve(static fn(): Response => Response::stream((static function (): \Generator {
            for ($piece = 0; $piece < 10_000; ++$piece) {
                yield 'piece';
            }
        })()));
        $response = $this->client()->get('/')->response();

        self::assertSame(str_repeat('piece', 10_000), $response->body);
        self::assertLessThan(5_000, $response->chunks);
    }

    public function testSmallPiecesThatFollowOneAnotherAreSentTogether(): void
    {
        /** @var RawClient|null $client */
        $client = null;
        $sends = 0;
        $pieces = static function () use (&$client, &$sends): \Generator {
            \assert($client instanceof RawClient);
            for ($piece = 0, $before = 0; $piece < 1_000; ++$piece) {
                yield 'piece';
                $arrived = \strlen((string) stream_socket_recvfrom($client->stream(), 100_000, \STREAM_PEEK));
                $sends += (int) ($arrived > $before);
                $before = $arrived;
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()));
        $client = $this->client()->get('/');

        self::assertSame(5_000, \strlen($client->response()->body));
        self::assertGreaterThan(0, $sends, 'the first piece is sent at once');
        self::assertLessThan(500, $sends);
    }

    public function testTheCancellationOfTheRequestEndsAWaitInTheGeneratorOfABody(): void
    {
        $name = 'listener-' . bin2hex(random_bytes(6));
        $options = PostgresOptions::fromDsn(Cluster::shared()->dsn());
        $pool = new PostgresPool($options->with(['applicationName' => $name]));
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::serverSentEvents(
            (static function () use ($pool, $request): \Generator {
                $left = $request->getAttribute(Cancellation::class);
                self::assertInstanceOf(Cancellation::class, $left);
                foreach ($pool->listen('orders', $left) as $notification) {
                    yield $notification::class;
                }
            })(),
        ));
        $isOpen = static fn(): bool
            => Cluster::ask("SELECT 1 FROM pg_stat_activity WHERE application_name = '{$name}'") !== [];
        $client = $this->client()->get('/');
        Eventually::holds($isOpen, 'the connection that listens is open');

        $client->close();
        Eventually::holds(static fn(): bool => !$isOpen(), 'the connection that listens is closed');
        self::assertSame(0, $pool->statistics()['opened_total'], 'the connection does not belong to the pool');
        $pool->close();
    }

    public function testTheHeadDoesNotWaitForTheFirstPiece(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static fn(): Response => Response::stream((static function () use ($gate): \Generator {
            $gate->getFuture()->await();
            yield 'late';
        })()));
        $client = $this->client()->get('/');

        self::assertStringStartsWith('HTTP/1.1 200 OK', $client->until("\r\n\r\n"));
        $gate->complete();
        self::assertSame("4\r\nlate\r\n0\r\n\r\n", $client->bytes(14));
    }

    public function testTheHeadIsSentTogetherWithAvailablePieces(): void
    {
        $this->serve(static fn(): Response => Response::stream(['a', 'b']));
        $client = $this->client()->get('/');

        delay(0.05);
        self::assertStringContainsString(
            "\r\n\r\n1\r\na\r\n",
            (string) stream_socket_recvfrom($client->stream(), 10_000, \STREAM_PEEK),
        );
    }

    public function testASlowReaderSuspendsTheHandlerWithoutBuffering(): void
    {
        $made = 0;
        $pieces = static function () use (&$made): \Generator {
            for ($piece = str_repeat('x', 100_000); $made < 1_000; ++$made) {
                yield $piece;
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()));
        $before = memory_get_usage();
        $client = $this->client()->get('/');

        Eventually::standsStill(static function () use (&$made): int {
            return $made;
        }, 'the generator stands still');
        self::assertLessThan(1_000, $made);
        self::assertLessThan(8 * self::MIB, memory_get_usage() - $before, 'what the kernel does not take is not made');
        self::assertSame(100_000_000, \strlen($client->response()->body));
    }

    public function testALargeFileIsSentWithConstantMemory(): void
    {
        $file = Streams::open('php://temp/maxmemory:0', 'w+');
        for ($i = 0; $i < 64; ++$i) {
            fwrite($file, str_repeat(\chr($i), self::MIB));
        }
        $this->serve(static fn(): Response => new Response(200, [], Stream::create($file)));
        $client = $this->client()->get('/');
        $client->until("\r\n\r\n");
        $before = memory_get_usage();
        $most = 0;
        for ($i = 0; $i < 64; ++$i) {
            $piece = $client->bytes(self::MIB);
            self::assertTrue($piece === str_repeat(\chr($i), self::MIB), 'byte for byte');
            $most = max($most, memory_get_usage() - $before);
        }

        self::assertLessThan(8 * self::MIB, $most);
    }

    public function testALargeStringIsSentWhole(): void
    {
        $bytes = random_bytes(self::MIB);
        $this->serve(static fn(): Response => Response::binary(str_repeat($bytes, 20)));
        $client = $this->client()->get('/')->get('/');

        self::assertTrue($client->response()->body === str_repeat($bytes, 20));
        self::assertTrue($client->response()->body === str_repeat($bytes, 20));
    }

    public function testOtherClientsAreServedWhileALargeResponseIsSent(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => $request->getRequestTarget() === '/endless'
            ? Response::stream((static function (): \Generator {
                for (; ;) {
                    yield str_repeat('x', 100_000);
                }
            })())
            : Response::text('served'));
        $greedy = $this->client()->get('/endless');
        $taken = 0;
        \Amp\async(static function () use ($greedy, &$taken): void {
            for (; ;) {
                $taken += \strlen($greedy->bytes(100_000));
            }
        })->ignore();

        for ($i = 0; $i < 10; ++$i) {
            self::assertSame('served', $this->client()->get('/')->response()->body);
        }
        self::assertGreaterThan(0, $taken);
    }

    public function testOtherClientsAreServedEvenIfTheClientReadsFast(): void
    {
        $turns = 0;
        $between = [];
        $pieces = static function () use (&$turns, &$between): \Generator {
            for ($i = 0; $i < 10; ++$i) {
                $between[] = $turns;
                for ($end = hrtime(true) + 2_000_000; hrtime(true) < $end;);
                yield 'x';
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()));
        $client = $this->client()->get('/');
        $watcher = EventLoop::repeat(0, static function () use (&$turns): void {
            ++$turns;
        });
        $client->response();
        EventLoop::cancel($watcher);

        self::assertGreaterThan($between[0], $between[9], 'however little is sent meanwhile');
    }

    public function testAGeneratorEndsWhenTheClientDisconnects(): void
    {
        $left = false;
        $pieces = static function () use (&$left): \Generator {
            try {
                for (; ;) {
                    yield str_repeat('x', 10_000);
                    delay(0.001);
                }
            } finally {
                delay(0.001); // as for the end of a transaction
                $left = true;
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()));
        $client = $this->client()->get('/');
        $client->bytes(100_000);
        $client->close();

        Eventually::holds(static function () use (&$left): bool {
            return $left;
        }, 'its finally block has run');
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        self::assertSame([], $this->log()->all, 'nothing of it is worth a word');
    }

    public function testAnExceptionOfAFinallyBlockAfterADisconnectIsLogged(): void
    {
        $pieces = static function (): \Generator {
            try {
                for (; ;) {
                    yield str_repeat('x', 100_000);
                }
            } finally {
                throw new \RuntimeException('No rollback');
            }
        };
        $this->serve(static fn(): Response => Response::stream($pieces()));
        $client = $this->client()->get('/');
        $client->bytes(100_000);
        $client->close();

        Eventually::holds(fn(): bool => $this->log()->failures() !== [], 'the log has it');
        self::assertSame('No rollback', $this->log()->failures()[0]->getMessage());
    }

    public function testAGeneratorThatUsesTheCancellationEndsAtADisconnect(): void
    {
        $thrown = null;
        $pieces = static function (mixed $cancellation) use (&$thrown): \Generator {
            yield 'first';
            try {
                \assert($cancellation instanceof Cancellation);
                delay(1_000, cancellation: $cancellation);
            } catch (CancelledException $thrown) {
            }
        };
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::stream($pieces($request->getAttribute(Cancellation::class))),
        );
        $client = $this->client()->get('/');
        $client->until('first');
        $client->close();

        Eventually::holds(static function () use (&$thrown): bool {
            return $thrown !== null;
        }, 'it was cancelled');
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        self::assertInstanceOf(CancelledException::class, $thrown);
    }

    public function testTheHandlerTimeoutDoesNotApplyToEvents(): void
    {
        $this->serve(static fn(): Response => Response::stream((static function (): \Generator {
            yield 'a';
            delay(0.5);
            yield 'b';
        })()), new HttpServerOptions(handlerTimeout: 0.1, writeTimeout: 0.1));

        self::assertSame('ab', $this->client()->get('/')->response()->body);
    }

    public function testAGeneratorMayEchoTheBodyAsItArrives(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::stream((static function () use ($request): \Generator {
                    for ($body = $request->getBody(); !$body->eof();) {
                        yield strtoupper($body->read(1_000));
                    }
                })()),
            new HttpServerOptions(headTimeout: 0.3, handlerTimeout: 0.2),
        );
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        $client->until("3\r\nABC\r\n");
        self::assertSame(408, $this->client()->send('G')->response()->status, 'a handler may not take so long');
        $client->send("3\r\ndef\r\n0\r\n\r\n");

        self::assertSame("3\r\nDEF\r\n0\r\n\r\n", $client->rest());
        self::assertSame([], $this->log()->all);
    }

    public function testAStreamWithoutAvailableBytesDelaysNoOtherClient(): void
    {
        $stream = new Hesitant();
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => $request->getRequestTarget() === '/' ? new Response(200, [], $stream) : Response::text('served'),
        );
        $client = $this->client()->get('/');
        self::assertSame('served', $this->client()->get('/other')->response()->body);
        [$before, $begin] = [$stream->asked, hrtime(true)];
        Eventually::holds(static fn(): bool => $stream->asked >= $before + 8, 'it is asked again');
        self::assertGreaterThan(0.1, (hrtime(true) - $begin) / 1e9, 'the pauses between are 0.127 s at least');
        $stream->bytes = 'now';

        self::assertSame('now', $client->response()->body);
    }

    public function testAStreamWithoutBytesEndsWhenItsClientDisconnects(): void
    {
        $stream = new Hesitant();
        $this->serve(static fn(): Response => new Response(200, [], $stream));
        $client = $this->client()->get('/');
        Eventually::holds(static fn(): bool => $stream->asked > 0, 'it is asked');
        $client->reset();

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        self::assertTrue($stream->closed);
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testABodyThatWaitsInItsRewindAndThenFailsIsReplacedByAnError(bool $failsToRewind): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => $request->getRequestTarget() === '/first'
            ? Response::text('collected')
            : new Response(200, ['X' => 'dropped'], new SlowRewind($failsToRewind)));
        $client = $this->client()->get('/first')->get('/second');

        self::assertSame('collected', $client->response()->body);
        $response = $client->response();
        self::assertSame([500, null], [$response->status, $response->header('x')]);
        self::assertSame([200 => 1, 500 => 1], $this->server()->statistics()->answeredRequests);
    }

    public function testABodyThatFailsBeforeItsFirstPieceIsAnsweredWithAnError(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::stream((static function () use ($request): \Generator {
                    yield from $request->getRequestTarget() === '/gone'
                        ? throw new HttpException(410, 'It is gone')
                        : throw new \RuntimeException('No rows');
                })()),
        );
        $client = $this->client()->get('/a')->get('/gone');

        self::assertSame([500, 410], [$client->response()->status, $client->response()->status]);
        self::assertSame(
            ['No rows'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $this->log()->failures()),
        );
    }

    #[TestWith([new \RuntimeException('No more rows')])]
    #[TestWith([new HttpException(503, 'No more rows')])]
    #[TestWith([new HttpException(409, 'No more rows')])]
    public function testABodyThatFailsInItsMiddleEndsTheConnection(\Throwable $failure): void
    {
        $this->serve(static fn(): Response => Response::stream((static function () use ($failure): \Generator {
            yield from ['begin', 'next'];
            throw $failure;
        })()));
        $client = $this->client()->get('/')->get('/');

        self::assertStringEndsWith(
            "5\r\nbegin\r\n4\r\nnext\r\n",
            $client->rest(),
            'the last chunk, which is the end, does not come, nor another answer',
        );
        self::assertSame(
            ['The handler of {method} {target} failed: No more rows'],
            $this->log()->messages(),
            'no answer can tell the client',
        );
        self::assertSame([$failure], $this->log()->failures());
    }

    #[RequiresPhpExtension('sockets')]
    public function testAnIncompleteResponseWithoutALengthEndsWithAReset(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::stream((static function () use ($request): \Generator {
                    yield 'begin';
                    if ($request->getRequestTarget() === '/broken') {
                        throw new \RuntimeException('No more rows');
                    }
                })()),
        );
        $whole = $this->client()->send("GET / HTTP/1.0\r\n\r\n");
        $broken = $this->client()->send("GET /broken HTTP/1.0\r\n\r\n");

        self::assertStringEndsWith("\r\n\r\nbegin", $whole->rest());
        self::assertIsString(stream_socket_get_name($whole->stream(), true));
        $broken->rest();
        self::assertFalse(
            stream_socket_get_name($broken->stream(), true),
            'after a reset, the kernel does not know the other side',
        );
    }

    public function testASeekableBodyCanBeSentAgain(): void
    {
        $response = new Response(200, [], Stream::create('the same'));
        $this->serve(static fn(): Response => $response);
        $client = $this->client()->get('/')->get('/');

        self::assertSame(['the same', 'the same'], [$client->response()->body, $client->response()->body]);
    }

    public function testASeekableBodyCanBeSentToSeveralClientsAtOnce(): void
    {
        $bytes = '';
        for ($i = 0; $i < 20; ++$i) {
            $bytes .= str_repeat(\chr(65 + $i), self::MIB);
        }
        $response = new Response(200, [], Stream::create($bytes));
        $this->serve(static fn(): Response => $response);
        $clients = [$this->client()->get('/'), $this->client()->get('/')];
        delay(0.05);
        $bodies = \Amp\Future\await(array_map(
            static fn($client) => \Spindle\Tests\Async::run(static fn(): string => $client->response()->body),
            $clients,
        ));

        self::assertTrue($bodies[0] === $bytes, 'the first');
        self::assertTrue($bodies[1] === $bytes, 'the second');
    }

    #[TestWith(['stream_filter_append', false])]
    #[TestWith(['stream_filter_append', true])]
    #[TestWith(['php://filter', false])]
    public function testAFilteredFileIsSentToOneClientAtATime(string $kind, bool $compresses): void
    {
        $path = (string) tempnam(sys_get_temp_dir(), 'spindle-');
        file_put_contents($path, $content = random_bytes(6_000_000));
        $uri = $kind === 'php://filter' ? "php://filter/read=convert.base64-encode/resource={$path}" : $path;
        $file = Streams::open($uri, 'r');
        unlink($path);
        if ($kind === 'stream_filter_append') {
            stream_filter_append($file, 'convert.base64-encode', \STREAM_FILTER_READ);
        }
        $response = new ForeignResponse(200, ['Content-Type' => 'text/plain'], Stream::create($file));
        $handler = static fn(): ResponseInterface => $response;
        $this->serve($compresses ? (new MiddlewareStack($handler, new Compression()))->handle(...) : $handler);
        $fields = $compresses ? "Accept-Encoding: gzip\r\n" : '';
        $first = $this->client()->get('/', $fields);
        $first->until("\r\n\r\n");

        self::assertSame(500, $this->client()->get('/', $fields)->response()->status);
        $bytes = self::chunksUntilEnd($first);
        self::assertTrue(base64_encode($content) === ($compresses ? gzdecode($bytes) : $bytes));
        self::assertSame(200, $this->client()->get('/', $fields)->response()->status);
        self::assertCount(1, $this->log()->failures());
    }

    public function testABodyFromAPipeThatWasReadIsNotSentAsAnEmptyBody(): void
    {
        $this->serve(static function (): ResponseInterface {
            $pipe = popen('printf text', 'r');
            self::assertNotFalse($pipe);
            $body = Stream::create($pipe);
            self::assertSame('text', $body->getContents());

            return new ForeignResponse(200, [], $body);
        });

        self::assertSame(500, $this->client()->get('/')->response()->status);
    }

    public function testABodyThatCanBeReadOnceIsNotSentTwice(): void
    {
        $response = Response::stream(['only', 'once']);
        $this->serve(static fn(): Response => $response);
        $client = $this->client()->get('/')->get('/')->get('/');

        self::assertSame('onlyonce', $client->response()->body);
        self::assertSame(
            [500, 500],
            [$client->response()->status, $client->response()->status],
            'an answer without its body would be taken for whole',
        );
        self::assertCount(2, $this->log()->failures());
    }

    private static function chunksUntilEnd(RawClient $client): string
    {
        $data = '';
        while (($size = (int) hexdec($client->until("\r\n"))) > 0) {
            $data .= $client->bytes($size);
            self::assertSame("\r\n", $client->bytes(2));
        }

        return $data;
    }

    /** Returns the data of the next chunks, which must have $bytes bytes together. */
    private static function chunksOf(int $bytes, RawClient $client): string
    {
        $data = '';
        while (\strlen($data) < $bytes) {
            $data .= $client->bytes((int) hexdec($client->until("\r\n")));
            self::assertSame("\r\n", $client->bytes(2));
        }

        return $data;
    }
}
