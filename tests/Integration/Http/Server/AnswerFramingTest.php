<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use GuzzleHttp\Psr7\CachingStream;
use GuzzleHttp\Psr7\FnStream;
use GuzzleHttp\Psr7\LimitStream;
use GuzzleHttp\Psr7\NoSeekStream;
use GuzzleHttp\Psr7\Utils;
use Nyholm\Psr7\Response as ForeignResponse;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Middleware\Compression;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;
use Spindle\Tests\Http\CallbackStream;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\Scale;
use Spindle\Tests\Streams;
use Symfony\Component\HttpClient\Response\StreamWrapper;

use function Amp\delay;

/** The end of a response: whatever a handler declares, the client finds the begin of the next response. */
final class AnswerFramingTest extends HttpServerTestCase
{
    /**
     * @return iterable<string, array{\Closure(array<string, string>, int): ResponseInterface}> responses with the body
     *     "body"
     */
    public static function bodies(): iterable
    {
        yield 'a string' => [self::asString(...)];
        yield 'a stream that knows its length' => [self::asStream(...)];
        yield 'a stream that does not' => [self::inPieces(...)];
        yield 'a string, of another library' => [self::ofAnotherLibrary(...)];
        yield 'a stream without a position, of another library' => [self::asPipe(...)];
    }

    /** @param \Closure(array<string, string>, int): ResponseInterface $of */
    #[DataProvider('bodies')]
    public function testTheWholeBodyArrives(\Closure $of): void
    {
        $response = $this->answer($of([], 200));

        self::assertSame([200, 'OK', 'body'], [$response->status, $response->reason, $response->body]);
        self::assertTrue(
            ($response->header('content-length') === '4') xor ($response->header('transfer-encoding') === 'chunked'),
        );
    }

