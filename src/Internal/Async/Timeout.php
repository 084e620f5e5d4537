<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;

/**
 * A cancellation that is requested after a number of seconds. All timeouts share one exception without a trace. If each
 * of many timeouts had its own trace, they would need much memory: {@see FiberTrace::shorten()} explains why.
 */
final class Timeout implements Cancellation
{
    use CancellationCallbacks;

    private static ?CancelledException $sharedException = null;

    private readonly OwnLoop $loop;
    private readonly string $timer;

    public function __construct(float $seconds)
    {
        $this->loop = new OwnLoop();
        $this->timer = WeakTimer::after(
            $seconds,
            $this,
            static fn(self $timeout) => $timeout->requestWith(self::sharedException()),
        );
    }

    public function __destruct()
    {
        $this->loop->cancel($this->timer);
    }

    private static function sharedException(): CancelledException
    {
        if (self::$sharedException === null) {
            self::$sharedException = new CancelledException();
            FiberTrace::remove(self::$sharedException);
        }

        return self::$sharedException;
    }
}
