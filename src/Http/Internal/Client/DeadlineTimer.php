<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Revolt\EventLoop;
use Spindle\Internal\OwnLoop;

/** Ends the waits of all connections of a client at their deadlines, with one timer of the event loop. */
final class DeadlineTimer
{
    /** @var array<int, ClientConnection> waiting connections, by object id */
    private array $waiting = [];

    private int $firesAt = \PHP_INT_MAX;

    private string $timer = '';

    private OwnLoop $loop;

    public function __construct()
    {
        $this->loop = new OwnLoop();
    }

    /** Returns the time by hrtime() `$seconds` after `$start` (null: now); PHP_INT_MAX for 1e9 seconds or more. */
    public static function after(float $seconds, ?int $start = null): int
    {
        return $seconds < 1e9 ? (int) (($start ?? hrtime(true)) + $seconds * 1e9) : \PHP_INT_MAX;
    }

    /** Returns the seconds until a time of {@see after()}: INF for PHP_INT_MAX, a negative number for a past time. */
    public static function secondsUntil(int $time): float
    {
        return $time === \PHP_INT_MAX ? \INF : ($time - hrtime(true)) / 1e9;
    }

    public function add(ClientConnection $connection): void
    {
        $this->waiting[spl_object_id($connection)] = $connection;
        if (!$this->loop->isCurrent()) {
            $this->stop();
        }
        if ($connection->deadline < $this->firesAt) {
            $this->schedule($connection->deadline);
        }
    }

    /** Applies the changed deadline of a connection that waits. Ignores a connection that does not wait. */
    public function update(ClientConnection $connection): void
    {
        if (isset($this->waiting[spl_object_id($connection)])) {
            $this->add($connection);
        }
    }

    public function remove(ClientConnection $connection): void
    {
        unset($this->waiting[spl_object_id($connection)]);
    }

    public function __destruct()
    {
        $this->stop();
    }

    public function stop(): void
    {
        $this->loop->cancel($this->timer);
        $this->firesAt = \PHP_INT_MAX;
    }

    private function schedule(int $time): void
    {
        $this->loop->cancel($this->timer);
        $this->firesAt = $time;
        $this->loop = new OwnLoop();
        $weak = \WeakReference::create($this);
        $this->timer = EventLoop::unreference(EventLoop::delay(
            max(0, $time - hrtime(true)) / 1e9,
            static fn() => $weak->get()?->fire(),
        ));
    }

    private function fire(): void
    {
        [$now, $next, $this->firesAt] = [hrtime(true), \PHP_INT_MAX, \PHP_INT_MAX];
        foreach ($this->waiting as $connection) {
            if ($connection->deadline <= $now) {
                $connection->expire();
            } else {
                $next = min($next, $connection->deadline);
            }
        }
        if ($next < $this->firesAt) { // expire() may have scheduled an earlier time
            $this->schedule($next);
        }
    }
}
