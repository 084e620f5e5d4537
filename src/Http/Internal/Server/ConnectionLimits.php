<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Form\DiskFiles;
use Spindle\Http\Internal\Message\Peer;

/**
 * Limits the connections of a server and of each address, and chooses which ones to close for others.
 *
 * The first to be closed are those that have kept the server waiting longest: for a request, for the rest of a head,
 * for a TLS handshake, or for their end. If there are none, connections follow whose client sends a request or takes a
 * response too slowly. Other connections with a request are never closed for another.
 */
final class ConnectionLimits
{
    /**
     * Maximum connections with stream_select(), which can watch 1,024 descriptors. The rest is for what handlers open.
     */
    public const MAX_SELECT_CONNECTIONS = 900;

    /** Descriptors reserved for everything except connections. A quarter of the limit, if that is less. */
    private const RESERVED_DESCRIPTORS = 124;

    /** One address may have half of the room, and files of uploads a third of the descriptors. */
    private const ADDRESS_SHARE_DIVISOR = 2;
    private const UPLOAD_SHARE_DIVISOR = 3;

    /**
     * Nanoseconds for which a connection must have kept the server waiting before it may be closed for another. The
     * first value is for connections that have had responses, the second for those whose first request may be on its
     * way.
     */
    public const MIN_IDLE_NANOSECONDS = 50_000_000;
    public const MIN_UNFINISHED_NANOSECONDS = 500_000_000;

    /**
     * The same for a connection with a request. Its client must also be slower than CROWDED_RATE_FACTOR times the
     * option minRate.
     */
    public const MIN_SLOW_NANOSECONDS = 3_000_000_000;
    public const CROWDED_RATE_FACTOR = 20;

    /** Maximum connections closed by one search, because a search checks all. An eighth of the room, if less. */
    private const MAX_CLOSED_PER_SEARCH = 32;

    /**
     * Room is expected soon if at least one of MAX_CONNECTIONS_PER_IDLE connections is idle, even if not long enough
     * yet.
     */
    private const MAX_CONNECTIONS_PER_IDLE = 16;

    /** Nanoseconds between a search without result and the next search. */
    private const SEARCH_PAUSE_NANOSECONDS = 50_000_000;

    /** Nanoseconds without room after which the server counts as full, and in which that must be repeated. */
    private const FULL_AFTER_NANOSECONDS = 1_000_000_000;
    private const REPEAT_WITHIN_NANOSECONDS = 300_000_000;

    /** @var array<string, int> connections by the client's network */
    private array $networks = [];

    /** @var array<string, string> networks of trusted proxies by address; many clients may connect through a proxy */
    private array $proxies = [];

    /** @var array<string, int> until when a network, or all (''), is not searched, by hrtime() */
    private array $pauses = [];

    /** Until when {@see closeSlowConnections()} does nothing, by hrtime(). */
    private int $nextSlowSearchAt = 0;

    /** When a connection first and last had to wait for room, by hrtime(). */
    private int $waitingSince = 0;
    private int $lastWaitAt = 0;

    /** Whether the last search has found connections that can be closed soon. */
    private bool $roomExpected = false;

    private readonly int $descriptors;

    public function __construct(private readonly HttpServerOptions $options, private readonly DiskFiles $uploads)
    {
        $limit = \function_exists('posix_getrlimit') ? posix_getrlimit()['soft openfiles'] ?? 'unlimited' : 'unlimited';
        $this->descriptors = is_numeric($limit)
            ? max(1, (int) $limit - min(self::RESERVED_DESCRIPTORS, intdiv((int) $limit, 4)))
            : \PHP_INT_MAX;
    }

    /** Returns how many connections can be open at once. */
    public function maxConnections(): int
    {
        return min($this->options->maxConnections, $this->maxDescriptors() - $this->uploads->count());
    }

    /** Returns how many files of uploads can be open at once. */
    public function maxFiles(): int
    {
        return intdiv($this->maxDescriptors(), self::UPLOAD_SHARE_DIVISOR);
    }

