<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

use Revolt\EventLoop\Internal\AbstractDriver;
use Revolt\EventLoop\Internal\DriverCallback;
use Revolt\EventLoop\Internal\TimerCallback;
use Revolt\EventLoop\Internal\TimerQueue;

/** A loop whose time passes only when there is nothing to do: then it is at once that of the next timer. */
final class VirtualDriver extends AbstractDriver
{
    private float $now = 0.0;
    private readonly TimerQueue $timers;

    public function __construct()
    {
        parent::__construct();
        $this->timers = new TimerQueue();
    }

    public static function isSupported(): bool
    {
        return true;
    }

    public function getHandle(): mixed
    {
        return null;
    }

    public function time(): float
    {
        return $this->now;
    }

    protected function now(): float
    {
        return $this->now;
    }

    protected function dispatch(bool $blocking): void
    {
        if ($blocking) {
            $this->now = max($this->now, $this->timers->peek() ?? throw new \LogicException('Nothing will ever happen'));
        }
        while (($callback = $this->timers->extract($this->now)) !== null) {
            $this->enqueueCallback($callback);
        }
    }

    /** @param array<mixed> $callbacks */
    protected function activate(array $callbacks): void
    {
        foreach ($callbacks as $callback) {
            $this->timers->insert($callback instanceof TimerCallback ? $callback : throw new \LogicException('There are no streams and signals here'));
        }
    }

    protected function deactivate(DriverCallback $callback): void
    {
        if ($callback instanceof TimerCallback) {
            $this->timers->remove($callback);
        }
    }
}
