<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;

use function Amp\delay;

/** Clients that send as much as possible of data that is more expensive for the server than for them. */
final class FloodTest extends HttpServerTestCase
{
    private const MIB = 1_048_576;
    private const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    /** Number of requests handled. */
    private int $handled = 0;

    public function testRequestsWithUnreadResponsesAreNotAnsweredWithoutLimit(): void
    {
        $this->serve(function (): Response {
            ++$this->handled;

            return Response::text(str_repeat('x', 1_000));
        });
        $this->flood(100_000);
    }

    public function testRequestsOfSuspendedHandlersAreNotReadWithoutLimit(): void
    {
        $this->serve(function (): Response {
            ++$this->handled;
            delay(0);

            return Response::text(str_repeat('x', 50_000));
        });
        $this->flood(3_000);
    }

    public function testRequestsWithUnreadBodiesAreNotReadWithoutLimit(): void
    {
        $this->serve(function (): Response {
            ++$this->handled;

            return Response::text(str_repeat('x', 10_000));
        });
        $this->flood(3_000, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n" . str_repeat('y', 10_000));
    }

    public function testAFloodDelaysNoOtherClient(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response => Response::text($request->getRequestTarget()),
        );
        $flood = $this->client();
        $flood->sendConcurrently(str_repeat(self::GET, 200_000));
        $read = 0;
        \Spindle\Tests\Async::run(static function () use ($flood, &$read): void {
            for (; ;) {
                $read += \strlen($flood->bytes(10_000));
            }
        })->ignore();

        for ($i = 0; $i < 20; ++$i) {
            self::assertSame("/{$i}", $this->client()->get("/{$i}")->response()->body);
        }
        self::assertGreaterThan(0, $read);
    }

    public function testEmptyLinesAreNotARequest(): void
    {
        $this->serve(self::measure(...));
        $client = $this->client()->send("\r\n\r\n" . self::GET);
        self::assertSame(200, $client->response()->status, 'some are harmless');
        $client->sendConcurrently(str_repeat("\r\n", self::MIB));

        self::assertFalse($client->response()->keepsConnection());
    }

    public function testExtensionsOfChunksAreLimited(): void
    {
        $this->serve(self::measure(...));
        $begin = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

        self::assertSame('1', $this->client()->send("{$begin}1;a=b;c=\"d\"\r\nx\r\n0;e\r\n\r\n")->response()->body);
        foreach ([
            'in one line' => '1;' . str_repeat('x', 100_000),
            'in many' => str_repeat("1;a=bcdefghijklmnopqrstuvwxyz\r\nx\r\n", 10_000),
        ] as $how => $bytes) {
            $client = $this->client();
            $client->sendConcurrently($begin . $bytes);
            self::assertSame(400, $client->response()->status, $how);
            self::assertTrue($client->isEnded());
        }
    }

    public function testTrailersAreLimited(): void
    {
        $this->serve(self::measure(...));
        $client = $this->client();
        $client->sendConcurrently(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
                . str_repeat("X: y\r\n", 100_000),
        );

        self::assertSame(431, $client->response()->status);
        self::assertTrue($client->isEnded());
    }

    public function testTrailersOfAnUnreadBodyAreLimitedToo(): void
    {
        $this->serve(static fn(): Response => Response::text('did not look'));
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
        );
        self::assertSame('did not look', $client->response()->body);
        $client->sendConcurrently(str_repeat("X: y\r\n", self::MIB));

        $client->rest();
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'it is left');
    }

    public function testABodyInVerySmallChunksNeedsLittleMemory(): void
    {
        $this->serve(self::measure(...));
        $client = $this->client();
        $before = memory_get_usage();
        $client->sendConcurrently(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                . str_repeat("1\r\nx\r\n", 100_000)
                . "0\r\n\r\n",
        );

        self::assertSame('100000', $client->response()->body);
        self::assertLessThan(4 * self::MIB, memory_get_usage() - $before);
    }

    public function testClosedConnectionsLeaveNothingInMemory(): void
    {
        $this->serve(self::measure(...), new HttpServerOptions(maxConnectionsPerAddress: 10_000));
        for ($i = 0; $i < 300; ++$i) {
            $client = $this->client()->send(substr(self::GET, 0, $i % \strlen(self::GET)));
            $i % 3 === 0 ? delay(0) : null;
            $client->close();
        }
        gc_collect_cycles();
        $before = memory_get_usage();
        for ($i = 0; $i < 300; ++$i) {
            $client = $this->client()->get('/');
            $client->response();
            $client->close();
            array_pop($this->clients);
        }
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'they have ended');
        gc_collect_cycles();

        self::assertLessThan(200_000, memory_get_usage() - $before, 'less than 700 bytes each');
    }

    private static function measure(ServerRequestInterface $request): Response
    {
        return Response::text((string) \strlen((string) $request->getBody()));
    }

    private function flood(int $requests, string $request = self::GET): void
    {
        $flood = str_repeat($request, $requests);
        $before = memory_get_usage();
        $this->client()->sendConcurrently($flood);
        Eventually::standsStill(fn(): int => $this->handled, 'it stands still', 15);

        self::assertLessThan($requests, $this->handled);
        self::assertLessThan(4 * self::MIB, memory_get_usage() - $before);
        self::assertSame(200, $this->client()->get('/')->response()->status, 'others are served');
    }
}
