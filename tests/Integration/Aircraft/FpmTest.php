<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use Spindle\Tests\Http\RawClient;

final class FpmTest extends HostContract
{
    public function testABodyWhoseLengthIsNotToldIsRefused(): void
    {
        $client = RawClient::connect(self::address());
        $answer = $client->send(
            "POST /aircraft/import HTTP/1.1\r\nHost: a.test\r\nContent-Type: text/csv\r\n"
            . "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
        )->response();
        $client->close();

        self::assertSame(
            [
                411,
                [
                    'title' => 'Length Required',
                    'status' => 411,
                    'detail' => 'The request needs a Content-Length field',
                ],
            ],
            [$answer->status, $answer->json()],
        );
    }

    public function testNginxSaysWhenToComeAgainWhereFpmIsGone(): void
    {
        $host = new NginxWithFpm('');
        try {
            $host->stopFpm();
            $client = RawClient::connect($host->address());
            $answer = $client->get('/aircraft', "Connection: close\r\n")->response();
            $client->close();
        } finally {
            $host->stop();
        }

        self::assertSame(
            [503, '1', 'application/problem+json'],
            [$answer->status, $answer->header('retry-after'), $answer->header('content-type')],
        );
        self::assertSame(503, ((array) $answer->json())['status'] ?? null);
    }

    protected static function start(string $dsn): Host
    {
        return new NginxWithFpm($dsn);
    }

    protected static function refusesWith(int $status): bool
    {
        return true;
    }
}
