<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Revolt\EventLoop;
use Spindle\Tests\Async;

use function Amp\delay;

/**
 * A PostgreSQL server that follows scripts, in the same event loop as the client.
 *
 * Each connection has its own fiber, which calls its script, and is closed when the script returns. A script ends when
 * its client closes the connection. {@see stop()} throws any other exception of a script, such as a failed assertion.
 */
final class FakeServer
{
    /** Number of clients that have connected so far. */
    public int $connections = 0;

    /** @var array<int, FakeConnection> connections with a running script, by number */
    private array $open = [];

    private ?\Throwable $failure = null;

    private readonly string $accepting;

    /**
     * @param resource|null                                 $socket
     * @param non-empty-array<\Closure(FakeConnection): void> $scripts
     */
    private function __construct(
        private mixed $socket,
        private readonly array $scripts,
        public readonly string $host,
        public readonly int $port,
    ) {
        \assert($socket !== null);
        $weak = \WeakReference::create($this);
        $this->accepting = EventLoop::onReadable($socket, static fn() => $weak->get()?->accept());
    }

    public function __destruct()
    {
        $this->close();
    }

    /** @param \Closure(FakeConnection): void ...$scripts one for each client, in order; the last one for all others */
    public static function start(\Closure $script, \Closure ...$scripts): self
    {
        $socket = self::listen('tcp://127.0.0.1:0');
        $port = (int) substr((string) strrchr((string) stream_socket_get_name($socket, false), ':'), 1);

        return new self($socket, [$script, ...array_values($scripts)], '127.0.0.1', $port);
    }

    /**
     * Starts a server on a Unix socket in a directory of the test.
     *
     * @param \Closure(FakeConnection): void ...$scripts one for each client, in order; the last one for all others
     */
    public static function startIn(string $directory, \Closure $script, \Closure ...$scripts): self
    {
        return new self(
            self::listen("unix://{$directory}/.s.PGSQL.5432"),
            [$script, ...array_values($scripts)],
            $directory,
            5432,
        );
    }

    /** @param string ...$parameters by name, added to the server's own or replacing them */
    public function dsn(string ...$parameters): string
    {
        $parameters = [
            'host' => $this->host,
            'port' => (string) $this->port,
            'user' => 'test',
            'dbname' => 'test',
            ...$parameters,
        ];

        return implode(
            ' ',
            array_map(
                static fn(int|string $name, string $value): string => "{$name}='{$value}'",
                array_keys($parameters),
                $parameters,
            ),
        );
    }

    /** Returns the number of running scripts. */
    public function running(): int
    {
        return \count($this->open);
    }

    /**
     * Closes all connections and the server.
     *
     * @throws \Throwable the first exception of a script
     */
    public function stop(): void
    {
        $this->close();
        delay(0); // lets scripts end that waited for their client
        if ($this->failure !== null) {
            [$failure, $this->failure] = [$this->failure, null];

            throw $failure;
        }
    }

    /** @return resource */
    private static function listen(string $address): mixed
    {
        $context = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
        $socket = stream_socket_server(
            $address,
            $code,
            $message,
            \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN,
            $context,
        );
        if ($socket === false) {
            throw new \RuntimeException("{$address}: {$message}");
        }
        stream_set_blocking($socket, false);

        return $socket;
    }

    private function accept(): void
    {
        $client = $this->socket === null ? false : @stream_socket_accept($this->socket, 0);
        if ($client === false) {
            return;
        }
        $number = $this->connections++;
        $this->open[$number] = $connection = new FakeConnection(new Wire($client), $number);
        $script = $this->scripts[min($number, \count($this->scripts) - 1)];
        $weak = \WeakReference::create($this);
        Async::run(static function () use ($script, $connection, $weak): void {
            $failure = null;
            try {
                $script($connection);
            } catch (HungUpException) {
            } catch (\Throwable $failure) {
            }
            $connection->close();
            $weak->get()?->end($connection->number, $failure);
        });
    }

    private function end(int $number, ?\Throwable $failure): void
    {
        unset($this->open[$number]);
        $this->failure ??= $failure;
    }

    private function close(): void
    {
        EventLoop::cancel($this->accepting);
        foreach ($this->open as $connection) {
            $connection->close();
        }
        if ($this->socket !== null) {
            fclose($this->socket);
            $this->socket = null;
        }
    }
}
