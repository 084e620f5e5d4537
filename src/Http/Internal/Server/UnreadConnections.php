<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;

/**
 * Connections that are not read at present, because enough bytes are buffered. The event loop does not report when
 * clients close such connections. So a timer checks these connections while there are any.
 */
final class UnreadConnections
{
    /** Seconds between two checks of all connections. The check of a connection takes about 3 µs. */
    private const INTERVAL_SECONDS = 0.25;

    /** @var array<int, Connection> */
    private array $connections = [];

    private ?string $timer = null;

    /** Adds a connection. Once the server reads from the connection again, the next check removes the connection. */
    public function add(Connection $connection): void
    {
        $this->connections[spl_object_id($connection)] = $connection;
        $this->timer ??= EventLoop::unreference(
            EventLoop::repeat(self::INTERVAL_SECONDS, OwnCallback::of($this->check(...))),
        );
    }

    public function remove(Connection $connection): void
    {
        unset($this->connections[spl_object_id($connection)]);
        $this->stopIfEmpty();
    }

    private function check(): void
    {
        foreach ($this->connections as $key => $connection) {
            if (!$connection->checkUnread()) {
                unset($this->connections[$key]);
            }
        }
        $this->stopIfEmpty();
    }

    private function stopIfEmpty(): void
    {
        if ($this->connections === [] && $this->timer !== null) {
            EventLoop::cancel($this->timer);
            $this->timer = null;
        }
    }
}