    /** @param \Closure(array<string, string>, int): ResponseInterface $of */
    #[DataProvider('bodies')]
    public function testHeadGetsTheSameFieldsWithoutTheBody(\Closure $of): void
    {
        $get = $this->answer($of(['X-Own' => 'yes', 'Date' => 'Sun, 06 Nov 1994 08:49:37 GMT'], 200));
        $head = $this->answer(
            $of(['X-Own' => 'yes', 'Date' => 'Sun, 06 Nov 1994 08:49:37 GMT'], 200),
            "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        );

        // RFC 9110, 9.3.2: HEAD may omit it
        $without = static fn(array $headers): array => array_diff_key($headers, ['transfer-encoding' => 0]);
        self::assertSame([$get->status, $without($get->headers)], [$head->status, $without($head->headers)]);
    }

    /** @param \Closure(array<string, string>, int): ResponseInterface $of */
    #[DataProvider('bodies')]
    public function testABodyIsNotSentWithAStatusThatHasNone(\Closure $of): void
    {
        foreach ([204, 304] as $status) {
            $response = $this->answer($of([], $status));

            self::assertSame([$status, null], [$response->status, $response->header('transfer-encoding')]);
            self::assertNull($status === 204 ? $response->header('content-length') : null, 'RFC 9110, 8.6');
        }
    }

    public function testNotModifiedMayHaveTheLengthOfTheBodyThatIsNotSent(): void
    {
        self::assertSame(
            '1234',
            $this->answer(new Response(304, ['Content-Length' => '1234']))->header('content-length'),
        );
        self::assertNull($this->answer(new Response(304))->header('content-length'));
    }

    public function testAResponseToHeadMayHaveALengthWithoutABody(): void
    {
        $response = $this->answer(
            new Response(200, ['Content-Length' => '1234']),
            "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        );

        self::assertSame('1234', $response->header('content-length'));
    }

    /** @return iterable<string, array{ResponseInterface}> */
    public static function emptied(): iterable
    {
        yield 'a string' => [new Response(200)];
        yield 'a stream' => [new Response(200, [], Stream::create(''))];
        yield 'a stream of another library' => [new ForeignResponse(200, [], Stream::create(''))];
        yield 'no stream, of another library' => [new ForeignResponse(404)];
    }

    /** RFC 9110, 8.6: a Content-Length in the response to HEAD is the one of the response to GET, or there is none. */
    #[DataProvider('emptied')]
    public function testHeadGetsNoLengthIfTheHandlerHasRemovedTheBody(ResponseInterface $response): void
    {
        self::assertNull($this->answer($response, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")->header('content-length'));
        self::assertSame(
            '0',
            $this->answer($response, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", given: '0')->header('content-length'),
        );
        self::assertSame(
            '0',
            $this->answer($response)->header('content-length'),
            'to GET it is the length of what is sent',
        );
    }

    /** @return iterable<string, array{string, int}> */
    public static function refusals(): iterable
    {
        yield 'a field' => ["HEAD / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400];
        yield 'a version' => ["HEAD / HTTP/2.0\r\n\r\n", 505];
        yield 'an expectation' => ["HEAD / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417];
        yield 'a coding' => ["HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", 501];
        yield 'a target' => ['HEAD /' . str_repeat('a', 10_000) . " HTTP/1.1\r\nHost: a\r\n\r\n", 414];
        yield 'a target without its end' => ["\r\nHEAD /" . str_repeat('a', 10_000), 414];
        yield 'fields' => ["HEAD / HTTP/1.1\r\nHost: a\r\n" . str_repeat("X: y\r\n", 101) . "\r\n", 431];
        yield 'a head that takes too long' => ["HEAD / HTTP/1.1\r\nHost:", 408];
        yield 'a request line that takes too long' => ['HEAD /', 408];
        yield 'a handler that takes too long' => ["HEAD /slow HTTP/1.1\r\nHost: a\r\n\r\n", 503];
    }

    /** RFC 9110, 9.3.2 applies to refused requests as well. */
    #[DataProvider('refusals')]
    public function testARefusalOfHeadHasNoBody(string $request, int $status): void
    {
        $this->serve(static function (): Response {
            delay(0.5);

            return Response::text('too late');
        }, new HttpServerOptions(headTimeout: 0.05, handlerTimeout: 0.05));
        $bytes = $this->client()->send($request)->rest();
        $other = $this->client()->send(str_replace('HEAD /', 'GET /', $request))->rest();

        self::assertStringStartsWith("HTTP/1.1 {$status} ", $bytes);
        self::assertMatchesRegularExpression('/^Content-Length: [1-9]\d*\r$/m', $bytes);
        self::assertStringEndsWith("\r\n\r\n", $bytes);
        self::assertStringEndsNotWith("\r\n\r\n", $other, 'other methods get one');
    }

    #[TestWith([100])]
    #[TestWith([300_000])]
    #[TestWith([100, 'rbe'])] // Nyholm does not know this mode, and does not read the stream in pieces
    #[TestWith([300_000, 'rbe'])]
    public function testAFileWithAFilterIsSentCompletely(int $size, string $mode = 'r'): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'spindle-');
        file_put_contents($file, str_repeat("\xe4", $size));
        $stream = Streams::open($file, $mode);
        stream_filter_append($stream, 'convert.iconv.ISO-8859-1.UTF-8', \STREAM_FILTER_READ);
        try {
            $response = $this->answer(new ForeignResponse(200, [], Stream::create($stream)));
        } finally {
            unlink($file);
        }

        self::assertTrue($response->body === str_repeat('ä', $size));
        self::assertSame('chunked', $response->header('transfer-encoding'));
        self::assertSame([], $this->log()->failures());
    }

    #[TestWith(['chunks'])]
    #[TestWith(['gzip'])]
    public function testTheResponseOfAnotherServerIsSentCompletely(string $kind): void
    {
        $content = str_repeat('content', 50_000);
        $url = '';
        $client = new SymfonyClient();
        $answer = static function (ServerRequestInterface $request) use (
            $content,
            $kind,
            $client,
            &$url,
        ): ResponseInterface {
            return match ($request->getRequestTarget()) {
                '/chunks' => Response::stream(str_split($content, 100_000)),
                '/gzip' => new Response(200, ['Content-Encoding' => 'gzip'], (string) gzencode($content)),
                default => new ForeignResponse(200, [], Stream::create(
                    StreamWrapper::createResource($client->request('GET', "{$url}/{$kind}"), $client),
                )),
            };
        };
        $this->serve($answer);
        $url = str_replace('tcp:', 'http:', $this->address);
        $response = $this->client()->get('/')->response();

        self::assertTrue($response->body === $content);
        self::assertSame([], $this->log()->failures());
    }

    #[TestWith([100, true])]
    #[TestWith([300_000, false])]
    #[TestWith([100, true, false])]
    #[TestWith([300_000, true, false])]
    public function testAStreamThatIsLongerThanItsSizeIsNotComplete(
        int $size,
        bool $isShort,
        bool $isReadable = true,
    ): void {
        $this->serve(static fn(): ForeignResponse => new ForeignResponse(200, [], FnStream::decorate(
            Utils::streamFor(self::filteredMemory(str_repeat("\xe4", $size))),
            ['isReadable' => static fn(): bool => $isReadable],
        )));
        $bytes = $this->client()->get('/')->end()->rest();
        $body = substr((string) strstr($bytes, "\r\n\r\n"), 4);

        self::assertStringStartsWith($isShort ? 'HTTP/1.1 500 ' : 'HTTP/1.1 200 ', $bytes);
        self::assertTrue($isShort || \strlen($body) < $size);
        self::assertCount(1, $this->log()->failures());
    }

    #[TestWith([100, false])]
    #[TestWith([300_000, false])]
    #[TestWith([100, true])]
    #[TestWith([300_000, true])]
    #[TestWith([100, false, 'rbe'])]
    #[TestWith([300_000, true, 'rbe'])]
    public function testAFileThatHasGrownIsSentUpToItsFirstSize(int $size, bool $isRenamed, string $mode = 'r'): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'spindle-');
        file_put_contents($file, str_repeat('x', $size));
        try {
            $this->serve(static function () use ($file, $isRenamed, $mode): ForeignResponse {
                $stream = Stream::create(Streams::open($file, $mode));
                $stream->getSize();
                file_put_contents($file, 'more', \FILE_APPEND);
                $isRenamed ? rename($file, "{$file}.1") : null;

                return new ForeignResponse(200, [], $stream);
            });
            $bytes = $this->client()->get('/')->end()->rest();
        } finally {
            unlink($isRenamed ? "{$file}.1" : $file);
        }

        self::assertStringEndsWith("\r\n\r\n" . str_repeat('x', $size), $bytes);
        self::assertSame([], $this->log()->failures());
    }

    /** @return iterable<string, array{\Closure(StreamInterface): StreamInterface}> */
    public static function streamsWithoutAnEnd(): iterable
    {
        yield 'a stream that cannot seek' => [
            static fn(StreamInterface $file): StreamInterface => new NoSeekStream($file),
        ];
        yield 'a part of a file' => [
            static fn(StreamInterface $file): StreamInterface => new LimitStream($file, -1, 4),
        ];
    }

    /** @param \Closure(StreamInterface): StreamInterface $decorate */
    #[DataProvider('streamsWithoutAnEnd')]
    public function testAFilteredStreamWithoutAnEndIsNotComplete(\Closure $decorate): void
    {
        $stream = self::filteredMemory(str_repeat("\xe4", 20_000));

        $response = $this->answer(new ForeignResponse(200, [], $decorate(Utils::streamFor($stream))));

        self::assertLessThan(20_000, \strlen($response->body));
        self::assertCount(1, $this->log()->failures());
    }

    /**
     * PHP reports the size of this stream before the filter.
     *
     * @return resource
     */
    private static function filteredMemory(string $content): mixed
    {
        $stream = Streams::open('php://memory', 'w+');
        fwrite($stream, $content);
        rewind($stream);
        stream_filter_append($stream, 'convert.iconv.ISO-8859-1.UTF-8', \STREAM_FILTER_READ);

        return $stream;
    }

    public function testAFileThatHasGrownIsSentAlthoughItsEndIsHidden(): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'spindle-');
        file_put_contents($file, str_repeat('x', 100));
        $source = Utils::streamFor(Streams::open($file, 'r'));
        $source->getSize();
        file_put_contents($file, 'more', \FILE_APPEND);
        try {
            $response = $this->answer(new ForeignResponse(200, [], new NoSeekStream($source)));
        } finally {
            unlink($file);
        }

        self::assertSame([200, str_repeat('x', 100)], [$response->status, $response->body]);
        self::assertSame([], $this->log()->failures());
    }

    public function testAFileOfTheKernelIsSentAlthoughItsSizeIsZero(): void
    {
        $response = $this->answer(new ForeignResponse(200, [], Stream::create(Streams::open('/proc/version', 'r'))));

        self::assertSame([200, file_get_contents('/proc/version')], [$response->status, $response->body]);
        self::assertSame('chunked', $response->header('transfer-encoding'));
        self::assertSame([], $this->log()->failures());
    }

    /** The size of this stream is the number of bytes that were read from the pipe. */
    public function testAStoredPipeIsNotAnsweredAsAnEmptyBody(): void
    {
        $pipe = popen('echo body', 'r');
        self::assertIsResource($pipe);

        $response = $this->answer(new ForeignResponse(200, [], new CachingStream(Utils::streamFor($pipe))));

        self::assertSame(500, $response->status);
        self::assertCount(1, $this->log()->failures());
    }

    /** A read beyond the length could wait for the other side of the connection. */
    public function testBytesAfterABodyFromAConnectionStayUnread(): void
    {
        [$here, $there] = Streams::pair();
        fwrite($there, 'hello and more');
        $body = Utils::streamFor($here, ['size' => 5]);

        self::assertSame('hello', $this->answer(new ForeignResponse(200, [], $body))->body);
        self::assertSame([], $this->log()->failures());
    }

    /** @param \Closure(array<string, string>, int): ResponseInterface $of */
    #[DataProvider('bodies')]
    public function testAWrongLengthDoesNotDesynchronizeTheConnection(\Closure $of): void
    {
        foreach (['0', '3', '5', '-1', '4, 4', 'four', '99999999999999999999'] as $length) {
            $this->serve(
                static fn(ServerRequestInterface $request): ResponseInterface
                    => $request->getRequestTarget() === '/next'
                    ? Response::text('next')
                    : $of(['Content-Length' => $length], 200),
            );
            $client = $this->client()->get('/')->get('/next');
            $bytes = $client->end()->rest();

            $head = (string) strstr($bytes, "\r\n\r\n", true);
            $rest = substr($bytes, \strlen($head) + 4);
            if (str_ends_with($rest, 'next')) {
                $announced = preg_match('/^Content-Length: (\d+)\r?$/m', $head, $match) === 1 ? (int) $match[1] : null;
                $first = substr($rest, 0, (int) strpos($rest, 'HTTP/1.1'));
                self::assertTrue(
                    $announced === null
                        ? $first === "4\r\nbody\r\n0\r\n\r\n" || $first === "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"
                        : \strlen($first) === $announced,
                    "{$length}: {$bytes}",
                );
            } else {
                self::assertStringContainsString('Content-Length: 5', $head, 'only what is too short is broken off');
                self::assertSame('body', $rest);
                self::assertCount(1, $this->log()->failures());
            }
        }
    }

    /** @param \Closure(array<string, string>, int): ResponseInterface $of */
    #[DataProvider('bodies')]
    public function testOnlyTheServerSetsFieldsOfTheConnection(\Closure $of): void
    {
        $response = $this->answer($of([
            'Transfer-Encoding' => 'gzip, chunked',
            'Connection' => 'upgrade',
            'Upgrade' => 'websocket',
            'Keep-Alive' => 'timeout=1000',
            'Trailer' => 'X', 'TE' => 'trailers', 'Proxy-Connection' => 'close',
        ], 200));

        self::assertSame('body', $response->body);
        self::assertSame(
            [],
            array_diff(array_keys($response->headers), ['content-type', 'date', 'content-length', 'transfer-encoding']),
        );
    }

    /** @param \Closure(array<string, string>, int): ResponseInterface $of */
    #[DataProvider('bodies')]
    public function testAnHttp10ClientGetsNoChunks(\Closure $of): void
    {
        $response = $this->answer($of([], 200), "GET / HTTP/1.0\r\n\r\n", isLast: true);

        self::assertSame(
            ['body', null, 'close'],
            [$response->body, $response->header('transfer-encoding'), $response->header('connection')],
        );
    }

    public function testAKeptHttp10ConnectionEndsAfterABodyOfUnknownLength(): void
    {
        $request = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";

        self::assertSame(
            'close',
            $this->answer(Response::stream(['bo', 'dy']), $request, isLast: true)->header('connection'),
        );
        self::assertSame(
            'keep-alive',
            $this->answer(Response::stream(['bo', 'dy'], status: 304), $request)->header('connection'),
        );
        self::assertSame(
            'keep-alive',
            $this->answer(
                Response::stream(['bo', 'dy'], headers: ['Content-Length' => '4']),
                $request,
            )->header('connection'),
        );
    }

    /**
     * RFC 9110, 15.5.22: 426 says which protocol is required.
     *
     * @param \Closure(array<string, string>, int): ResponseInterface $of
     */
    #[DataProvider('bodies')]
    public function testARequiredUpgradeIsNamed(\Closure $of): void
    {
        $fields = ['Upgrade' => 'HTTP/3.0', 'Connection' => 'Upgrade'];
        $response = $this->answer($of($fields, 426));
        self::assertSame(
            ['HTTP/3.0', 'upgrade', 'body'],
            [$response->header('upgrade'), $response->header('connection'), $response->body],
        );

        $last = $this->answer(
            $of($fields, 426),
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            isLast: true,
        );
        self::assertSame(['HTTP/3.0', 'upgrade, close'], [$last->header('upgrade'), $last->header('connection')]);
    }

    public function testABodyOfUnknownLengthIsSentInAChunkPerLongPiece(): void
    {
        $response = $this->answer(Response::stream(['a', '', str_repeat('b', 20_000), 'c']));

        self::assertSame('a' . str_repeat('b', 20_000) . 'c', $response->body);
        self::assertSame(3, $response->chunks);
    }

    public function testAStreamIsSentFromItsBeginning(): void
    {
        $stream = Stream::create('body');
        $stream->read(2);

        self::assertSame('body', $this->answer(new Response(200, [], $stream))->body);
    }

    public function testAStreamLongerThanItsLengthIsTruncated(): void
    {
        self::assertSame(
            'body',
            $this->answer(new Response(200, ['Content-Length' => '4'], new Generous('body and soul')))->body,
        );
    }

    /** @return iterable<string, array{\Closure(): ResponseInterface, int}> answers, with the least size of the body */
    public static function tooLongBodies(): iterable
    {
        $long = str_repeat('x', 3_000);
        $of = static fn(string|StreamInterface $body): ResponseInterface
            => new Response(200, ['Content-Length' => '2000', 'Content-Type' => 'text/plain'], $body);
        yield 'the rest of a piece' => [static fn() => self::announcing([$long]), 3_000];
        yield 'another piece' => [static fn() => self::announcing([...str_split($long, 500)]), 2_500];
        yield 'an endless generator' => [static fn() => self::announcing((static function () use ($long): \Generator {
            while (true) {
                yield $long;
            }
        })()), 3_000];
        yield 'a generous stream' => [static fn() => $of(new Generous($long)), 3_000];
        yield 'a callback' => [
            static fn() => $of(new CallbackStream(static fn(): string => $long)),
            3_000,
        ];
        $file = Stream::create(Streams::open('/proc/cpuinfo', 'r'));
        yield 'a file of the size 0' => [static fn() => $of($file), 2_001];
    }

    /** @param iterable<string> $pieces */
    private static function announcing(iterable $pieces): Response
    {
        return Response::stream($pieces, 'text/plain', headers: ['Content-Length' => '2000']);
    }

    /** @param \Closure(): ResponseInterface $answer */
    #[DataProvider('tooLongBodies')]
    public function testABodyLongerThanItsLengthIsLoggedOnce(\Closure $answer, int $least): void
    {
        foreach (['', "Accept-Encoding: gzip\r\n"] as $field) {
            $this->serve(new MiddlewareStack(
                static fn(ServerRequestInterface $request): ResponseInterface
                    => $request->getRequestTarget() === '/next' ? Response::text('next') : $answer(),
                new Compression(),
            ));
            $client = $this->client()->send("GET /rows?a=1 HTTP/1.1\r\nHost: a\r\n{$field}\r\n")->get('/next');
            $body = $client->response()->body;

            self::assertSame(2_000, \strlen($field === '' ? $body : (string) gzdecode($body)));
            self::assertSame('next', $client->response()->body);
            self::assertCount(1, $this->log()->all);
            ['level' => $level, 'message' => $message, 'context' => $context] = $this->log()->all[0];
            self::assertSame(['error', 'GET', '/rows?a=1'], [$level, $context['method'], $context['target']]);
            self::assertMatchesRegularExpression(
                '/^The response to {method} {target} was cut off after 2000 bytes, its Content-Length\.'
                    . ' Its body has at least \d+ bytes$/D',
                $message,
            );
            preg_match('/least (\d+)/', $message, $found);
            self::assertGreaterThanOrEqual($least, (int) ($found[1] ?? 0));
        }
    }

    public function testABodyShorterThanItsLengthIsLoggedWithBothSizes(): void
    {
        foreach (['', "Accept-Encoding: gzip\r\n"] as $field) {
            $this->serve(new MiddlewareStack(
                static fn(): ResponseInterface
                    => Response::stream(['bo', 'dy'], 'text/plain', headers: ['Content-Length' => '2000']),
                new Compression(),
            ));
            $this->client()->send("GET /rows HTTP/1.1\r\nHost: a\r\n{$field}\r\n")->rest();

            self::assertCount(1, $this->log()->all);
            ['message' => $message, 'context' => $context] = $this->log()->all[0];
            self::assertSame('/rows', $context['target']);
            self::assertMatchesRegularExpression(
                '/failed: The (response )?body has 4 bytes instead of the announced 2000$/D',
                $message,
            );
        }
    }

    /** The server may cache heads of equal responses, and must not confuse similar ones. */
    public function testEachResponseHasItsOwnHead(): void
    {
        $responses = [
            Response::text('a'), Response::text('b', 404), Response::json(['c']), Response::text(
                'd',
                headers: ['X' => '1'],
            ), Response::text('e', headers: ['X' => '2']),
            Response::text(
                'f',
                headers: ['x' => '2'],
            ), Response::text('g')->withStatus(
                200,
                'Fine',
            ), Response::text('h'), new Response(204), new Response(), new Response(304),
            Response::text(
                'i',
                headers: ['Connection' => 'keep-alive'],
            ), Response::text('j')->withAddedHeader(
                'X',
                '1',
            )->withAddedHeader('X', '2'), Response::text('k')->withoutHeader('Content-Type'),
        ];
        mt_srand(Scale::seed());
        $order = array_map(static fn(): int => mt_rand(0, \count($responses) - 1), range(1, 300));
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => $responses[(int) ltrim($request->getRequestTarget(), '/')],
        );
        $client = $this->client();

        foreach ($order as $which) {
            $expected = $responses[$which];
            $response = $client->get("/{$which}")->response();
            self::assertSame(
                [$expected->getStatusCode(), $expected->getReasonPhrase(), $expected->body()],
                [$response->status, $response->reason, $response->body],
            );
            self::assertEqualsCanonicalizing(
                array_diff(array_keys(array_change_key_case($expected->getHeaders())), ['connection']),
                array_diff(array_keys($response->headers), ['date', 'content-length']),
            );
            self::assertSame($expected->getHeader('X'), $response->headers['x'] ?? []);
        }
    }

