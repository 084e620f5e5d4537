<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Amp\Future;
use Revolt\EventLoop;

use function Amp\async;

/** Amp's async() with types that static analysis understands. */
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
     * Calls `$work` in a signal handler, where PHP can't switch fibers, and returns what it threw.
     *
     * @param \Closure(): mixed $work
     */
    public static function inSignalHandler(\Closure $work): ?\Throwable
    {
        $thrown = null;
        pcntl_signal(\SIGUSR2, static function () use ($work, &$thrown): void {
            try {
                $work();
            } catch (\Throwable $thrown) {
            }
        });
        posix_kill((int) getmypid(), \SIGUSR2);
        pcntl_signal_dispatch();
        pcntl_signal(\SIGUSR2, \SIG_DFL);

        return $thrown;
    }

    /**
     * Runs `$work` in a fiber that is referenced only by what it waits for, while PHP collects garbage.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T|null null when `$work` did not return
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
