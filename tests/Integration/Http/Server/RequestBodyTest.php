<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\UploadedFileInterface;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\FormLimits;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\BodyLimited;
use Spindle\Http\Internal\Form\UploadException;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\Text;

use function Amp\delay;

/** Request bodies. */
final class RequestBodyTest extends HttpServerTestCase
{
    private const MIB = 1_048_576;

    /** @return iterable<string, array{\Closure(string): string}> functions that make a request with a body */
    public static function framings(): iterable
    {
        yield 'with a length' => [
            static fn(string $body): string
                => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " . \strlen($body) . "\r\n\r\n{$body}",
        ];
        yield 'in chunks' => [
            static fn(string $body): string => "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                . implode(
                    '',
                    array_map(
                        static fn(string $part): string => dechex(\strlen($part)) . "\r\n{$part}\r\n",
                        $body === '' ? [] : str_split($body, 1_000),
                    ),
                ) . "0\r\n\r\n",
        ];
    }

    /** @param \Closure(string): string $request */
    #[DataProvider('framings')]
    public function testABodyArrivesByteForByte(\Closure $request): void
    {
        $this->serve(self::echo(...));
        $client = $this->client();

        foreach (['', 'a', random_bytes(100_000), "0\r\n\r\n", random_bytes(3 * self::MIB)] as $body) {
            $client->sendConcurrently($request($body));
            self::assertTrue($client->response()->body === $body, \strlen($body) . ' bytes');
        }
    }

    /** @param \Closure(string): string $request */
    #[DataProvider('framings')]
    public function testALargerBodyThanTheLimitIsRefused(\Closure $request): void
    {
        $this->serve(self::echo(...), new HttpServerOptions(maxBodyBytes: 200_000));

        $client = $this->client()->send($request(str_repeat('x', 200_000)));
        self::assertSame(200, $client->response()->status, 'the limit itself is allowed');
        $client->sendConcurrently($request(str_repeat('x', 400_000)));
        $response = $client->response();
        self::assertSame([413, "The body is larger than 200000 bytes\n"], [$response->status, $response->body]);
        self::assertTrue($client->isEnded());
    }

    /** @param \Closure(string): string $request */
    #[DataProvider('framings')]
    public function testARouteCanRaiseTheLimit(\Closure $request): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $body = $request->getBody();
            self::assertInstanceOf(BodyLimited::class, $body);
            $body->limit(2_000);

            return self::echo($request);
        }, new HttpServerOptions(maxBodyBytes: 1_000));

        self::assertSame(200, $this->client()->send($request(str_repeat('x', 2_000)))->response()->status);
        self::assertSame(413, $this->client()->send($request(str_repeat('x', 2_001)))->response()->status);
    }

    public function testABodyThatIsTooLargeIsRefusedBeforeItArrives(): void
    {
        $this->serve(self::echo(...), new HttpServerOptions(maxBodyBytes: 1_000));
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");

        self::assertSame(413, $client->response()->status);
    }

    public function testASmallUnreadBodyKeepsTheConnection(): void
    {
        $this->serve(static fn(): Response => Response::text('did not look'));
        $client = $this->client()->request('POST', '/', '', str_repeat('x', 50_000));

        self::assertSame('did not look', $client->response()->body);
        self::assertSame('did not look', $client->get('/')->response()->body);
    }

    public function testTheRestOfASmallBodyIsDiscardedWhenItArrives(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text($request->getMethod()));
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n0123456789");
        self::assertSame('POST', $client->response()->body);
        $client->send('0123456789')->get('/');

        self::assertSame('GET', $client->response()->body);
    }

    /** @param \Closure(string): string $request */
    #[DataProvider('framings')]
    public function testALargeUnreadBodyEndsTheConnectionAfterTheResponse(\Closure $request): void
    {
        $this->serve(static fn(): Response => Response::text('did not look'));
        $client = $this->client();
        $client->sendConcurrently($request(str_repeat('x', 900_000)));

        $response = $client->response();
        self::assertSame(['did not look', 'close'], [$response->body, $response->header('connection')]);
        self::assertTrue($client->isEnded());
    }

    /** @param \Closure(string): string $request */
    #[DataProvider('framings')]
    public function testAClientCanSendALargeUnreadBodyBeforeItReadsTheResponse(\Closure $request): void
    {
        $this->serve(static fn(): Response => throw new HttpException(403, 'forbidden'));
        $client = $this->client()->send($request(str_repeat('x', 8_000_000)));

        self::assertSame('', $client->warning(), 'the whole body was sent');
        self::assertSame(403, $client->response()->status);
        self::assertTrue($client->isEnded());
    }

    public function testTrailersAreAvailableWhenTheBodyWasRead(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $before = $request->getBody()->getMetadata('trailers');

            return Response::json(
                [
                    $before,
                    (string) $request->getBody(),
                    $request->getBody()->getMetadata('trailers'),
                    $request->getBody()->getMetadata(),
                ],
            );
        });
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0;c\r\nSum: 12 \r\n"
                . "X: a\r\nx: b\r\n\r\n",
        );

        $trailers = ['Sum' => ['12'], 'X' => ['a', 'b']];
        self::assertSame([[], 'x', $trailers, ['trailers' => $trailers]], $client->response()->json());
    }

    public function testContinueIsSentWhenTheHandlerReads(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $gate->getFuture()->await();

            return self::echo($request);
        });
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        );
        delay(0.02);
        self::assertFalse(stream_socket_recvfrom($client->stream(), 100, \STREAM_PEEK), 'nobody has asked for it yet');
        $gate->complete();

        self::assertSame(100, $client->response()->status);
        $client->send('body');
        $response = $client->response();
        self::assertSame([200, 'body', true], [$response->status, $response->body, $response->keepsConnection()]);
    }

    public function testContinueIsNotSentForAnUnreadBody(): void
    {
        $this->serve(static fn(): Response => Response::text('no', 403));
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        );

        $response = $client->response();
        self::assertSame(
            [403, 'close'],
            [$response->status, $response->header('connection')],
            'whether the body comes all the same is not known',
        );
        self::assertTrue($client->isEnded());
    }

    public function testContinueIsNotSentForATooLargeBody(): void
    {
        $this->serve(self::echo(...), new HttpServerOptions(maxBodyBytes: 3));
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        );

        self::assertSame(413, $client->response()->status);
        self::assertTrue($client->isEnded());
    }

    public function testContinueIsNotSentToAClientThatDidNotWait(): void
    {
        $this->serve(self::echo(...));
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody",
        );

        $response = $client->response();
        self::assertSame([200, 'body', true], [$response->status, $response->body, $response->keepsConnection()]);
    }

    public function testContinueIsSentWhenTheResponseEchoesTheBody(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response => new Response(200, [], $request->getBody()),
        );
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        );

        self::assertSame(100, $client->response()->status);
        self::assertSame('body', $client->send('body')->response()->body);
    }

    public function testAnUnreadChunkedBodyThatHasArrivedKeepsTheConnection(): void
    {
        $this->serve(static fn(): Response => Response::text('answered'));
        $client = $this->client()
            ->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n")
            ->get('/');

        foreach ([1, 2] as $i) {
            $response = $client->response();
            self::assertSame(['answered', true], [$response->body, $response->keepsConnection()]);
        }
    }

    public function testAResponseThatEchoesTheBodyHasAllItsBytes(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response => new Response(200, [], $request->getBody()),
        );
        $client = $this->client()
            ->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
            ->get('/');

        self::assertSame('hello', $client->response()->body);
        self::assertSame('', $client->response()->body);
    }

    public function testContinueIsNotSentInTheMiddleOfTheResponse(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::stream((static function () use ($request): \Generator {
                    yield 'read: ';
                    yield $request->getBody()->read(100);
                })()),
        );
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        );
        $head = $client->until("\r\n\r\n");
        $client->send('body');

        self::assertStringStartsWith('HTTP/1.1 200', $head);
        self::assertSame("6\r\nread: \r\n4\r\nbody\r\n0\r\n\r\n", $client->rest());
    }

    /** @param \Closure(string): string $request */
    #[DataProvider('framings')]
    public function testASlowHandlerSlowsTheClientDownWithoutBuffering(\Closure $request): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $size = \strlen($request->getBody()->read(10));
            $gate->getFuture()->await();
            while (!$request->getBody()->eof()) {
                $size += \strlen($request->getBody()->read(8_192));
            }

            return Response::text((string) $size);
        }, new HttpServerOptions(maxBodyBytes: 64 * self::MIB));
        $bytes = $request(str_repeat('x', 32 * self::MIB));
        $before = memory_get_usage();
        $client = $this->client();
        $sent = 0;
        Async::run(static function () use ($client, $bytes, &$sent): void {
            for (; $sent < \strlen($bytes); $sent += 65_536) {
                $client->send(substr($bytes, $sent, 65_536));
            }
        })->ignore();
        Eventually::standsStill(static function () use (&$sent): int {
            return $sent;
        }, 'nothing more is taken from the client');

        self::assertLessThan(\strlen($bytes), $sent);
        self::assertLessThan(2 * self::MIB, memory_get_usage() - $before);
        $gate->complete();
        self::assertSame((string) (32 * self::MIB), $client->response()->body);
    }

    public function testABodyCanBeReadInSmallAndLargePieces(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $body = $request->getBody();
            $told = [$body->getSize(), $body->tell(), $body->isSeekable(), $body->isWritable(), $body->isReadable()];
            $read = [
                $body->read(2),
                $body->tell(),
                $body->eof(),
                $body->read(100),
                $body->tell(),
                $body->eof(),
                $body->read(1),
            ];

            return Response::json([$told, $read]);
        });

        self::assertSame(
            [[6, 0, true, false, true], ['ab', 2, false, 'cdef', 6, true, '']],
            $this->client()->request('POST', '/', '', 'abcdef')->response()->json(),
        );
    }

    public function testARequestWithoutABodyHasAnEmptyOne(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::json(
                    [$request->getBody()->getSize(), (string) $request->getBody(), $request->getBody()->eof()],
                ),
        );

        self::assertSame([0, '', true], $this->client()->get('/')->response()->json());
    }

    public function testAMalformedChunkIsRefusedWhenTheHandlerReads(): void
    {
        $this->serve(self::echo(...));
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno size\r\n"
                . "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );

        $response = $client->response();
        self::assertSame([400, 'close'], [$response->status, $response->header('connection')]);
        self::assertTrue($client->isEnded(), 'where the next request begins is not known');
    }

    public function testAHandlerThatSwallowsAMalformedBodyCanNotKeepTheConnection(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            try {
                $request->getBody()->getContents();
            } catch (HttpException $malformed) {
                return Response::text("swallowed {$malformed->status}");
            }

            return Response::text('well formed');
        });
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );

        $response = $client->response();
        self::assertSame(['swallowed 400', 'close'], [$response->body, $response->header('connection')]);
        self::assertTrue($client->isEnded());
    }

    public function testADisconnectInTheMiddleOfTheBodyIsAnException(): void
    {
        /** @var DeferredFuture<string> $told */
        $told = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($told): Response {
            try {
                return self::echo($request);
            } catch (\Throwable $thrown) {
                $told->complete($thrown::class);
                throw $thrown;
            }
        });
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
        delay(0.01);
        $client->close();

        self::assertSame(ClientDisconnectedException::class, $told->getFuture()->await());
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        self::assertSame(
            [[], 1],
            [$this->log()->all, $this->server()->statistics()->abandonedRequests],
            'which is nothing that went wrong here',
        );
    }

    public function testTwoFibersCanNotReadABodyAtOnce(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $first = Async::run(static fn(): string => $request->getBody()->read(100));
            $second = Async::run(static fn(): string => $request->getBody()->read(100));
            try {
                $second->await();
                $told = 'nothing';
            } catch (\LogicException $exception) {
                $told = $exception::class;
            }

            return Response::text("{$told} {$first->await()}");
        });
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
        delay(0.02);
        $client->send('body');

        self::assertSame('LogicException body', $client->response()->body);
    }

    public function testAReaderOfTheBodyGetsAnExceptionWhenTheResponseIsSent(): void
    {
        $thrown = null;
        $this->serve(static function (ServerRequestInterface $request) use (&$thrown): Response {
            Async::run(static fn(): string => $request->getBody()->read(100))->catch(
                static function (\Throwable $exception) use (&$thrown): void {
                    $thrown = $exception;
                },
            )->ignore();
            delay(0);

            return Response::text($request->getMethod());
        });
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
        self::assertSame('POST', $client->response()->body);

        Eventually::holds(static function () use (&$thrown): bool {
            return $thrown !== null;
        }, 'the reader gets an exception');
        self::assertInstanceOf(\LogicException::class, $thrown);
        self::assertSame('GET', $client->send('body')->get('/')->response()->body);
    }

    public function testABodyCannotBeReadAfterTheResponse(): void
    {
        $kept = null;
        $this->serve(static function (ServerRequestInterface $request) use (&$kept): Response {
            $kept ??= $request->getBody();

            return Response::text('answered');
        });
        $client = $this->client()->request('POST', '/', '', 'body');
        $client->response();
        $client->request('POST', '/', '', 'another body')->response();
        self::assertNotNull($kept);

        $this->expectException(\LogicException::class);
        $kept->read(100);
    }

    public function testARequestThatIsKeptOutlivesItsConnectionWithoutItsBody(): void
    {
        $requests = $bodies = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$requests, &$bodies): Response {
            $request->getRequestTarget() === '/read' ? $request->getParsedBody() : null;
            [$requests[], $bodies[]] = [$request, $request->getBody()];

            return Response::text('answered');
        });
        $client = $this->client();
        $json = "Content-Type: application/json\r\n";
        $client->request('POST', '/read', $json, '{"a": 1}')->response();
        $client->request('POST', '/unread', $json, '{"a": 1}')->response();
        $client->close();
        Eventually::holds(
            fn(): bool => $this->server()->statistics()->connections === 0,
            'the server has closed the connection',
        );
        gc_collect_cycles();

        foreach ([0, 1] as $i) {
            self::assertSame('127.0.0.1', $requests[$i]->getServerParams()['REMOTE_ADDR']);
            self::assertSame('http', $requests[$i]->getUri()->getScheme());
            self::assertFalse($bodies[$i]->eof());
            foreach (
                [
                    $requests[$i]->getParsedBody(...),
                    $requests[$i]->getUploadedFiles(...),
                    $bodies[$i]->getContents(...),
                    $bodies[$i]->__toString(...),
                    $bodies[$i]->detach(...),
                    static fn(): string => $bodies[$i]->read(1),
                ] as $use
            ) {
                self::assertEnded(\LogicException::class, $use);
            }
        }
    }

    /** @param \Closure(string): string $request */
    #[DataProvider('framings')]
    public function testTheBytesOfAKeptRequestAreDropped(\Closure $request): void
    {
        $kept = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$kept): Response {
            $kept[] = [$request, $request->getBody()];
            $request->getParsedBody();

            return Response::text($request->getBody()->getContents());
        });
        $head = "Content-Type: application/json\r\nContent-Length";
        $json = '["' . str_repeat('x', 900_000) . '"]';
        $text = str_replace(
            ['Content-Length', 'Transfer-Encoding'],
            [$head, "Content-Type: application/json\r\nTransfer-Encoding"],
            $request($json),
        );
        $before = 0;
        for ($i = 0; $i < 11; ++$i) {
            $client = $this->client();
            $client->sendConcurrently($text);
            self::assertTrue($client->response()->body === $json);
            $client->close();
            $before = $i === 0 ? memory_get_usage() : $before;
        }

        self::assertLessThan(2 * self::MIB, memory_get_usage() - $before);
        self::assertCount(11, $kept);
    }

    public function testTheFilesOfAKeptRequestAreClosed(): void
    {
        $kept = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$kept): Response {
            $files = $request->getUploadedFiles();
            self::assertInstanceOf(UploadedFileInterface::class, $files['a']);
            self::assertIsArray($files['b']);
            self::assertInstanceOf(UploadedFileInterface::class, $files['b']['c']);
            $changed = $request->withUploadedFiles($files);
            $stream = $files['b']['c']->getStream();
            $kept[] = [$request, $changed, $files['a'], $files['b']['c'], $request->getBody(), $stream];

            return new Response(200, [], $files['a']->getStream());
        });
        $content = random_bytes(300_000);
        $before = self::openUploads();
        for ($i = 0; $i < 3; ++$i) {
            self::assertTrue($this->upload($content)->body === $content, 'the file is closed after the response');
        }

        self::assertCount(3, $kept);
        Eventually::holds(static fn(): bool => self::openUploads() === $before, 'all files are closed');
        foreach ($kept as [$request, $changed, $streamed, $unused, $body, $stream]) {
            self::assertEnded(\LogicException::class, $request->getUploadedFiles(...));
            self::assertEnded(\LogicException::class, $request->getParsedBody(...));
            self::assertEnded(\LogicException::class, $body->getContents(...));
            self::assertEnded(UploadException::class, $streamed->getStream(...));
            self::assertEnded(UploadException::class, static fn(): string => $stream->read(1));
            self::assertFalse($stream->eof(), 'a loop until the end of the stream does not end silently');
            self::assertEnded(UploadException::class, static fn() => $unused->moveTo(sys_get_temp_dir() . '/never'));
            self::assertSame([300_000, 'f'], [$unused->getSize(), $unused->getClientFilename()]);
            self::assertSame($streamed, $changed->getUploadedFiles()['a']);
        }
    }

    public function testAFileCanBeMovedWhileTheRequestEnds(): void
    {
        $target = sys_get_temp_dir() . '/spindle-moved-' . bin2hex(random_bytes(8));
        $moving = null;
        $this->serve(static function (ServerRequestInterface $request) use ($target, &$moving): Response {
            $files = $request->getUploadedFiles();
            self::assertInstanceOf(UploadedFileInterface::class, $files['a']);
            $moving = Async::run(static fn() => $files['a']->moveTo($target));
            delay(0); // the copy of the first chunk begins

            return Response::text($moving->isComplete() ? 'moved' : 'moving');
        });
        $content = str_repeat(random_bytes(1_000), 3_500);
        try {
            self::assertSame('moving', $this->upload($content)->body);
            self::assertNotNull($moving);
            $moving->await();
            self::assertTrue(file_get_contents($target) === $content);
        } finally {
            @unlink($target);
        }
    }

    public function testFormsAreParsed(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::json($request->getParsedBody()));
        $client = $this->client();

        $form = "Content-Type: application/x-www-form-urlencoded\r\n";
        self::assertSame(
            ['a' => ['1', '2'], 'b' => 'x y'],
            $client->request('POST', '/', $form, 'a[]=1&a[]=2&b=x+y')->response()->json(),
        );
        self::assertSame(
            ['deep' => [1, null]],
            $client
                ->request('POST', '/', "Content-Type: application/json\r\n", '{"deep": [1, null]}')
                ->response()
                ->json(),
        );
        self::assertNull($client->request('POST', '/', "Content-Type: text/plain\r\n", 'a=b')->response()->json());
        self::assertSame(
            400,
            $client->request('POST', '/', "Content-Type: application/json\r\n", '{')->response()->status,
        );
        self::assertSame(
            ['a' => 'b'],
            $client->request('POST', '/', $form, 'a=b')->response()->json(),
            'the connection has outlived that',
        );
    }

    /** @return iterable<string, array{string, string, int, int}> type, body, limit on it, status */
    public static function refusedForms(): iterable
    {
        $part = static fn(string $name, string $value): string
            => "--b\r\nContent-Disposition: form-data; name=\"{$name}\"\r\n\r\n{$value}\r\n";
        yield 'urlencoded' => [
            'application/x-www-form-urlencoded',
            'a=' . str_repeat('x', 1_200_000) . '&role=user&admin=1',
            8 * self::MIB,
            413,
        ];
        yield 'urlencoded, more than a body may have' => [
            'application/x-www-form-urlencoded',
            'a=' . str_repeat('x', 1_200_000) . '&role=user&admin=1',
            self::MIB,
            413,
        ];
        yield 'JSON' => ['application/json', str_repeat(' ', 1_200_000) . '{"admin":1}', 8 * self::MIB, 413];
        yield 'malformed JSON' => ['application/json', '{', self::MIB, 400];
        yield 'multipart' => [
            'multipart/form-data; boundary=b',
            $part('a', str_repeat('x', 1_200_000)) . $part('admin', '1') . '--b--',
            8 * self::MIB,
            413,
        ];
    }

    #[DataProvider('refusedForms')]
    public function testAFormThatWasRefusedStaysRefused(string $type, string $form, int $limit, int $status): void
    {
        $refusals = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$refusals): Response {
            $refusals = [];
            foreach ([
                $request->getParsedBody(...),
                $request->getParsedBody(...),
                $request->withAttribute('a', 1)->getUploadedFiles(...),
                $request->getParsedBody(...),
            ] as $ask) {
                try {
                    return Response::json($ask());
                } catch (HttpException $refusal) {
                    $refusals[] = $refusal;
                }
            }

            return Response::text('refused', $refusals[0]->status);
        }, new HttpServerOptions(maxBodyBytes: $limit));
        foreach (self::framings() as [$request]) {
            $client = $this->client();
            $fields = "Host: a\r\nContent-Type: {$type}\r\n";
            $client->sendConcurrently(str_replace("Host: a\r\n", $fields, $request($form)));

            self::assertSame([$status, 'refused'], [($response = $client->response())->status, $response->body]);
            self::assertCount(4, $refusals);
            self::assertCount(1, array_unique(array_map(spl_object_id(...), $refusals)), 'the same each time');
        }
    }

    public function testFilesAreUploaded(): void
    {
        $content = random_bytes(300_000);
        $this->serve(static function (ServerRequestInterface $request): Response {
            $file = $request->getUploadedFiles()['file'] ?? null;
            self::assertInstanceOf(UploadedFileInterface::class, $file);

            return Response::json(
                [
                    $request->getParsedBody(),
                    $file->getClientFilename(),
                    $file->getClientMediaType(),
                    $file->getSize(),
                    md5((string) $file->getStream()),
                    $file->getStream()->isReadable(),
                ],
            );
        });
        $body = "--mark\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nA picture\r\n--mark\r\n"
            . "Content-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n"
            . "{$content}\r\n--mark--\r\n";
        $client = $this->client();
        $client->sendConcurrently(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=mark\r\nContent-Length: "
                . \strlen($body)
                . "\r\n\r\n{$body}",
        );

        self::assertSame(
            [['title' => 'A picture'], 'a.png', 'image/png', 300_000, md5($content), true],
            $client->response()->json(),
        );
    }

    /** @return iterable<string, array{string, string}> type and body */
    public static function texts(): iterable
    {
        yield 'JSON' => ['application/json', '{"a": "1"}'];
        yield 'JSON of a media type of its own' => ['Application/Problem+JSON; charset=utf-8', '{"a": "1"}'];
        yield 'urlencoded' => ['application/x-www-form-urlencoded', 'a=1'];
        yield 'long JSON' => ['application/json', '{"a": "1"}' . str_repeat(' ', 900_000)];
        yield 'as long as may be' => ['application/x-www-form-urlencoded', 'a=1' . str_repeat('&', self::MIB - 3)];
    }

    #[DataProvider('texts')]
    public function testAParsedBodyCanBeReadAgain(string $type, string $body): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $copy = $request->withAttribute('a', 1)->withHeader('X', 'y');
            $parsed = $request->getParsedBody();
            $read = [
                $request->getBody()->getContents(),
                (string) $request->getBody(),
                (string) $copy->getBody(),
                $copy->getBody()->getContents(),
            ];
            $copy->getBody()->rewind();
            $read[] = $request->getBody()->getContents();

            return Response::json([$parsed, $copy->getParsedBody(), array_map(md5(...), $read)]);
        });
        $md5 = md5($body);

        foreach ($this->ask($type, $body) as $response) {
            self::assertSame([['a' => '1'], ['a' => '1'], [$md5, $md5, $md5, md5(''), $md5]], $response->json());
        }
    }

    #[DataProvider('texts')]
    public function testABodyThatWasReadCanBeParsed(string $type, string $body): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $begin = $request->getBody()->read(2);
            $parsed = $request->getParsedBody();
            $rest = $request->getBody()->getContents();

            return Response::json(
                [$parsed, md5($begin . $rest), md5((string) $request->getBody()), $request->getBody()->tell()],
            );
        });

        foreach ($this->ask($type, $body) as $response) {
            self::assertSame([['a' => '1'], md5($body), md5($body), \strlen($body)], $response->json());
        }
    }

    /** Calls the methods that symfony/psr-http-message-bridge and HttpFoundation call, in their order. */
    #[DataProvider('texts')]
    public function testSymfonysBridgeHasTheFieldsAndTheBody(string $type, string $body): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $fields = $request->getParsedBody();
            $files = $request->getUploadedFiles();
            $content = $request->getBody()->__toString();
            $stream = $request->getBody()->detach();
            self::assertIsResource($stream);
            rewind($stream);
            $streamed = stream_get_contents($stream);

            return Response::json(
                [$fields, $files, md5($content), md5((string) $streamed), $request->getBody()->detach()],
            );
        });

        foreach ($this->ask($type, $body) as $response) {
            self::assertSame([['a' => '1'], [], md5($body), md5($body), null], $response->json());
        }
    }

    /** @return iterable<string, array{string, int, bool}> type, size, whether it can be read again */
    public static function sizes(): iterable
    {
        yield 'nothing' => ['text/xml', 0, true];
        yield 'another type' => ['text/xml', 65_536, true];
        yield 'a longer one of another type' => ['text/xml', 65_537, false];
        yield 'no type' => ['', 65_536, true];
        yield 'JSON' => ['application/json', 1_000, true];
        yield 'JSON that is longer than is parsed' => ['application/json', 1_001, false];
        yield 'multipart' => ['multipart/form-data; boundary=b', 100, false];
    }

    #[DataProvider('sizes')]
    public function testHowMuchCanBeReadAgainDependsOnTheType(string $type, int $size, bool $again): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $body = $request->getBody();
            $before = $body->getSize() === null || $body->isSeekable();
            $first = $body->getContents();
            try {
                $body->rewind();
                $second = $body->getContents();
            } catch (\RuntimeException) {
                $second = null;
            }

            return Response::json(
                [
                    $before,
                    $body->isSeekable(),
                    md5($first),
                    $second === null ? null : md5($second),
                    md5((string) $body),
                ],
            );
        }, new HttpServerOptions(forms: new FormLimits(maxTextBytes: 1_000)));
        $bytes = str_repeat('x', $size);
        if (str_contains($type, 'json')) {
            $bytes = str_pad('', 64_536) . $bytes; // bodies below 64 KiB are kept for every type
        }
        $md5 = md5($bytes);

        [$framed, $chunked] = $this->ask($type, $bytes);
        self::assertSame([$again, $again, $md5, $again ? $md5 : null, $again ? $md5 : md5('')], $framed->json());
        self::assertSame([true, $again, $md5, $again ? $md5 : null, $again ? $md5 : md5('')], $chunked->json());
    }

    public function testThePositionInABodyCanBeSet(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $body = $request->getBody();
            $body->seek(4);
            $read = [$body->tell(), $body->read(2)];
            $body->seek(-3, \SEEK_CUR);
            array_push($read, $body->tell(), $body->getContents());
            $body->seek(-1, \SEEK_END);
            $read[] = $body->getContents();
            foreach ([[-1, \SEEK_SET], [11, \SEEK_SET], [1, \SEEK_END], [0, 9]] as [$offset, $whence]) {
                try {
                    $body->seek($offset, $whence);
                } catch (\RuntimeException $refusal) {
                    $read[] = $refusal->getMessage();
                }
            }

            return Response::json($read);
        });
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01");
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler waits');
        $client->send('23456789');

        self::assertSame([
            4,
            '45',
            3,
            '3456789',
            '9',
            'The body ends before position -1',
            'The body ends before position 11',
            'The body ends before position 11',
            'The argument $whence must be SEEK_SET, SEEK_CUR or SEEK_END, not 9',
        ], $client->response()->json());
    }

    public function testALongBodyIsDetachedWithItsRest(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $begin = $request->getBody()->read(2);
            $file = $request->getBody()->detach();
            self::assertIsResource($file);

            return Response::json([$begin, md5((string) stream_get_contents($file))]);
        });
        $body = 'ab' . random_bytes(300_000);

        foreach ($this->ask('text/xml', $body) as $response) {
            self::assertSame(['ab', md5(substr($body, 2))], $response->json());
        }
    }

    public function testProgramsDoNotInheritUploadsAndDetachedBodies(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $kept = $request->getUploadedFiles() !== [] ? null : $request->getBody()->detach();
            preg_match_all('~/(?:spindle-\w{24}|php\w{6}$)~m', (string) shell_exec('ls -l /proc/self/fd'), $inherited);

            return Response::json([\is_resource($kept), $inherited[0]]);
        });
        $content = random_bytes(3 * self::MIB);
        $form = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n{$content}\r\n--b--\r\n";

        foreach (['multipart/form-data; boundary=b' => $form, 'text/xml' => $content] as $type => $body) {
            foreach ($this->ask($type, $body) as $response) {
                self::assertSame([$type === 'text/xml', []], $response->json(), $type);
            }
        }
    }

    public function testAClosedBodyCanNotBeReadOrParsed(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $request->getBody()->close();
            $told = [$request->getBody()->eof(), $request->getBody()->isSeekable(), $request->getBody()->isReadable()];
            $uses = [
                static fn(): string => $request->getBody()->read(1),
                static fn(): string => (string) $request->getBody(),
                $request->getBody()->rewind(...),
                $request->getParsedBody(...),
            ];
            foreach ($uses as $use) {
                try {
                    $use();
                } catch (\RuntimeException|\LogicException $refusal) {
                    $told[] = $refusal->getMessage();
                }
            }

            return Response::json($told);
        });

        foreach ($this->ask('application/json', '{}') as $response) {
            self::assertSame([
                true,
                false,
                false,
                'The body was closed',
                'The body was closed',
                'This body can be read only once, from its beginning to its end',
                'The body was closed before it was parsed: call getParsedBody() or getUploadedFiles() before getBody()',
            ], $response->json());
        }
    }

    public function testAMultipartFormIsReadOnceAndThenEmpty(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            if ($request->getHeaderLine('X-First') === 'body') {
                $request->getBody()->read(1);
            }

            $seekable = $request->getBody()->isSeekable();
            $fields = $request->getParsedBody();
            $body = $request->getBody();
            $state = [$seekable, $fields, $body->eof(), $body->tell(), $body->getSize(), $body->isSeekable()];
            $body->rewind();
            array_push($state, $body->getContents(), (string) $body, $body->read(1), $body->tell(), $body->eof());
            $file = $body->detach();

            return Response::json([...$state, \is_resource($file) ? stream_get_contents($file) : null]);
        });
        $form = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--\r\n";
        $empty = [true, 0, 0, true, '', '', '', 0, true, ''];

        [$framed, $chunked] = $this->ask('multipart/form-data; boundary=b', $form);
        self::assertSame([false, ['a' => '1'], ...$empty], $framed->json());
        self::assertSame([true, ['a' => '1'], ...$empty], $chunked->json());
        foreach ($this->ask("multipart/form-data; boundary=b\r\nX-First: body", $form) as $response) {
            self::assertSame(500, $response->status);
        }
        self::assertStringContainsString(
            'call getParsedBody() or getUploadedFiles() before getBody()',
            $this->log()->failures()[0]->getMessage(),
        );
    }

    public function testACompressedBodyIsNotParsedAndCanBeRead(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            try {
                return Response::json($request->getParsedBody());
            } catch (HttpException $refusal) {
                return Response::json([$refusal->status, $refusal->headers, gzdecode((string) $request->getBody())]);
            }
        });

        foreach ($this->ask("application/json\r\nContent-Encoding: gzip", (string) gzencode('{"a":1}')) as $response) {
            self::assertSame([415, ['Accept-Encoding' => 'identity'], '{"a":1}'], $response->json());
        }
    }

    public function testABodyThatIsTooLargeIsRefusedByEachRead(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $statuses = [];
            foreach ([1, 2, 3] as $_) {
                try {
                    $statuses[] = \strlen($request->getBody()->getContents());
                } catch (HttpException $refusal) {
                    $statuses[] = $refusal->status;
                }
            }

            return Response::json($statuses);
        }, new HttpServerOptions(maxBodyBytes: 10));

        foreach ($this->ask('text/plain', 'more than ten bytes') as $response) {
            self::assertSame([413, 413, 413], $response->json());
        }
    }

    /**
     * Sends the body with a length and in chunks, on one connection each.
     *
     * @return list<ReceivedResponse>
     */
    private function ask(string $type, string $body): array
    {
        $responses = [];
        foreach (self::framings() as [$request]) {
            $client = $this->client();
            $client->sendConcurrently(str_replace(
                "Host: a\r\n",
                "Host: a\r\n" . ($type === '' ? '' : "Content-Type: {$type}\r\n"),
                $request($body),
            ));
            $responses[] = $client->response();
        }

        return $responses;
    }

    private static function echo(ServerRequestInterface $request): Response
    {
        return Response::binary($request->getBody()->getContents());
    }

    private function upload(string $content): ReceivedResponse
    {
        $body = '';
        foreach (['a', 'b[c]'] as $name) {
            $body .= "--mark\r\nContent-Disposition: form-data; name=\"{$name}\"; filename=\"f\"\r\n\r\n{$content}\r\n";
        }
        $body .= '--mark--';
        $client = $this->client();
        $client->sendConcurrently(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=mark\r\nContent-Length: "
                . \strlen($body)
                . "\r\n\r\n{$body}",
        );

        return $client->response();
    }

    /** Returns the number of open temporary files of this process. */
    private static function openUploads(): int
    {
        $open = 0;
        foreach (Text::names('/proc/self/fd') as $descriptor) {
            $open += str_contains((string) @readlink("/proc/self/fd/{$descriptor}"), '/spindle-') ? 1 : 0;
        }

        return $open;
    }

    /**
     * Checks that a call fails because the request has ended.
     *
     * @param class-string<\Throwable> $class
     * @param \Closure(): mixed        $use
     */
    private static function assertEnded(string $class, \Closure $use): void
    {
        try {
            $use();
        } catch (\Throwable $failure) {
            self::assertInstanceOf($class, $failure);
            self::assertStringContainsString('because the request has ended', $failure->getMessage());

            return;
        }
        self::fail('The request can still be used');
    }
}
