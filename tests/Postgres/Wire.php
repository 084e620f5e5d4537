<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;

/** A connected socket whose reads and writes suspend the fiber. It can be half-closed, closed and reset. */
final class Wire
{
    private const READ_SIZE = 65_536;

    /** @var array<string, Suspension<null>> by the watcher that resumes it */
    private array $waiting = [];

    /** @param resource|null $socket null when closed */
    public function __construct(private mixed $socket)
    {
        \assert($socket !== null);
        stream_set_blocking($socket, false);
        stream_set_write_buffer($socket, 0);
        stream_set_chunk_size($socket, self::READ_SIZE);
    }

    public function __destruct()
    {
        $this->close();
    }

    /** @throws \RuntimeException when no server listens there */
    public static function connect(string $address): self
    {
        $context = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
        $socket = @stream_socket_client($address, $code, $message, 5, \STREAM_CLIENT_CONNECT, $context);

        return $socket !== false ? new self($socket) : throw new \RuntimeException("{$address}: {$message}");
    }

    public function isClosed(): bool
    {
        return $this->socket === null;
    }

    /**
     * Returns bytes as soon as some have arrived. Returns '' when either side has closed the connection or the other
     * side has reset it.
     */
    public function read(int $most = self::READ_SIZE): string
    {
        while ($this->socket !== null) {
            $bytes = @fread($this->socket, max(1, $most));
            if ($bytes !== '' && $bytes !== false) {
                return $bytes;
            }
            if (feof($this->socket)) {
                return '';
            }
            $this->wait(EventLoop::onReadable(...));
        }

        return '';
    }

    /** Returns true when the kernel has accepted all bytes, and false when the connection is gone. */
    public function write(string $bytes): bool
    {
        while ($bytes !== '' && $this->socket !== null) {
            $written = @fwrite($this->socket, $bytes);
            if ($written === false) {
                return false;
            }
            $bytes = substr($bytes, $written);
            if ($bytes !== '') {
                $this->wait(EventLoop::onWritable(...));
            }
        }

        return $bytes === '';
    }

    /** Performs the TLS handshake as a server. Returns false when it fails. */
    public function startTls(string $certificate, string $key, ?string $authority = null): bool
    {
        if ($this->socket === null) {
            return false;
        }
        $options = [
            'local_cert' => $certificate,
            'local_pk' => $key,
            'verify_peer' => $authority !== null,
            'verify_peer_name' => false,
        ];
        stream_context_set_option(
            $this->socket,
            ['ssl' => $authority === null ? $options : [...$options, 'cafile' => $authority]],
        );
        $done = 0;
        while ($done === 0 && $this->socket !== null) { // the handshake needs several messages in each direction
            $done = @stream_socket_enable_crypto($this->socket, true, \STREAM_CRYPTO_METHOD_TLS_SERVER);
            if ($done === 0) {
                $this->wait(EventLoop::onReadable(...));
            }
        }

        return $done === true;
    }

    /** Suspends until this side closes the socket. */
    public function stall(): void
    {
        while ($this->socket !== null) {
            $this->wait(
                static fn(mixed $socket, \Closure $callback): string
                    => EventLoop::disable(EventLoop::onReadable($socket, $callback)),
            );
        }
    }

    /** Closes the sending direction. Reading continues. */
    public function finish(): void
    {
        if ($this->socket !== null) {
            @stream_socket_shutdown($this->socket, \STREAM_SHUT_WR);
        }
    }

    /** Closes the socket. Fibers that wait for it continue as if the other side had closed it. */
    public function close(): void
    {
        if ($this->socket === null) {
            return;
        }
        $waiting = $this->waiting;
        $this->waiting = [];
        foreach ($waiting as $watcher => $suspension) {
            EventLoop::cancel($watcher);
            $suspension->resume();
        }
        fclose($this->socket);
        $this->socket = null;
    }

    /** Closes the socket with a TCP reset. The other side gets ECONNRESET; unsent bytes are lost. Needs ext-sockets. */
    public function reset(): void
    {
        if ($this->socket !== null) {
            $socket = socket_import_stream($this->socket);
            \assert($socket !== false);
            socket_set_option($socket, \SOL_SOCKET, \SO_LINGER, ['l_onoff' => 1, 'l_linger' => 0]);
            unset($socket); // the Socket object keeps the descriptor open
            $this->close();
        }
    }

    /** @param \Closure(resource, \Closure(string): void): string $watch */
    private function wait(\Closure $watch): void
    {
        \assert($this->socket !== null);
        /** @var Suspension<null> $suspension */
        $suspension = EventLoop::getSuspension();
        $watcher = $watch($this->socket, function (string $watcher) use ($suspension): void {
            EventLoop::cancel($watcher);
            unset($this->waiting[$watcher]);
            $suspension->resume();
        });
        $this->waiting[$watcher] = $suspension;
        $suspension->suspend();
    }
}