    /** Returns the number of descriptors for connections and files of uploads. */
    private function maxDescriptors(): int
    {
        $watchable = EventLoop::getDriver()->getHandle() === null ? self::MAX_SELECT_CONNECTIONS : \PHP_INT_MAX;

        return min($watchable, $this->descriptors);
    }

    /**
     * Returns whether another connection of this client may be open. Closes others of the same address if necessary.
     *
     * @param array<Connection> $connections all of the server
     */
    public function admits(Peer $peer, array $connections): bool
    {
        $max = $this->options->maxConnectionsPerAddress ?? max(
            1,
            intdiv($this->maxConnections(), self::ADDRESS_SHARE_DIVISOR),
        );

        return ($this->networks[$peer->network] ?? 0) < $max
            || isset($this->proxies[$peer->address])
            || $this->makeRoom($connections, $peer->network);
    }

    /** Counts a connection. Clients of a Unix socket have no address and are not counted. */
    public function countConnection(Peer $peer): void
    {
        if ($peer->port !== 0) {
            $this->networks[$peer->network] = ($this->networks[$peer->network] ?? 0) + 1;
        }
    }

    public function uncountConnection(Peer $peer): void
    {
        $network = $peer->network;
        if (isset($this->networks[$network]) && --$this->networks[$network] === 0) {
            unset($this->networks[$network], $this->pauses[$network]);
            $this->proxies = $this->proxies === [] ? [] : array_diff($this->proxies, [$network]);
        }
    }

    /** Exempts a trusted proxy from the limit per address, as long as it has connections. */
    public function trust(Peer $peer): void
    {
        if (isset($this->networks[$peer->network])) {
            $this->proxies[$peer->address] = $peer->network;
        }
    }

    /**
     * Closes connections that have kept the server waiting; those of proxies and Unix sockets last.
     *
     * @param array<Connection> $connections all of the server
     * @param string            $network     whose connections may be closed; '' for all
     *
     * @return bool whether one was closed
     */
    public function makeRoom(array $connections, string $network = ''): bool
    {
        $now = (int) hrtime(true);
        if ($now < ($this->pauses[$network] ?? 0)) {
            return false;
        }
        [$direct, $proxied, $closableSoon] = [[], [], 0];
        foreach ($connections as $key => $connection) {
            $from = $network === '' || $connection->peer->network === $network ? $connection->evictableFrom() : null;
            if ($from !== null && $now < $from) {
                ++$closableSoon;
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
            $this->pauses[$network] = $now + self::SEARCH_PAUSE_NANOSECONDS;
            $this->roomExpected = $network === ''
                ? $closableSoon * self::MAX_CONNECTIONS_PER_IDLE >= \count($connections)
                : $this->roomExpected;
        }

        return $waiting !== [];
    }

    /**
     * Closes connections whose client is too slow, because there is no room for another request.
     *
     * @param array<Connection> $connections all of the server
     */
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
     * @return array<array-key, int>
     */
    private static function tooSlow(array $connections, int $now): array
    {
        return array_fill_keys(
            array_keys(array_filter(
                $connections,
                static fn(Connection $connection): bool => $connection->isTooSlowForOthers($now),
            )),
            0,
        );
    }

    public function recordWait(): void
    {
        $now = (int) hrtime(true);
        $this->waitingSince = $this->roomExpected || $now - $this->lastWaitAt > self::REPEAT_WITHIN_NANOSECONDS
            ? $now
            : $this->waitingSince;
        $this->lastWaitAt = $now;
    }

    /** Returns whether connections have waited for some time. Requests should then go to other servers. */
    public function isFull(): bool
    {
        return hrtime(true) - $this->lastWaitAt <= self::REPEAT_WITHIN_NANOSECONDS
            && $this->lastWaitAt - $this->waitingSince >= self::FULL_AFTER_NANOSECONDS;
    }
}
