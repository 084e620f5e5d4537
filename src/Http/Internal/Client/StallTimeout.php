<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Async\CancellationCallbacks;
use Spindle\Internal\Async\FiberTrace;
use Spindle\Internal\OwnLoop;

/** A cancellation that is requested once no fiber has used a connection of a pool for a number of seconds. */
final class StallTimeout implements Cancellation
{
    use CancellationCallbacks;

    /** Maximum interval of the checks, in seconds. The timeout may be INF or too long for a timer of the loop. */
    private const MAX_INTERVAL = 60.0;

    private readonly OwnLoop $loop;
    private readonly string $timer;

    /** @param \Closure(): float $unusedSeconds returns the time since a fiber last used a connection; 0 during a use */
    public function __construct(float $seconds, \Closure $unusedSeconds)
    {
        $this->loop = new OwnLoop();
        $begin = hrtime(true);
        $weak = \WeakReference::create($this);
        $check = static function () use ($seconds, $unusedSeconds, $begin, $weak): void {
            if (min($unusedSeconds(), (hrtime(true) - $begin) / 1e9) >= $seconds) {
                $weak->get()?->request();
            }
        };
        $this->timer = EventLoop::unreference(EventLoop::repeat(min(self::MAX_INTERVAL, $seconds / 4), $check));
    }

    public function __destruct()
    {
        $this->loop->cancel($this->timer);
    }

    private function request(): void
    {
        if ($this->exception === null) {
            $exception = new CancelledException();
            FiberTrace::remove($exception);
            $this->requestWith($exception);
        }
    }
}
