<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Pool\PoolCounters;
use Spindle\Postgres\Internal\Pool\PooledSession;
use Spindle\Postgres\Internal\Pool\WaitingFiber;
use Spindle\Postgres\Internal\Pool\WaitQueue;
use Spindle\Postgres\Internal\Protocol\Exchange;

final class WaitQueueTest extends TestCase
{
    public function testTheTimeBeforeAWaiterIsAddedCounts(): void
    {
        $queue = self::queue();
        $others = [];
        for ($i = 0; $i < 10; ++$i) {
            $queue->add($others[] = self::waiter());
        }
        $queue->remove($others[9]);
        $queue->add($late = self::waiter(59.9));
        $queue->add($later = self::waiter(59.95));
        $queue->wait($late, new TimeoutCancellation(5.0));

        self::assertInstanceOf(\DomainException::class, $later->failure);
        self::assertInstanceOf(\DomainException::class, $late->failure);
        self::assertSame(9, $queue->count);
        foreach ($others as $index => $other) {
            self::assertSame($index < 9, $queue->remove($other), "waiter {$index}");
        }
    }

    public function testASessionIsForTheWaiterThatHasWaitedLongest(): void
    {
        $queue = self::queue();
        $waiters = [];
        foreach ([1.0, 0.0, 3.0, 2.0, 4.0] as $seconds) {
            $queue->add($waiters[(int) $seconds] = self::waiter($seconds, $seconds === 3.0));
        }
        $session = (new \ReflectionClass(PooledSession::class))->newInstanceWithoutConstructor();
        foreach ([4, 3, 2, 1, 0] as $seconds) {
            self::assertSame($waiters[$seconds], $next = $queue->next($session));
            $queue->remove($next);
        }
        self::assertNull($queue->next($session));
    }

    private static function queue(): WaitQueue
    {
        $onTimeout = static fn(): \Throwable => new \DomainException('too late');

        return new WaitQueue(new PoolCounters(), 60.0, $onTimeout, static fn() => null);
    }

    /** @param float $seconds time that the fiber has waited for a ping */
    private static function waiter(float $seconds = 0.0, bool $isExclusive = false): WaitingFiber
    {
        return new WaitingFiber(new Exchange(), $isExclusive, 0, hrtime(true) - (int) ($seconds * 1e9));
    }
}
