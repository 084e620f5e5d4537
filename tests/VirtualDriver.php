<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Revolt\EventLoop\Internal\AbstractDriver;
use Revolt\EventLoop\Internal\DriverCallback;
use Revolt\EventLoop\Internal\StreamCallback;
use Revolt\EventLoop\Internal\StreamReadableCallback;
use Revolt\EventLoop\Internal\StreamWritableCallback;
use Revolt\EventLoop\Internal\TimerCallback;
use Revolt\EventLoop\Internal\TimerQueue;

/**
 * An event loop in virtual time: when nothing is runnable, its clock jumps to the next timer.
 *
 * The clock stands still while callbacks and fibers run. Streams are supported when both ends are in this process, such
 * as a socket pair: the clock does not jump while one of them is ready. The clock does not wait for other processes, so
 * a test that depends on one needs the real driver. Signals are not supported.
 *
 * @link https://trio.readthedocs.io/en/stable/reference-testing.html#trio.testing.MockClock a similar clock in Trio
 */
final class VirtualDriver extends AbstractDriver
{
    private readonly TimerQueue $timers;

    /** @var array<string, StreamReadableCallback> by id */
    private array $readable = [];

    /** @var array<string, StreamWritableCallback> by id */
    private array $writable = [];

    /**
     * @param float $now   time at the start, in seconds
     * @param float $limit latest time of the clock: a timer that repeats for ever ends there
     */
    public function __construct(private float $now = 0.0, private readonly float $limit = \INF)
    {
        parent::__construct();
        $this->timers = new TimerQueue();
    }

    public function getHandle(): mixed
    {
        return null;
    }

    /** Returns the virtual time in seconds. */
    public function time(): float
    {
        return $this->now;
    }

    /** Advances the clock without running anything, as if the process had been stopped. Due timers run late. */
    public function freeze(float $seconds): void
    {
        $this->now += $seconds;
    }

    protected function now(): float
    {
        return $this->now;
    }

    protected function dispatch(bool $blocking): void
    {
        $ready = $this->readyStreams();
        if ($blocking && $ready === []) {
            $this->jump();
        }
        array_map($this->enqueueCallback(...), $ready);
        while (($callback = $this->timers->extract($this->now)) !== null) {
            $this->enqueueCallback($callback);
        }
    }

    /** @param array<mixed> $callbacks */
    protected function activate(array $callbacks): void
    {
        foreach ($callbacks as $callback) {
            if ($callback instanceof TimerCallback) {
                $this->timers->insert($callback);
            } elseif ($callback instanceof StreamReadableCallback) {
                $this->readable[$callback->id] = $callback;
            } elseif ($callback instanceof StreamWritableCallback) {
                $this->writable[$callback->id] = $callback;
            } else {
                throw new \LogicException('The virtual driver does not support signals: use the real one');
            }
        }
    }

    protected function deactivate(DriverCallback $callback): void
    {
        if ($callback instanceof TimerCallback) {
            $this->timers->remove($callback);
        }
        unset($this->readable[$callback->id], $this->writable[$callback->id]);
    }

    private function jump(): void
    {
        $next = $this->timers->peek() ?? throw new \LogicException(
            'Nothing will ever happen: no stream is ready and no timer is set',
        );
        if ($next > $this->limit) {
            throw new \LogicException("The next timer is after the end of virtual time, {$this->limit} s");
        }
        $this->now = max($this->now, $next);
    }

    /** @return list<DriverCallback> */
    private function readyStreams(): array
    {
        $stream = static fn(StreamCallback $callback): mixed => $callback->stream;
        $read = array_filter(array_map($stream, $this->readable), \is_resource(...));
        $write = array_filter(array_map($stream, $this->writable), \is_resource(...));
        $except = null;
        if ($read === [] && $write === [] || stream_select($read, $write, $except, 0) === 0) {
            return [];
        }

        return array_values(
            array_intersect_key($this->readable, $read) + array_intersect_key($this->writable, $write),
        );
    }
}
