<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Internal\Client\ClientConnection;
use Spindle\Http\Internal\Client\DeadlineTimer;
use Spindle\Tests\Streams;

/** A server that always has bytes ready, or accepts all bytes at once, so that the connection never has to wait. */
final class BusyConnectionTest extends TestCase
{
    /** Seconds after which a test fails if no timer has run. */
    private const LIMIT = 2.0;

    private ClientConnection $connection;

    /** @var resource the end of the server */
    private mixed $server;

    protected function setUp(): void
    {
        [$stream, $this->server] = Streams::pair();
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);
        $this->connection = new ClientConnection($stream, new DeadlineTimer(), 'the server');
    }

    protected function tearDown(): void
    {
        $this->connection->close();
    }

    public function testTimersRunDuringADownload(): void
    {
        self::assertTrue($this->timerRunsDuring($this->receive(...)));
    }

    public function testTimersRunDuringAnUpload(): void
    {
        self::assertTrue($this->timerRunsDuring(function (): void {
            self::assertTrue($this->connection->send('x'));
            fread($this->server, 100);
        }));
    }

    public function testADownloadIsCancelled(): void
    {
        $cancellation = new DeferredCancellation();
        $this->connection->begin(new RequestOptions(), \PHP_INT_MAX, $cancellation->getCancellation());
        EventLoop::delay(0.001, static fn() => $cancellation->cancel());

        $this->expectException(CancelledException::class);
        $this->timerRunsDuring($this->receive(...), self::LIMIT);
    }

    public function testADownloadThatIsClosedInItsTurnOfTheLoopEnds(): void
    {
        EventLoop::delay(0.001, $this->connection->close(...));
        $end = hrtime(true) + (int) (self::LIMIT * 1e9);
        do {
            fwrite($this->server, 'x');
            $hasBytes = $this->connection->receive('the rest of the response', 30.0, 'readTimeout');
        } while ($hasBytes && hrtime(true) < $end);

        self::assertFalse($hasBytes);
    }

    private function receive(): void
    {
        fwrite($this->server, 'x');
        self::assertTrue($this->connection->receive('the rest of the response', 30.0, 'readTimeout'));
    }

    /** @param \Closure(): void $step called until a timer of `$seconds` has run, or until LIMIT */
    private function timerRunsDuring(\Closure $step, float $seconds = 0.001): bool
    {
        $hasRun = false;
        $timer = EventLoop::delay($seconds, static function () use (&$hasRun): void {
            $hasRun = true;
        });
        $end = hrtime(true) + (int) (self::LIMIT * 1e9);
        while (!$hasRun && hrtime(true) < $end) {
            $step();
        }
        EventLoop::cancel($timer);

        return $hasRun;
    }
}
