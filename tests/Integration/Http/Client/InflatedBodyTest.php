<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\DeferredFuture;
use Amp\Socket\Socket;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Internal\Client\Call;
use Spindle\Http\Internal\Client\ClientConnection;
use Spindle\Http\Internal\Client\DeadlineTimer;
use Spindle\Http\Internal\Client\InflatedBody;
use Spindle\Http\Internal\Client\OriginConnector;
use Spindle\Http\Internal\Client\OriginPool;
use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Http\Internal\Client\ResponseBody;
use Spindle\Http\Internal\Client\ResponseHead;
use Spindle\Http\Internal\Client\Url;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Streams;

use function Amp\async;
use function Amp\delay;

final class InflatedBodyTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;

    private ?ScriptedServer $server = null;

    protected function tearDown(): void
    {
        $this->server?->close();
    }

    public function testAShortBodyCanBeReadAgain(): void
    {
        $body = $this->body([(string) gzencode('hello')]);

        self::assertSame('hello', (string) $body);
        self::assertSame('hello', (string) $body);
        $body->seek(1);
        self::assertSame([1, 'el', 3], [$body->tell(), $body->read(2), $body->tell()]);
        self::assertSame('lo', $body->getContents());
        self::assertTrue($body->eof());
    }

    public function testALongBodyCanBeReadAgainAfterGetContents(): void
    {
        $contents = bin2hex(random_bytes(500_000));
        $body = $this->body(str_split((string) gzencode($contents), 100_000));
        $body->read(1);

        self::assertSame([substr($contents, 1), 1_000_000], [$body->getContents(), $body->tell()]);
        self::assertTrue($body->isSeekable());
        self::assertSame($contents, (string) $body);
        self::assertSame($contents, (string) $body);
        $body->seek(999_990);
        self::assertSame([substr($contents, -10), true], [$body->read(100), $body->eof()]);
    }

    public function testALongBodyThatReadHasReturnedIsReadOnce(): void
    {
        $body = $this->body([(string) gzencode(str_repeat('x', 10_000_000))]);
        $size = 0;
        while (!$body->eof()) {
            $size += \strlen($body->read(65_536));
        }
        self::assertSame([10_000_000, 10_000_000, false], [$size, $body->tell(), $body->isSeekable()]);
        $this->expectException(\RuntimeException::class);
        $body->rewind();
    }

    public function testTheLimitAppliesToContentsThatReadHasDecompressed(): void
    {
        $body = $this->body([(string) gzencode(str_repeat('x', 1000))], new RequestOptions(maxBodyBytes: 10));
        self::assertSame('x', $body->read(1));

        $this->expectException(InvalidResponseException::class);
        $this->expectExceptionMessage('the decompressed body is longer than 10 bytes');
        $body->getContents();
    }

    public function testAWaitForMoreOfALongBodyDoesNotKeepTheReturnedBytes(): void
    {
        $deflate = deflate_init(\ZLIB_ENCODING_GZIP);
        self::assertNotFalse($deflate);
        $first = deflate_add($deflate, str_repeat('x', 4_000_000), \ZLIB_SYNC_FLUSH);
        $last = deflate_add($deflate, 'y', \ZLIB_FINISH);
        $isAwaited = new DeferredFuture();
        $this->server = new ScriptedServer(static function (
            Socket $socket,
            ScriptedServer $server,
        ) use ($first, $last, $isAwaited): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n{$first}");
            $isAwaited->getFuture()->await();
            $socket->write((string) $last);
            $socket->end();
        });
        $body = (new HttpClient())->get($this->server->url())->getBody();
        for ($size = 0; $size < 4_000_000; $size += \strlen($body->read(65_536)));
        $used = memory_get_usage();
        $end = async($body->read(...), 10);
        delay(0);

        self::assertLessThan($used - 3_000_000, memory_get_usage());
        $isAwaited->complete();
        self::assertSame('y', $end->await());
    }

    public function testABodyThatAnotherFiberClosesIsNotReturned(): void
    {
        $gzip = (string) gzencode(random_bytes(100_000));
        $this->server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server) use ($gzip): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 200000\r\n\r\n{$gzip}");
            $server->readRequest($socket); // never arrives
        });
        $body = (new HttpClient())->get($this->server->url())->getBody();
        EventLoop::delay(0.01, $body->close(...));

        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('The body was closed');
        $body->getContents();
    }

    /** @param list<string> $pieces */
    #[DataProvider('bodies')]
    public function testABodyConsistsOfAnyNumberOfMembers(array $pieces, string $contents): void
    {
        self::assertSame($contents, (string) $this->body($pieces));
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function bodies(): iterable
    {
        [$one, $two] = [(string) gzencode('one'), (string) gzencode('two')];
        yield 'none' => [[], ''];
        yield 'two' => [[$one . $two], 'onetwo'];
        yield 'two in pieces' => [str_split($one . $two), 'onetwo'];
        yield 'an empty one' => [[$one . gzencode('') . $two], 'onetwo'];
        yield 'one and padding' => [[$one . "\0\0\0"], 'one'];
        yield 'one and padding that looks like another' => [["{$one}\x1f", "\0\x1f", $two], 'one'];
        yield 'one and half of a beginning' => [["{$one}\x1f"], 'one'];
    }

    public function testABodyThatEndsTooEarlyFailsEachTime(): void
    {
        $body = $this->body([substr((string) gzencode(random_bytes(1000)), 0, -5)]);
        for ($i = 0; $i < 3; ++$i) {
            $failure = self::thrown(InvalidResponseException::class, static fn() => $body->__toString());
            self::assertStringContainsString('the compressed body ends too early', $failure->getMessage());
        }
    }

    public function testBytesBeforeAnEarlyEndAreReturnedFirst(): void
    {
        $gzip = deflate_init(\ZLIB_ENCODING_GZIP);
        self::assertNotFalse($gzip);
        $bytes = (string) deflate_add($gzip, 'first', \ZLIB_SYNC_FLUSH);
        $this->server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server) use ($bytes): void {
            $server->readRequest($socket);
            $size = \strlen($bytes);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {$size}\r\n\r\n{$bytes}");
        });
        $body = (new HttpClient())->get($this->server->url())->getBody();

        self::assertSame('first', $body->read(100));
        $this->expectException(InvalidResponseException::class);
        $this->expectExceptionMessage('the compressed body ends too early');
        $body->read(100);
    }

    public function testEachReadUsesTheResponseEvenIfNoCompressedByteIsNeeded(): void
    {
        $head = ResponseHead::parse("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n", false);
        [$stream] = Streams::pair();
        $timer = new DeadlineTimer();
        $connection = new ClientConnection($stream, $timer, 'the server');
        $connection->received = (string) gzencode(str_repeat('x', 1_000_000));
        $url = Url::of('http://a.test/');
        $pool = new OriginPool(new OriginConnector($url, null), new HttpClientOptions(), $timer, new FiberQueue());
        $failedTotal = 0;
        $request = new OutgoingRequest('GET', $url, [], '', new Call($failedTotal));
        $body = new InflatedBody(
            new ResponseBody($connection, $pool, $request, $head, 30.0, 1_000_000, null),
            $request,
            1_000_000,
        );
        self::assertSame('x', $body->read(1));

        for ($reads = 0; $reads < 3; ++$reads) {
            $connection->usedAt = 0;
            self::assertSame('x', $body->read(1));
            self::assertGreaterThan(0, $connection->usedAt);
        }
    }

    /** @param list<string> $pieces compressed bytes, which arrive one after the other */
    private function body(array $pieces, RequestOptions $options = new RequestOptions()): StreamInterface
    {
        $answer = static function (Socket $socket, ScriptedServer $server) use ($pieces): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n");
            foreach ($pieces as $piece) {
                delay(0.001);
                $socket->write(dechex(\strlen($piece)) . "\r\n{$piece}\r\n");
            }
            delay(0.001);
            $socket->write("0\r\n\r\n");
        };
        $this->server = new ScriptedServer($answer);

        return (new HttpClient())->get($this->server->url(), options: $options)->getBody();
    }
}
