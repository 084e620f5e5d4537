<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Form\DiskFiles;
use Spindle\Http\Internal\Message\Peer;

/**
 * How many connections a server has room for, how many of them one address may have, and which are closed to make room:
 * those that have kept the server waiting longest, be it for a request, for the rest of a head, for a TLS handshake, or for
 * their end. Where there are none, those whose client sends a request or takes an answer too slowly. No other connection
 * with a request under way is closed for another.
 */
final class Room
{
    /** Connections with a loop of stream_select(), which can watch 1,024 descriptors; the rest is for what handlers open. */
    public const SELECTABLE = 900;

    /** Descriptors that connections leave to all else: so many, or a quarter of the limit where that is less. */
    private const OTHER_DESCRIPTORS = 124;

    /** One address may have half of the room, and files of uploads a third of the descriptors. */
    private const SHARE = 2;
    private const SHARE_OF_FILES = 3;

    /**
     * Nanoseconds for which a connection must have kept the server waiting before it is closed for another: where it has
     * had answers, and where its first request, or the rest of one, may be on its way.
     */
    public const PATIENCE_IDLE = 50_000_000;
    public const PATIENCE = 500_000_000;

    /** The same for a connection with a request under way, whose client sends or takes less than so many times the option minRate. */
    public const PATIENCE_UNDER_WAY = 3_000_000_000;
    public const CROWDED = 20;

    /** Connections that are closed at once: a search looks at all of them. An eighth of those that can be, if that is less. */
    private const BATCH = 32;

    /** There will be room soon where one of so many connections is idle, though not for long enough yet. */
    private const FEW = 16;

    /** Nanoseconds after a search in vain until the next. */
    private const PAUSE = 50_000_000;

    /** Nanoseconds for which there must have been no room before the server counts as full, and in which that must be repeated. */
    private const FULL_AFTER = 1_000_000_000;
    private const REPEATED_WITHIN = 300_000_000;

    /** @var array<string, int> connections by the client's network */
    private array $networks = [];

    /** @var array<string, string> networks of proxies, through which many clients come, by their addresses */
    private array $proxies = [];

    /** @var array<string, int> until when no search for connections of a network is made, or of any (''), by hrtime() */
    private array $pauses = [];

    /** Until when {@see relieve()} does nothing, by hrtime(). */
    private int $relieveAt = 0;

    /** Since when, and when last, a connection had to wait as there was no room; by hrtime(). */
    private int $heldSince = 0;
    private int $heldLast = 0;

    /** Whether the last search has found connections that can be closed soon. */
    private bool $soon = false;

    private readonly int $descriptors;

    public function __construct(private readonly HttpServerOptions $options, private readonly DiskFiles $uploads)
    {
        $limit = \function_exists('posix_getrlimit') ? posix_getrlimit()['soft openfiles'] ?? 'unlimited' : 'unlimited';
        $this->descriptors = is_numeric($limit) ? max(1, (int) $limit - min(self::OTHER_DESCRIPTORS, intdiv((int) $limit, 4))) : \PHP_INT_MAX;
    }

    /** Connections that can be open at once. */
    public function size(): int
    {
        return min($this->options->maxConnections, $this->places() - $this->uploads->count());
    }

    /** Files of uploads that can be open at once. */
    public function files(): int
    {
        return intdiv($this->places(), self::SHARE_OF_FILES);
    }

    /** Descriptors for connections, and for files of uploads. */
    private function places(): int
    {
        $watchable = EventLoop::getDriver()->getHandle() === null ? self::SELECTABLE : \PHP_INT_MAX;

        return min($watchable, $this->descriptors);
    }

    /**
     * Whether another connection of this client may be open, where necessary after others of the same address were closed.
     *
     * @param array<Connection> $connections all of the server
     */
    public function admits(Peer $peer, array $connections): bool
    {
        $max = $this->options->maxConnectionsPerAddress ?? max(1, intdiv($this->size(), self::SHARE));

        return ($this->networks[$peer->network] ?? 0) < $max || isset($this->proxies[$peer->address]) || $this->make($connections, $peer->network);
    }

    /** The clients of a Unix socket have no address, and are not counted. */
    public function began(Peer $peer): void
    {
        if ($peer->port !== 0) {
            $this->networks[$peer->network] = ($this->networks[$peer->network] ?? 0) + 1;
        }
    }

    public function ended(Peer $peer): void
    {
        $network = $peer->network;
        if (isset($this->networks[$network]) && --$this->networks[$network] === 0) {
            unset($this->networks[$network], $this->pauses[$network]);
            $this->proxies = $this->proxies === [] ? [] : array_diff($this->proxies, [$network]);
        }
    }

    /** The peer is a proxy that the application trusts: the share of an address is not for it, as long as it has connections. */
    public function trust(Peer $peer): void
    {
        if (isset($this->networks[$peer->network])) {
            $this->proxies[$peer->address] = $peer->network;
        }
    }

    /**
     * Closes connections that have kept the server waiting, if there are any; those of proxies and of Unix sockets last.
     *
     * @param array<Connection> $connections all of the server
     * @param string            $network     whose connections may be closed; '' for those of any
     *
     * @return bool whether one was closed
     */
    public function make(array $connections, string $network = ''): bool
    {
        $now = (int) hrtime(true);
        if ($now < ($this->pauses[$network] ?? 0)) {
            return false;
        }
        [$direct, $proxied, $young] = [[], [], 0];
        foreach ($connections as $key => $connection) {
            $from = $network === '' || $connection->peer->network === $network ? $connection->disposableFrom() : null;
            if ($from !== null && $now < $from) {
                ++$young;
            } elseif ($from !== null) {
                $isProxied = $connection->peer->port === 0 || isset($this->proxies[$connection->peer->address]);
                $isProxied ? $proxied[$key] = $from : $direct[$key] = $from;
            }
        }
        $waiting = $direct === [] ? $proxied : $direct;
        if ($waiting === []) {
            $mine = $network === '' ? $connections : array_filter($connections, static fn(Connection $connection): bool => $connection->peer->network === $network);
            $waiting = self::tooSlow($mine, $now);
        }
        asort($waiting);
        foreach (array_keys(\array_slice($waiting, 0, max(1, min(self::BATCH, intdiv(\count($waiting), 8))), true)) as $key) {
            $connections[$key]->evict();
        }
        if ($waiting === []) {
            $this->pauses[$network] = $now + self::PAUSE;
            $this->soon = $network === '' ? $young * self::FEW >= \count($connections) : $this->soon;
        }

        return $waiting !== [];
    }

    /**
     * Closes connections whose client is too slow, as a request can not be handled beside all those that are under way.
     *
     * @param array<Connection> $connections all of the server
     */
    public function relieve(array $connections): void
    {
        $now = (int) hrtime(true);
        if ($now >= $this->relieveAt) {
            $this->relieveAt = $now + self::PAUSE;
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
        return array_fill_keys(array_keys(array_filter($connections, static fn(Connection $connection): bool => $connection->isTooSlowForOthers($now))), 0);
    }

    /** A connection has to wait in the kernel's queue, as there is no room. */
    public function held(): void
    {
        $now = (int) hrtime(true);
        $this->heldSince = $this->soon || $now - $this->heldLast > self::REPEATED_WITHIN ? $now : $this->heldSince;
        $this->heldLast = $now;
    }

    /** Whether connections have had to wait for a while: requests should go elsewhere. */
    public function isFull(): bool
    {
        return hrtime(true) - $this->heldLast <= self::REPEATED_WITHIN && $this->heldLast - $this->heldSince >= self::FULL_AFTER;
    }
}
