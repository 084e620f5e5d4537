<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Spindle\Http\HttpServerOptions;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\StartsServers;
use Spindle\Tests\TidyTestCase;

/** More bodies at once than PHP's memory_limit has room for. */
final class ScarceMemoryTest extends TidyTestCase
{
    use StartsServers;

    protected function deadline(): int
    {
        return 180;
    }

    public function testBodiesOfManyClientsDoNotEndTheProcess(): void
    {
        $server = $this->startServer(new HttpServerOptions(rateWindow: 60), php: ['-d', 'memory_limit=64M']);
        $head = static fn(int $length): string => "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: {$length}\r\n\r\n";
        $greedy = array_map(static fn(): RawClient => $server->client(), range(1, 120));
        array_map(
            static fn(RawClient $client) => $client->sendConcurrently($head(1_000_000) . str_repeat('x', 990_000)),
            $greedy,
        );
        Eventually::holds(static fn(): bool => $server->log() !== [], 'it says that memory is scarce', 60);

        for ($i = 0; $i < 20; ++$i) {
            $client = $server->client();
            self::assertSame('hello from /', $client->get('/')->response()->body);
            $client->close();
        }
        Eventually::holds(static function () use ($server, $head): bool {
            $client = $server->client();
            $client->sendConcurrently($head(500_000) . str_repeat('x', 500_000));
            $response = $client->response();
            $client->close();

            return $response->body === '500000';
        }, 'stalled clients make room for the bodies of others', 60);
        array_map(static fn(RawClient $client) => $client->close(), $greedy);
        self::assertCount(1, $server->log());
        self::assertStringContainsString("seven eighths of PHP's memory_limit", $server->log()[0]);
    }
}
