<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Internal\Warnings;
use Spindle\Worker\Internal\WorkerProtocol;

/** A worker's end of the socket to its pool. Its methods block, because a worker runs one task at a time. */
final class PoolLink
{
    /** Smallest and largest read, in bytes. */
    private const MIN_READ_BYTES = 1 << 16;
    private const MAX_READ_BYTES = 1 << 20;

    /** A payload of at least this size, in bytes, is sent separately from its header, so that it is not copied. */
    private const MIN_SEPARATE_BYTES = 1 << 16;

    private const HEADER_BYTES = 9;

    /** Nanoseconds to wait while the accept queue of the pool's socket is full; and the error code of a full queue. */
    private const CONNECT_TIMEOUT_NANOSECONDS = 30_000_000_000;
    private const EAGAIN = 11;

    private string $buffer = '';

    /** Bytes that the pool has to send first; null when they have arrived. */
    private ?string $welcome = null;

    /** @param resource $socket */
    private function __construct(private readonly mixed $socket) {}

    /** Connects to an abstract Unix socket. Returns null if no process listens, or the accept queue stays full. */
    public static function connect(string $name): ?self
    {
        // A new stream gets its timeout from this setting. A worker may wait for days.
        $timeout = ini_set('default_socket_timeout', '-1');
        $end = hrtime(true) + self::CONNECT_TIMEOUT_NANOSECONDS;
        do {
            $socket = @stream_socket_client("unix://\0{$name}", $code, $message, 30.0);
            $isFull = $socket === false && $code === self::EAGAIN && hrtime(true) < $end;
            if ($isFull) {
                usleep(1_000); // the accept queue of the socket is full
            }
        } while ($isFull);
        ini_set('default_socket_timeout', (string) $timeout);
        if ($socket === false) {
            return null;
        }
        stream_set_read_buffer($socket, 0);
        stream_set_write_buffer($socket, 0);

        return new self($socket);
    }

    /** Proves that this is the pool's worker or host. To save a wait, the first {@see receive()} checks the answer. */
    public function greet(int $type, int $id, #[\SensitiveParameter] string $secret, string $data = ''): void
    {
        $nonce = random_bytes(WorkerProtocol::NONCE_BYTES);
        $this->welcome = pack('VCV', WorkerProtocol::PROOF_BYTES + 5, WorkerProtocol::WELCOME, $id)
            . WorkerProtocol::welcome($secret, $nonce);
        $greeting = WorkerProtocol::greeting($secret, $nonce, $type, $id, $data);
        $this->write(pack('VCV', \strlen($greeting) + 5, $type, $id) . $greeting);
    }

    /**
     * @return array{int, int, string}|null type, id and payload; null when the connection has ended, the peer is not
     *     the pool, or the bytes are no frame
     */
    public function receive(): ?array
    {
        if ($this->welcome !== null) {
            if (!$this->isWelcomedWith($this->welcome)) {
                // another process listens under the pool's name, and gets no more data
                Warnings::suppressed(fn(): bool => @stream_socket_shutdown($this->socket, \STREAM_SHUT_RDWR));

                return null;
            }
            $this->welcome = null;
        }
        while (true) {
            $missing = self::HEADER_BYTES - \strlen($this->buffer);
            if ($missing <= 0) {
                /** @var array{length: int, type: int, id: int} $header */
                $header = unpack('Vlength/Ctype/Vid', $this->buffer);
                if (
                    $header['length'] < 5
                    || $header['type'] < WorkerProtocol::CODE
                    || $header['type'] > WorkerProtocol::REAP
                ) {
                    return null; // a task has read from the socket, so frames cannot be found any more
                }
                $missing = 4 + $header['length'] - \strlen($this->buffer);
                if ($missing <= 0) {
                    $payload = substr($this->buffer, self::HEADER_BYTES, $header['length'] - 5);
                    $this->buffer = $missing === 0 ? '' : substr($this->buffer, 4 + $header['length']);

                    return [$header['type'], $header['id'], $payload];
                }
            }
            if (!$this->read($missing)) {
                return null;
            }
        }
    }

    /** @return resource stream to wait for, unless {@see isBuffered()} returns true */
    public function stream(): mixed
    {
        return $this->socket;
    }

    /** Returns whether bytes were read that {@see receive()} has not returned. */
    public function isBuffered(): bool
    {
        return $this->buffer !== '';
    }

    /** Returns whether part of a frame, or the end of the connection, has arrived. */
    public function isReadable(): bool
    {
        return $this->buffer !== '' || Warnings::suppressed(function (): bool {
            $reads = [$this->socket];
            $none = null;

            return @stream_select($reads, $none, $none, 0) === 1;
        });
    }

    /** @return bool false when the pool has closed the connection */
    public function send(int $type, int $id, string $head, string $payload = ''): bool
    {
        $header = WorkerProtocol::MAGIC . pack('VCV', \strlen($head) + \strlen($payload) + 5, $type, $id) . $head;

        return \strlen($payload) < self::MIN_SEPARATE_BYTES
            ? $this->write($header . $payload)
            : $this->write($header) && $this->write($payload);
    }

    /** Closes the socket, in a fork of the host. */
    public function close(): void
    {
        fclose($this->socket);
    }

    /** Checks the first bytes against the expected frame, without trusting any of them, not even a length. */
    private function isWelcomedWith(string $welcome): bool
    {
        $size = \strlen($welcome);
        while (\strlen($this->buffer) < $size) {
            if (
                !str_starts_with($welcome, substr($this->buffer, 0, self::HEADER_BYTES))
                || !$this->read($size - \strlen($this->buffer))
            ) {
                return false;
            }
        }
        if (!hash_equals($welcome, substr($this->buffer, 0, $size))) {
            return false;
        }
        $this->buffer = substr($this->buffer, $size);

        return true;
    }

    /** @return bool false when the pool has closed the connection; true without new bytes after a signal */
    private function read(int $missing): bool
    {
        $bytes = Warnings::read($this->socket, max(self::MIN_READ_BYTES, min($missing, self::MAX_READ_BYTES)));
        if ($bytes === '' || $bytes === false) {
            return !feof($this->socket);
        }
        $this->buffer .= $bytes;

        return true;
    }

    private function write(string $bytes): bool
    {
        while (true) {
            $written = Warnings::write($this->socket, $bytes);
            if ($written === \strlen($bytes)) {
                return true;
            }
            if ($written === false || $written === 0) {
                [$written, $error] = Warnings::of(fn(): int => (int) fwrite($this->socket, $bytes));
                if ($written === 0 && !str_contains($error, 'errno=4 ')) {
                    return false;
                }
            }
            $bytes = substr($bytes, $written); // a signal interrupted the write
            if ($bytes === '') {
                return true;
            }
        }
    }
}
