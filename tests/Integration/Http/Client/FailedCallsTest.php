<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\DeferredCancellation;
use Amp\Socket\Socket;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestOptions;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Http\ScriptedServer;

/** The client's statistics count a failed call once, also if the failure happens while the body is read. */
final class FailedCallsTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;

    private const HEAD = "HTTP/1.1 200 OK\r\n";

    private ?ScriptedServer $server = null;

    protected function tearDown(): void
    {
        $this->server?->close();
    }

    /** @return iterable<string, array{string, RequestOptions, int<0, 1>}> */
    public static function responses(): iterable
    {
        $options = new RequestOptions();
        $short = new RequestOptions(maxBodyBytes: 3);
        $gzip = (string) gzencode('hello');
        yield 'complete' => [self::HEAD . "Content-Length: 2\r\n\r\nok", $options, 0];
        yield 'no answer' => ['', $options, 1];
        yield 'cut off' => [self::HEAD . "Content-Length: 5\r\n\r\nok", $options, 1];
        yield 'cut off in chunks' => [self::HEAD . "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", $options, 1];
        yield 'a malformed chunk' => [self::HEAD . "Transfer-Encoding: chunked\r\n\r\nx\r\n", $options, 1];
        yield 'too long' => [self::HEAD . "Content-Length: 4\r\n\r\nlong", $short, 1];
        yield 'compressed' => [self::compressed($gzip), $options, 0];
        yield 'too long after decompression' => [self::compressed($gzip), $short, 1];
        yield 'not compressed' => [self::compressed('hello'), $options, 1];
        yield 'cut off before compression' => [self::compressed(substr($gzip, 0, -3)), $options, 1];
        yield 'cut off after compression' => [substr(self::compressed($gzip), 0, -3), $options, 1];
    }

    #[DataProvider('responses')]
    public function testACallThatFailsIsCountedOnce(string $response, RequestOptions $options, int $failed): void
    {
        $client = $this->client($response);
        for ($reads = 0, $body = null; $reads < 3; ++$reads) {
            try {
                $body ??= $client->get($this->server?->url() ?? '', options: $options)->getBody();
                $body->__toString();
                self::assertSame(0, $failed);
            } catch (\RuntimeException $failure) {
                self::assertSame(1, $failed, $failure->getMessage());
                if ($body === null) {
                    break;
                }
            }
        }

        self::assertSame([1, $failed], self::counted($client));
    }

    public function testAResponseThatStallsOrWhoseReadIsCancelledIsCounted(): void
    {
        $client = $this->client(self::HEAD . "Content-Length: 5\r\n\r\nok", false);
        $url = $this->server?->url() ?? '';
        $stalled = $client->get($url, options: new RequestOptions(readTimeout: 0.05))->getBody();
        $cancellation = new DeferredCancellation();
        $cancelled = $client->get($url, cancellation: $cancellation->getCancellation())->getBody();
        self::assertSame([2, 0], self::counted($client));
        $cancellation->cancel();
        foreach ([$stalled, $cancelled, $stalled] as $body) {
            self::thrown(\Exception::class, static fn() => $body->getContents());
        }

        self::assertSame([2, 2], self::counted($client));
    }

    public function testABodyThatTheCallerClosesIsNoFailure(): void
    {
        $client = $this->client(self::HEAD . "Content-Length: 5\r\n\r\nok", false);
        $url = $this->server?->url() ?? '';
        $client->get($url)->getBody()->close();
        $client->get($url);
        $body = $client->get($url)->getBody();
        $body->close();
        self::thrown(\RuntimeException::class, static fn() => $body->read(1));

        self::assertSame([3, 0], self::counted($client));
    }

    public function testEventsThatCanNotBeReadAreCounted(): void
    {
        $client = $this->client(self::HEAD . "Content-Type: text/html\r\nContent-Length: 2\r\n\r\nok");
        self::thrown(
            \RuntimeException::class,
            fn() => $client->serverSentEvents($this->server?->url() ?? '')->current(),
        );

        self::assertSame([1, 1], self::counted($client));
    }

    private static function compressed(string $bytes): string
    {
        $length = \strlen($bytes);

        return self::HEAD . "Content-Encoding: gzip\r\nContent-Length: {$length}\r\n\r\n{$bytes}";
    }

    /** Returns a client, and starts a server that sends this response and ends, or keeps the connection. */
    private function client(string $response, bool $ends = true): HttpClient
    {
        $this->server = new ScriptedServer(
            static function (Socket $socket, ScriptedServer $server) use ($response, $ends): void {
                $server->readRequest($socket);
                $socket->write($response);
                $ends ? null : $socket->read();
            },
        );

        return new HttpClient();
    }

    /** @return array{mixed, mixed} all calls, and failed calls */
    private static function counted(HttpClient $client): array
    {
        $statistics = $client->statistics();

        return [$statistics['requests_total'], $statistics['failed_total']];
    }
}
