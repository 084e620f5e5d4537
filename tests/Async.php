<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Amp\Future;
use Revolt\EventLoop;

use function Amp\async;

/** Amp's own function, whose types say nothing to static analysis. */
final class Async
{
    /**
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return Future<T>
     */
    public static function run(\Closure $work): Future
    {
        /** @var Future<T> $future */
        $future = async($work);

        return $future;
    }

    /**
     * Runs it in a fiber to which nothing leads but what it waits for, while PHP looks for garbage.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T|null null when it did not come to its end
     */
    public static function alone(\Closure $work): mixed
    {
        $result = null;
        EventLoop::queue(static function () use ($work, &$result): void {
            $result = $work();
        });
        $collector = EventLoop::unreference(EventLoop::repeat(0.005, static function (): void {
            gc_collect_cycles();
        }));
        EventLoop::run();
        EventLoop::cancel($collector);

        return $result;
    }
}
