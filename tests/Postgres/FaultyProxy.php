<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Random\Engine\Mt19937;
use Random\Randomizer;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Tests\Async;
use Spindle\Tests\Scale;

use function Amp\delay;

/**
 * A proxy between clients and a server that simulates network faults, in the same event loop as the client.
 *
 * Without a fault, the proxy passes on all bytes. A fault applies to all connections, including open ones, unless its
 * method says otherwise.
 */
final class FaultyProxy
{
    public readonly string $host;

    public readonly int $port;

    /** Number of clients that have connected so far. */
    public int $connections = 0;

    /** @var array<string, int> bytes passed on by all connections, by direction */
    private array $passed = ['to server' => 0, 'to client' => 0];

    private int $lastPassed = 0;

    /** @var array<int, ProxiedConnection> connections that are open on at least one side, by number */
    private array $open = [];

    private ?Randomizer $random = null;
    private int $slice = \PHP_INT_MAX;
    private float $delay = 0.0;
    private bool $swallows = false;

    /** Bytes on connections with a lower number are dropped. */
    private int $swallowedBelow = 0;
    private bool $mutes = false;
    private bool $refuses = false;
    private bool $isPaused = false;

    /** @var list<Suspension<null>> */
    private array $waiting = [];

    /**
     * @var array<string, array{int, bool}> by direction: bytes after which a connection is cut, and whether by a reset
     */
    private array $cuts = [];

    private readonly string $accepting;

    /** @var resource|null */
    private mixed $socket;

    /** @param string $server such as tcp://127.0.0.1:5432 or unix:///tmp/.s.PGSQL.5432 */
    public function __construct(private readonly string $server)
    {
        $context = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
        $socket = stream_socket_server(
            'tcp://127.0.0.1:0',
            $code,
            $message,
            \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN,
            $context,
        );
        if ($socket === false) {
            throw new \RuntimeException("No proxy can listen: {$message}");
        }
        stream_set_blocking($socket, false);
        $this->socket = $socket;
        [$this->host, $port] = explode(':', (string) stream_socket_get_name($socket, false));
        $this->port = (int) $port;
        $weak = \WeakReference::create($this);
        $this->accepting = EventLoop::onReadable($socket, static fn() => $weak->get()?->accept());
    }

    public function __destruct()
    {
        $this->stop();
    }

    public static function before(TemporaryPostgres $cluster): self
    {
        return new self("tcp://127.0.0.1:{$cluster->port}");
    }

    /** Returns the number of connections that are open on at least one side. */
    public function open(): int
    {
        return \count($this->open);
    }

    /** Returns the bytes passed on by all connections. */
    public function passed(Direction $direction): int
    {
        return $this->passed[$direction->value];
    }

    /** Returns the time in nanoseconds, as of hrtime(), when any connection last passed on bytes; 0 if none has. */
    public function lastPassed(): int
    {
        return $this->lastPassed;
    }

    /** Passes on at most `$bytes` at once, with a turn of the event loop before the next ones. */
    public function slice(int $bytes): void
    {
        [$this->slice, $this->random] = [max(1, $bytes), null];
    }

    /** Does the same with random sizes from 1 to `$most` bytes. */
    public function sliceRandomly(int $most, ?int $seed = null): void
    {
        $this->slice($most);
        $this->random = new Randomizer(new Mt19937($seed ?? Scale::seed()));
    }

    /** Delays each piece; later pieces of the same direction wait for it. */
    public function delay(float $seconds): void
    {
        $this->delay = $seconds;
    }

    /**
     * Drops all bytes, as if the network were down. If one side closes its connection, the other side does not notice.
     */
    public function swallow(): void
    {
        $this->swallows = true;
    }

    /** Does the same for good, but only for connections open now, as if a firewall had forgotten them. */
    public function swallowOpen(): void
    {
        $this->swallowedBelow = $this->connections;
    }

    /** Drops all bytes from the server. Bytes from the client still reach the server. */
    public function mute(): void
    {
        $this->mutes = true;
    }

    /** Stops reading, so that both sides can no longer write once all buffers are full. */
    public function pause(): void
    {
        $this->isPaused = true;
    }

