<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Amp\Cancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\MeasuresGrowth;

use function Amp\delay;

/** Requests and connections release their memory at their end, without PHP's garbage collector. */
final class LeakTest extends HttpServerTestCase
{
    use MeasuresGrowth;

    private const ROUNDS = 300;

    /** Allowed bytes per round, for PHP's own caches. */
    private const MAX_GROWTH = 40;

    /** @return iterable<string, array{string}> */
    public static function requests(): iterable
    {
        $post = static fn(
            string $target,
            string $type,
            string $body,
        ): string => "POST {$target} HTTP/1.1\r\nHost: a\r\nContent-Type: {$type}\r\nContent-Length: "
            . \strlen($body)
            . "\r\n\r\n{$body}";
        $part = "--m\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc\r\n--m--\r\n";
        yield 'a request' => ["GET / HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'whose handler suspends' => ["GET /delay HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'whose handler asks for everything' => ["GET /all?a=b HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n"];
        yield 'whose handler keeps a cancellation' => ["GET /cancellation HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'whose handler throws' => ["GET /throws HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'that is answered by a stream' => ["GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'that is answered by a file' => ["GET /file HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'whose body is read' => [$post('/body', 'text/plain', 'abc')];
        yield 'whose body is not read' => [$post('/', 'text/plain', 'abc')];
        yield 'whose body comes in chunks' => [
            "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
        ];
        yield 'with a form' => [$post('/all', 'application/x-www-form-urlencoded', 'a=b')];
        yield 'with JSON' => [$post('/all', 'application/json', '{"a": ["b"]}')];
        yield 'with a file' => [$post('/all', 'multipart/form-data; boundary=m', $part)];
        yield 'with a malformed body' => [$post('/all', 'application/json', '{')];
    }

    public function testAServerLeavesNothingInMemory(): void
    {
        $round = static function (): void {
            $server = new HttpServer(self::handle(...));
            $server->start('127.0.0.1:0');
            $server->kill();
            unset($server);
            gc_collect_cycles(); // the parts of a server refer to each other
        };

        self::assertNoGrowth($round, self::ROUNDS, self::MAX_GROWTH);
    }

    #[DataProvider('requests')]
    public function testARequestLeavesNothingInMemory(string $request): void
    {
        $this->serve(self::handle(...));
        $client = $this->client();
        $round = static fn() => $client->send($request)->response();

        self::assertNoGrowth($round, self::ROUNDS, self::MAX_GROWTH);
        self::assertSame(1, $this->server()->statistics()->acceptedConnections);
    }

    /** @return iterable<string, array{string}> */
    public static function connections(): iterable
    {
        yield 'on which nothing comes' => [''];
        yield 'with a part of a head' => ["GET / HTTP/1.1\r\nHo"];
        yield 'with a request' => ["GET / HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'that is refused' => ["no request\r\n\r\n"];
        yield 'that ends in a body' => ["POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"];
        yield 'that ends while a handler is suspended' => ["GET /delay HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'that ends in a streamed answer' => ["GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"];
    }

    #[DataProvider('connections')]
    public function testAConnectionLeavesNothingInMemory(string $bytes): void
    {
        $this->serve(self::handle(...));
        $round = function () use ($bytes): void {
            $client = $this->client()->send($bytes);
            delay(0);
            $client->close();
            array_pop($this->clients);
            while ($this->server()->statistics()->connections > 0) {
                delay(0);
            }
        };

        self::assertNoGrowth($round, self::ROUNDS, 10 * self::MAX_GROWTH);
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 0, 'no handler is left');
    }

    private static function handle(ServerRequestInterface $request): Response
    {
        return match ($request->getUri()->getPath()) {
            '/delay' => self::delayed(),
            '/all' => self::everything($request),
            '/cancellation' => Response::text(
                $request->getAttribute(Cancellation::class) instanceof Cancellation ? 'yes' : 'no',
            ),
            '/throws' => throw new HttpException(404, 'Not here'),
            '/stream' => Response::stream(self::pieces()),
            '/file' => Response::file(__FILE__, $request),
            '/body' => Response::text((string) $request->getBody()),
            default => Response::text('hello'),
        };
    }

    private static function delayed(): Response
    {
        delay(0);

        return Response::text('late');
    }

    private static function everything(ServerRequestInterface $request): Response
    {
        return Response::json(
            [
                $request->getQueryParams(),
                $request->getCookieParams(),
                $request->getServerParams(),
                $request->getParsedBody(),
                \count($request->getUploadedFiles()),
                array_keys($request->getAttributes()),
            ],
        );
    }

    /** @return \Generator<string> */
    private static function pieces(): \Generator
    {
        yield 'a';
        delay(0);
        yield 'b';
    }
}