    public function testAnInterimStatusIsRefused(): void
    {
        foreach ([100, 101, 103] as $status) {
            $response = $this->answer(new ForeignResponse($status, [], 'body'));
            self::assertSame(500, $response->status, 'the client would wait for another answer');
        }
        self::assertSame(500, $this->answer(new ForeignResponse(1000, [], 'body'))->status, 'that is no status at all');
    }

    public function testAHostileReasonPhraseIsLeftOut(): void
    {
        $response = $this->answer(new ForeignResponse(200, [], 'body', reason: "OK\r\nX-Injected: yes"));

        self::assertSame(['', null, 'body'], [$response->reason, $response->header('x-injected'), $response->body]);
    }

    public function testAReasonPhraseIsSentUnchanged(): void
    {
        self::assertSame('Très bien', $this->answer(new ForeignResponse(200, [], 'body', reason: 'Très bien'))->reason);
        self::assertSame('', $this->answer(new Response(299))->reason, 'a status without one of its own');
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function injections(): iterable
    {
        yield 'a value, in the constructor' => [static fn() => new Response(200, ['X' => "a\r\nInjected: yes"])];
        yield 'one of several values' => [static fn() => new Response(200, ['X' => ['a', "b\nc"]])];
        yield 'a value with NUL' => [static fn() => (new Response())->withHeader('X', "a\0")];
        yield 'a value that is added' => [static fn() => (new Response())->withAddedHeader('X', "a\rb")];
        yield 'a name' => [static fn() => (new Response())->withHeader("X: a\r\nY", 'b')];
        yield 'an empty name' => [static fn() => (new Response())->withHeader('', 'b')];
        yield 'a reason phrase' => [static fn() => (new Response())->withStatus(200, "OK\r\nX: y")];
        yield 'the type of a text' => [static fn() => Response::binary('', "text/plain\r\nX: y")];
        yield 'an exception that is answered' => [
            static fn() => new HttpException(400, 'Bad', ['X' => "a\r\nInjected: yes"]),
        ];
    }

    /** @param \Closure(): mixed $set */
    #[DataProvider('injections')]
    public function testWhatCanNotBeSentUnchangedThrowsWhenItIsSet(\Closure $set): void
    {
        $thrown = null;
        $this->serve(static function () use ($set, &$thrown): Response {
            try {
                $set();
            } catch (\InvalidArgumentException $thrown) {
            }

            return Response::text('harmless');
        });

        self::assertSame('harmless', $this->client()->get('/')->response()->body);
        self::assertInstanceOf(\InvalidArgumentException::class, $thrown);
    }

    public function testALineBreakInALocationIsEncoded(): void
    {
        $response = $this->answer(Response::redirect("/a\r\nSet-Cookie: b=c"));

        self::assertSame(
            [303, '/a%0D%0ASet-Cookie:%20b=c', null],
            [$response->status, $response->header('location'), $response->header('set-cookie')],
        );
    }

    /** @param string $request of this response; another request follows, unless this is the last */
    private function answer(
        ResponseInterface $answer,
        string $request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        bool $isLast = false,
        ?string $given = null,
    ): ReceivedResponse {
        $answer = $given === null ? $answer : $answer->withHeader('Content-Length', $given);
        $this->serve(
            static fn(ServerRequestInterface $request): ResponseInterface
                => $request->getRequestTarget() === '/next' ? Response::text('next') : $answer,
        );
        $client = $this->client()->send($request)->get('/next');
        $response = $client->response(strstr($request, ' ', true) === 'HEAD' ? 'HEAD' : 'GET');
        $isLast
            ? self::assertTrue($client->isEnded())
            : self::assertSame('next', $client->response()->body, "After {$response->head}");

        return $response;
    }

    /** @param array<string, string> $headers */
    private static function asString(array $headers, int $status): Response
    {
        return new Response($status, $headers, 'body');
    }

    /** @param array<string, string> $headers */
    private static function asStream(array $headers, int $status): Response
    {
        return new Response($status, $headers, Stream::create('body'));
    }

    /** @param array<string, string> $headers */
    private static function inPieces(array $headers, int $status): Response
    {
        return Response::stream(['bo', 'dy'], status: $status, headers: $headers);
    }

    /** @param array<string, string> $headers */
    private static function ofAnotherLibrary(array $headers, int $status): ForeignResponse
    {
        return new ForeignResponse($status, $headers, 'body');
    }

    /**
     * Creates a response whose body can be read once and has an unknown size.
     *
     * @param array<string, string> $headers
     */
    private static function asPipe(array $headers, int $status): ForeignResponse
    {
        [$read, $write] = Streams::pair();
        fwrite($write, 'body');
        fclose($write);

        return new ForeignResponse($status, $headers, Stream::create($read));
    }
}
