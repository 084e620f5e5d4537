<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Form\DiskFiles;
use Spindle\Http\Internal\Message\Peer;

/**
 * Limits the connections of a server, and of each client network (an IPv4 address or an IPv6 /64 network). Chooses
 * which connections to evict, that is, to close for new ones.
 *
 * A connection is evictable ({@see Connection::evictableFrom()}) when the server has waited for some time for the
 * client: for a request, the rest of a head, a TLS handshake, a body that no handler reads, or the end of the client's
 * side. The connections that have been evictable longest are evicted first. If there is none, connections of slow
 * clients are evicted: these clients send a request body or receive a response too slowly. No other connection with a
 * request is evicted.
 */
final class ConnectionLimits
{
    /** Maximum connections with stream_select(), which can watch 1,024 descriptors. Handlers need some of them. */
    public const MAX_SELECT_CONNECTIONS = 900;

    /** Descriptors reserved for other uses than connections and uploads; at most a quarter of all descriptors. */
    private const RESERVED_DESCRIPTORS = 124;

    /** A network can have half of all connections by default. Uploaded files can use a third of the descriptors. */
    private const NETWORK_SHARE_DIVISOR = 2;
    private const UPLOAD_SHARE_DIVISOR = 3;

    /**
     * A connection is evictable after the server has waited for the client for this number of nanoseconds.
     * MIN_IDLE_NANOSECONDS applies between two requests. MIN_UNFINISHED_NANOSECONDS applies to a new connection, an
     * incomplete head, a body that no handler reads, and a connection that this side has ended.
     */
    public const MIN_IDLE_NANOSECONDS = 50_000_000;
    public const MIN_UNFINISHED_NANOSECONDS = 500_000_000;

    /**
     * Maximum connections evicted by one search. A search takes time, because it checks all connections. So a
     * search evicts several connections: an eighth of the evictable ones, and at least one.
     */
    private const MAX_CLOSED_PER_SEARCH = 32;

    /** The server expects room soon if at least 1/N of all connections will soon be evictable. This constant is N. */
    private const ROOM_EXPECTED_DIVISOR = 16;

    /** Minimum nanoseconds until the next search: after one that evicted nothing, or after one for slow clients. */
    private const SEARCH_PAUSE_NANOSECONDS = 50_000_000;

    /** The server counts as full ({@see isFull()}) after a series of waits for room that has lasted this long. */
    private const FULL_AFTER_NANOSECONDS = 1_000_000_000;
    /** Maximum time between two waits for room in the same series. */
    private const REPEAT_WITHIN_NANOSECONDS = 300_000_000;

    /** @var array<string, int> number of connections, by the client's network */
    private array $connectionCounts = [];

    /** @var array<string, string> by address of a trusted proxy: the network whose limit does not apply to the proxy */
    private array $proxies = [];

    /** @var array<string, int> earliest time by hrtime() of the next search, by network ('' for all networks) */
    private array $nextSearchAt = [];

    /** Time by hrtime() before which {@see closeSlowConnections()} does nothing. */
    private int $nextSlowSearchAt = 0;

    /** Times by hrtime() of the first and of the last wait for room in the current series. */
    private int $waitingSince = 0;
    private int $lastWaitAt = 0;

    /** Whether the last unsuccessful search of all networks found many connections that will soon be evictable. */
    private bool $roomExpected = false;

    /** Number of descriptors that the system's limit leaves for connections and uploaded files. */
    private readonly int $descriptors;

    public function __construct(private readonly HttpServerOptions $options, private readonly DiskFiles $uploads)
    {
        $limit = \function_exists('posix_getrlimit') ? posix_getrlimit()['soft openfiles'] ?? 'unlimited' : 'unlimited';
        $this->descriptors = is_numeric($limit)
            ? max(1, (int) $limit - min(self::RESERVED_DESCRIPTORS, intdiv((int) $limit, 4)))
            : \PHP_INT_MAX;
    }

    public function maxConnections(): int
    {
        return min($this->options->maxConnections, $this->maxDescriptors() - $this->uploads->count);
    }

    public function maxFiles(): int
    {
        return intdiv($this->maxDescriptors(), self::UPLOAD_SHARE_DIVISOR);
    }

    private function maxDescriptors(): int
    {
        $watchable = EventLoop::getDriver()->getHandle() === null ? self::MAX_SELECT_CONNECTIONS : \PHP_INT_MAX;

        return min($watchable, $this->descriptors);
    }

    /**
     * Returns whether a new connection may stay open. If the client's network has too many connections, tries to evict
     * some.
     *
     * @param array<Connection> $connections all connections of the server
     */
    public function admits(Peer $peer, array $connections): bool
    {
        $max = $this->options->maxConnectionsPerAddress ?? max(
            1,
            intdiv($this->maxConnections(), self::NETWORK_SHARE_DIVISOR),
        );

        return ($this->connectionCounts[$peer->network] ?? 0) < $max
            || isset($this->proxies[$peer->address])
            || $this->makeRoom($connections, $peer->network);
    }

