<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Revolt\EventLoop;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\SharesAnAgent;
use Spindle\Tests\ReplacedLoop;
use Spindle\Tests\TidyTestCase;

use function Amp\async;

/** A {@see RedisBroker} can be used after EventLoop::setDriver() has replaced the event loop. */
final class ReplacedLoopTest extends TidyTestCase
{
    use OwnDirectory;
    use SharesAnAgent;

    public function testABrokerUsesANewConnectionInANewEventLoop(): void
    {
        $arguments = [Redis::shared()->url(), self::$sharedQueue];

        self::assertSame([0, 7, 0, 8], Host::call(self::class . '::replaceLoop', $arguments, timeout: 20));
    }

    public function testAMapOfTheEarlierEventLoopCancelsNoCallbacksOfTheNewOne(): void
    {
        $arguments = [Redis::shared()->url(), 'without-agents-' . bin2hex(random_bytes(6))];

        self::assertSame(200, Host::call(self::class . '::replaceLoopDuringMap', $arguments, timeout: 20));
    }

    /** @return list<mixed> */
    public static function replaceLoop(string $url, string $queue): array
    {
        $broker = new RedisBroker($url);
        $executor = new RemoteExecutor(new RedisBroker($url), $queue, self::keys());
        $results = [];
        foreach ([7, 8] as $number) {
            $results[] = $broker->statistics($queue)['waiting'];
            $results[] = $executor->submit(static fn(): int => $number)->await();
            ReplacedLoop::startAfterATurn(0);
        }

        return $results;
    }

    /** @return int number of callbacks that remain in the second loop */
    public static function replaceLoopDuringMap(string $url, string $queue): int
    {
        $broker = new RedisBroker($url);
        $executor = new RemoteExecutor($broker, $queue, self::keys());
        $map = async(static fn() => iterator_to_array($executor->map([1], static fn(int $item): int => $item)));
        EventLoop::repeat(0.01, static function () use ($broker, $queue): void {
            $broker->statistics($queue)['waiting'] === 1 ? EventLoop::getDriver()->stop() : null;
        });
        EventLoop::run();
        $loop = ReplacedLoop::start(200);
        unset($map, $executor, $broker);
        gc_collect_cycles();

        return $loop->remainingTimers();
    }
}
