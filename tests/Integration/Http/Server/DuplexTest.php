<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;

use function Amp\async;

/** Handlers that read the request's body in another fiber while their response is sent. */
final class DuplexTest extends HttpServerTestCase
{
    /** More than the kernel's buffers hold. */
    private const RESPONSE_PIECES = 400;
    private const PIECE_BYTES = 100_000;

    public function testAClientThatReceivesNothingIsLateAlthoughItHasSentItsBody(): void
    {
        $made = $received = 0;
        $this->serve(
            static function (ServerRequestInterface $request) use (&$made, &$received): Response {
                async(static function () use ($request, &$received): void {
                    while (!$request->getBody()->eof()) {
                        $received += \strlen($request->getBody()->read(1_000));
                    }
                });

                return Response::stream((static function () use (&$made): \Generator {
                    while ($made < self::RESPONSE_PIECES) {
                        ++$made;
                        yield str_repeat('x', self::PIECE_BYTES);
                    }
                })());
            },
            new HttpServerOptions(writeTimeout: 0.3),
        );
        $client = $this->client()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
        Eventually::standsStill(static function () use (&$made): int {
            return $made;
        }, 'the client receives nothing');
        $client->send('c');
        Eventually::holds(static function () use (&$received): bool {
            return $received === 3;
        }, 'the third byte is received');
        $client->send('d');

        Eventually::holds(
            fn(): bool => $this->server()->statistics()->connections === 0,
            'the server closes the connection of a client that receives nothing',
        );
        self::assertLessThan(self::RESPONSE_PIECES, $made);
        self::assertSame(4, $received);
    }
}
