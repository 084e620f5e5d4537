<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Amp\DeferredFuture;
use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Middleware\Compression;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\Http\HttpServerTestCase;

use function Amp\Future\await;

/** Responses that are compressed while they are sent. */
#[RequiresPhpExtension('zlib')]
final class CompressionTest extends HttpServerTestCase
{
    private const GZIP = "Accept-Encoding: gzip\r\n";

    public function testABodyThatWasWrittenIsSentWhole(): void
    {
        $this->serveCompressed(static function (): ResponseInterface {
            $response = (new Psr17Factory())->createResponse()->withHeader('Content-Type', 'text/html');
            $response->getBody()->write(str_repeat('hello ', 500));

            return $response;
        });
        $client = $this->client();

        self::assertSame(str_repeat('hello ', 500), gzdecode($client->get('/', self::GZIP)->response()->body));
        self::assertSame(str_repeat('hello ', 500), $client->get('/')->response()->body);
    }

    public function testAResponseThatIsKeptIsSentAgainAndAgain(): void
    {
        foreach ([3_000, 300_000] as $size) {
            $text = substr(base64_encode(random_bytes(300_000)), 0, $size);
            $response = new Response(200, ['Content-Type' => 'text/plain'], Stream::create($text));
            $this->serveCompressed(static fn(): ResponseInterface => $response);
            $client = $this->client();
            foreach ([1, 2] as $time) {
                self::assertTrue(
                    $text === gzdecode($client->get('/', self::GZIP)->response()->body),
                    "compressed, time {$time}",
                );
                self::assertTrue($text === $client->get('/')->response()->body, "as it is, time {$time}");
            }
        }
    }

    public function testAResponseIsSentToSeveralAtOnce(): void
    {
        $text = base64_encode(random_bytes(6_000_000));
        $response = new Response(200, ['Content-Type' => 'text/plain'], Stream::create($text));
        $this->serveCompressed(static fn(): ResponseInterface => $response);
        $clients = [
            $this->client()->get('/', self::GZIP),
            $this->client()->get('/', self::GZIP),
            $this->client()->get('/'),
        ];
        $bodies = await(array_map(
            static fn($client) => Async::run(static fn(): string => $client->response()->body),
            $clients,
        ));

        self::assertTrue($text === gzdecode($bodies[0]), 'the first');
        self::assertTrue($text === gzdecode($bodies[1]), 'the second');
        self::assertTrue($text === $bodies[2], 'the one that is not compressed');
    }

    public function testABodyThatCanBeReadOnceIsNotAnsweredWithTwice(): void
    {
        $response = Response::stream([str_repeat('once ', 1000)], 'text/plain');
        $this->serveCompressed(static fn(): ResponseInterface => $response);
        $client = $this->client()->get('/', self::GZIP)->get('/', self::GZIP);

        self::assertSame(str_repeat('once ', 1000), gzdecode($client->response()->body));
        self::assertSame(500, $client->response()->status, 'nothing would be taken for whole');
    }

    public function testSmallPiecesThatFollowOneAnotherAreCompressedTogether(): void
    {
        $rows = array_map(static fn(int $row): string => "{$row},name,2026\n", range(100_000_000, 100_000_999));
        $this->serveCompressed(static fn(): ResponseInterface => Response::stream($rows, 'text/csv'));
        $body = $this->client()->get('/', self::GZIP)->response()->body;

        self::assertSame(implode('', $rows), gzdecode($body));
        self::assertLessThan(8_000, \strlen($body), 'a flush after each row takes twice as many bytes');
    }

    public function testPiecesAreCompressedAndSentBeforeTheIteratorWaits(): void
    {
        /** @var list<DeferredFuture<null>> $gates */
        $gates = [new DeferredFuture(), new DeferredFuture()];
        $this->serveCompressed(static fn(): Response => Response::stream((static function () use ($gates): \Generator {
            foreach ($gates as $gate) {
                yield from ['one', 'two', 'six'];
                $gate->getFuture()->await();
            }
        })(), 'text/csv'));
        $client = $this->client()->get('/', self::GZIP);
        $inflate = inflate_init(\ZLIB_ENCODING_GZIP);
        \assert($inflate !== false);

        $client->until("\r\n\r\n");
        foreach ($gates as $gate) {
            $text = '';
            while (\strlen($text) < 9) {
                $text .= inflate_add($inflate, $client->bytes((int) hexdec($client->until("\r\n"))));
                $client->bytes(2);
            }
            self::assertSame('onetwosix', $text, 'while the iterator waits');
            $gate->complete();
        }
        self::assertStringEndsWith("\r\n0", $client->until("\r\n\r\n"));
    }

    #[TestWith(['GET'])]
    #[TestWith(['HEAD'])]
    public function testABodyThatIsBeingSentIsNotSentInASecondResponse(string $method): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $response = Response::stream((static function () use ($gate): \Generator {
            yield 'one';
            $gate->getFuture()->await();
            yield 'two';
        })(), 'text/csv');
        $this->serveCompressed(static fn(): Response => $response);
        $first = $this->client()->get('/', self::GZIP);
        $first->until("\r\n\r\n");
        $request = "{$method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept-Encoding: gzip\r\n\r\n";
        $status = substr($this->client()->send($request)->rest(), 9, 3);
        $gate->complete();

        $inflate = inflate_init(\ZLIB_ENCODING_GZIP);
        \assert($inflate !== false);
        $text = '';
        while (($size = (int) hexdec($first->until("\r\n"))) > 0) {
            $text .= inflate_add($inflate, $first->bytes($size));
            $first->bytes(2);
        }
        self::assertSame(['onetwo', $method === 'HEAD' ? '200' : '500'], [$text, $status]);
    }

    /** @param \Closure(ServerRequestInterface): ResponseInterface $handler */
    private function serveCompressed(\Closure $handler): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): ResponseInterface
                => (new Compression())->process($request, new class ($handler) implements RequestHandlerInterface {
                    /** @param \Closure(ServerRequestInterface): ResponseInterface $handler */
                    public function __construct(private readonly \Closure $handler) {}

                    public function handle(ServerRequestInterface $request): ResponseInterface
                    {
                        return ($this->handler)($request);
                    }
                }),
        );
    }
}
