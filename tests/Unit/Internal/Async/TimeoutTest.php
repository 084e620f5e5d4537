<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use Amp\CancelledException;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Async\Timeout;
use Spindle\Tests\VirtualTime;

use function Amp\delay;

final class TimeoutTest extends TestCase
{
    use VirtualTime;

    public function testSubscribersAreCalledOnceAfterTheTimeAndLateOnesAtOnce(): void
    {
        $timeout = new Timeout(1.0);
        $calls = [];
        $record = static function (string $name) use (&$calls): \Closure {
            return static function (CancelledException $reason) use ($name, &$calls): void {
                $calls[] = [$name, $reason->getTrace()];
            };
        };
        $timeout->subscribe($record('first'));
        $timeout->unsubscribe($timeout->subscribe($record('unsubscribed')));
        delay(0.9);
        $timeout->throwIfRequested();
        self::assertSame([[], false], [$calls, $timeout->isRequested()]);
        delay(0.2);
        self::assertSame([[['first', []]], true], [$calls, $timeout->isRequested()]);
        $timeout->subscribe($record('late'));
        delay(0.1);
        self::assertSame(['first', 'late'], array_column($calls, 0));
        $this->expectException(CancelledException::class);
        $timeout->throwIfRequested();
    }

    public function testAnUnusedTimeoutEndsWithItsOwner(): void
    {
        $timeout = new Timeout(1.0);
        $weak = \WeakReference::create($timeout);
        unset($timeout);

        self::assertNull($weak->get());
    }
}