    /** Ends all faults but those of {@see swallowOpen()}, {@see closeAfter()} and {@see resetAfter()}. */
    public function resume(): void
    {
        $this->isPaused = $this->swallows = $this->mutes = $this->refuses = false;
        [$this->slice, $this->random, $this->delay] = [\PHP_INT_MAX, null, 0.0];
        [$waiting, $this->waiting] = [$this->waiting, []];
        foreach ($waiting as $suspension) {
            $suspension->resume();
        }
    }

    /** Closes connections of new clients at once. */
    public function refuse(): void
    {
        $this->refuses = true;
    }

    /** Closes each connection after it has passed on exactly `$bytes` in this direction. */
    public function closeAfter(int $bytes, Direction $direction): void
    {
        $this->cuts[$direction->value] = [$bytes, false];
    }

    /** Does the same by a reset: both sides get ECONNRESET. */
    public function resetAfter(int $bytes, Direction $direction): void
    {
        $this->cuts[$direction->value] = [$bytes, true];
    }

    /** Revokes {@see closeAfter()} and {@see resetAfter()}. */
    public function cutNone(): void
    {
        $this->cuts = [];
    }

    /** Closes all connections, on both sides. */
    public function close(): void
    {
        foreach ($this->open as $connection) {
            $connection->close();
        }
    }

    /** Does the same by a reset: both sides get ECONNRESET. */
    public function reset(): void
    {
        foreach ($this->open as $connection) {
            $connection->reset();
        }
    }

    /** Closes all connections and accepts no more. */
    public function stop(): void
    {
        EventLoop::cancel($this->accepting);
        $this->close();
        $this->resume();
        if ($this->socket !== null) {
            fclose($this->socket);
            $this->socket = null;
        }
    }

    private function accept(): void
    {
        $socket = $this->socket === null ? false : @stream_socket_accept($this->socket, 0);
        if ($socket === false) {
            return;
        }
        $number = $this->connections++;
        $client = new Wire($socket);
        try {
            $server = $this->refuses ? null : Wire::connect($this->server);
        } catch (\RuntimeException) {
            $server = null;
        }
        if ($server === null) {
            $client->close();

            return;
        }
        $this->open[$number] = $connection = new ProxiedConnection($client, $server);
        Async::run(fn() => $this->pump($number, $connection, Direction::ToServer));
        Async::run(fn() => $this->pump($number, $connection, Direction::ToClient));
    }

    private function pump(int $number, ProxiedConnection $connection, Direction $direction): void
    {
        $this->holdUp();
        while (($bytes = $connection->read($direction)) !== '') {
            while ($bytes !== '') {
                $piece = substr($bytes, 0, $this->size());
                $bytes = substr($bytes, \strlen($piece));
                if (!$this->pass($number, $piece, $connection, $direction)) {
                    break 2;
                }
            }
            $this->holdUp();
        }
        $connection->end($direction, $this->swallows($number));
        if ($connection->isClosed()) {
            unset($this->open[$number]);
        }
    }

    /** Returns false when the connection is cut. */
    private function pass(int $number, string $piece, ProxiedConnection $connection, Direction $direction): bool
    {
        $this->holdUp();
        if ($this->delay > 0) {
            delay($this->delay);
        }
        if ($this->swallows($number) || ($this->mutes && $direction === Direction::ToClient)) {
            return true;
        }
        [$most, $byReset] = $this->cuts[$direction->value] ?? [\PHP_INT_MAX, false];
        $most -= $connection->passed($direction);
        $piece = substr($piece, 0, max(0, $most));
        $this->passed[$direction->value] += \strlen($piece);
        $this->lastPassed = hrtime(true);
        $connection->write($direction, $piece);
        if (\strlen($piece) >= $most) {
            $byReset ? $connection->reset() : $connection->close();

            return false;
        }
        if ($this->slice !== \PHP_INT_MAX) {
            delay(0);
        }

        return true;
    }

    private function swallows(int $number): bool
    {
        return $this->swallows || $number < $this->swallowedBelow;
    }

    private function size(): int
    {
        return $this->random === null ? $this->slice : $this->random->getInt(1, $this->slice);
    }

    private function holdUp(): void
    {
        while ($this->isPaused) {
            /** @var Suspension<null> $suspension */
            $suspension = EventLoop::getSuspension();
            $this->waiting[] = $suspension;
            $suspension->suspend();
        }
    }
}
