<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Spindle\Http\HttpServerOptions;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\Http\ServerProcess;
use Spindle\Tests\Http\StartsServers;
use Spindle\Tests\TidyTestCase;

/** More uploaded files at once than a process has descriptors for. */
final class ManyUploadsTest extends TidyTestCase
{
    use StartsServers;

    /** Bytes of a file that is too large for memory. */
    private const LARGE = 66_000;

    protected function deadline(): int
    {
        return 180;
    }

    public function testUploadsOfManyFilesCanNotShutOutOtherClients(): void
    {
        $server = $this->startServer(options: new HttpServerOptions(rateWindow: 60), limits: 'ulimit -n 2048');
        $before = $server->descriptors();
        $greedy = array_map(static fn(): RawClient => self::begin($server, 19), range(1, 60));
        Eventually::holds(static fn(): bool => $server->descriptors() > 300, 'many files are open', 30);

        for ($i = 0; $i < 60; ++$i) {
            $client = $server->client();
            self::assertSame('hello from /', $client->get('/')->response()->body);
            $client->close();
        }
        Eventually::holds(
            static fn(): bool => self::upload($server)->status === 200,
            'stalled uploads make room for the files of others',
            30,
        );
        array_map(static fn(RawClient $client) => $client->close(), $greedy);
        Eventually::holds(static fn(): bool => $server->descriptors() <= $before + 8, 'no file is left open', 30);
        self::assertSame(200, self::upload($server)->status);
        self::assertCount(1, $server->log());
        self::assertStringContainsString('Uploads are answered with 503', $server->log()[0]);
    }

    /** Sends a request without the end of its body. */
    private static function begin(ServerProcess $server, int $files): RawClient
    {
        $client = $server->client();
        $client->sendConcurrently(self::head(8_000_000) . str_repeat(self::part(), $files));

        return $client;
    }

    private static function upload(ServerProcess $server): ReceivedResponse
    {
        $body = self::part() . '--mark--';
        $client = $server->client();
        $client->sendConcurrently(self::head(\strlen($body)) . $body);
        $response = $client->response();
        $client->close();

        return $response;
    }

    private static function head(int $length): string
    {
        return "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=mark\r\n"
            . "Content-Length: {$length}\r\n\r\n";
    }

    private static function part(): string
    {
        return "--mark\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
            . str_repeat('x', self::LARGE)
            . "\r\n";
    }
}