    /** Counts a connection. Clients of a Unix socket have no address and are not counted. */
    public function countConnection(Peer $peer): void
    {
        if ($peer->port !== 0) {
            $this->connectionCounts[$peer->network] = ($this->connectionCounts[$peer->network] ?? 0) + 1;
        }
    }

    public function uncountConnection(Peer $peer): void
    {
        $network = $peer->network;
        if (isset($this->connectionCounts[$network]) && --$this->connectionCounts[$network] === 0) {
            unset($this->connectionCounts[$network], $this->nextSearchAt[$network]);
            $this->proxies = $this->proxies === [] ? [] : array_diff($this->proxies, [$network]);
        }
    }

    /** Exempts a trusted proxy from the limit of its network, until the last connection of this network has ended. */
    public function trust(Peer $peer): void
    {
        if (isset($this->connectionCounts[$peer->network])) {
            $this->proxies[$peer->address] = $peer->network;
        }
    }

    /**
     * Evicts some evictable connections. Connections of proxies and Unix sockets are evicted only if no other one is
     * evictable. If no connection is evictable, evicts connections of slow clients, including proxies.
     *
     * @param array<Connection> $connections all connections of the server
     * @param string            $network     network whose connections may be evicted; '' for all networks
     *
     * @return bool whether a connection was evicted
     */
    public function makeRoom(array $connections, string $network = ''): bool
    {
        $now = (int) hrtime(true);
        if ($now < ($this->nextSearchAt[$network] ?? 0)) {
            return false;
        }
        [$direct, $proxied, $evictableSoon] = [[], [], 0];
        foreach ($connections as $key => $connection) {
            $from = $network === '' || $connection->peer->network === $network ? $connection->evictableFrom() : null;
            if ($from !== null && $now < $from) {
                ++$evictableSoon;
            } elseif ($from !== null) {
                $isProxied = $connection->peer->port === 0 || isset($this->proxies[$connection->peer->address]);
                $isProxied ? $proxied[$key] = $from : $direct[$key] = $from;
            }
        }
        $waiting = $direct === [] ? $proxied : $direct;
        if ($waiting === []) {
            $candidates = $network === ''
                ? $connections
                : array_filter(
                    $connections,
                    static fn(Connection $connection): bool => $connection->peer->network === $network,
                );
            $waiting = self::tooSlow($candidates, $now);
        }
        asort($waiting);
        foreach (array_keys(\array_slice(
            $waiting,
            0,
            max(1, min(self::MAX_CLOSED_PER_SEARCH, intdiv(\count($waiting), 8))),
            true,
        )) as $key) {
            $connections[$key]->evict();
        }
        if ($waiting === []) {
            $this->nextSearchAt[$network] = $now + self::SEARCH_PAUSE_NANOSECONDS;
            $this->roomExpected = $network === ''
                ? $evictableSoon * self::ROOM_EXPECTED_DIVISOR >= \count($connections)
                : $this->roomExpected;
        }

        return $waiting !== [];
    }

    /** @param array<Connection> $connections all connections of the server; those of slow clients are evicted */
    public function closeSlowConnections(array $connections): void
    {
        $now = (int) hrtime(true);
        if ($now >= $this->nextSlowSearchAt) {
            $this->nextSlowSearchAt = $now + self::SEARCH_PAUSE_NANOSECONDS;
            foreach (array_keys(self::tooSlow($connections, $now)) as $key) {
                $connections[$key]->evict();
            }
        }
    }

    /**
     * @param array<Connection> $connections
     *
     * @return array<array-key, int> 0 for each connection whose client is too slow, by the connection's key
     */
    private static function tooSlow(array $connections, int $now): array
    {
        return array_fill_keys(
            array_keys(array_filter(
                $connections,
                static fn(Connection $connection): bool => $connection->timed->isTooSlowWhenFull($now),
            )),
            0,
        );
    }

    /** Records a wait for room. If room is expected soon, begins another series, so that {@see isFull()} is false. */
    public function recordWait(): void
    {
        $now = (int) hrtime(true);
        $this->waitingSince = $this->roomExpected || $now - $this->lastWaitAt > self::REPEAT_WITHIN_NANOSECONDS
            ? $now
            : $this->waitingSince;
        $this->lastWaitAt = $now;
    }

    /** Returns whether connections have waited 1 s or more for room. A load balancer should then avoid this server. */
    public function isFull(): bool
    {
        return hrtime(true) - $this->lastWaitAt <= self::REPEAT_WITHIN_NANOSECONDS
            && $this->lastWaitAt - $this->waitingSince >= self::FULL_AFTER_NANOSECONDS;
    }
}
