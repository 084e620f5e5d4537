<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Internal\FrameHandler;
use Spindle\Internal\FrameReader;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\Warnings;
use Spindle\Worker\Internal\WorkerProtocol;

/** The socket of a worker or host to its pool. The methods block, because a worker runs one task at a time. */
final class PoolLink implements FrameHandler
{
    private const MIN_READ_BYTES = 1 << 16;
    private const MAX_READ_BYTES = 1 << 20;

    /** To avoid a copy, a payload of at least this size in bytes is sent separately from its header. */
    private const MIN_SEPARATE_BYTES = 1 << 16;

    /** Nanoseconds for which connect() tries again while the accept queue of the pool's socket is full (EAGAIN). */
    private const CONNECT_TIMEOUT_NANOSECONDS = 30_000_000_000;
    private const EAGAIN = 11;

    private readonly FrameReader $frames;

    /** @var array{int, int, string}|null frame that {@see receive()} returns next */
    private ?array $next = null;

    /** @var \SplQueue<array{int, int, string}> frames after $next */
    private readonly \SplQueue $later;

    private bool $isEnded = false;

    /** Pool's answer to {@see greet()}: the first frame that must arrive; null before greet() and after the answer. */
    private ?string $welcome = null;

    /** @param resource $socket a caller may wait for this stream only while {@see isBuffered()} returns false */
    private function __construct(public readonly mixed $socket)
    {
        $this->frames = new FrameReader(maxType: WorkerProtocol::REAP);
        $this->later = new \SplQueue();
    }

    /** Connects to an abstract Unix socket. Returns null if no process listens, or the accept queue stays full. */
    public static function connect(string $name): ?self
    {
        // The new stream gets its read timeout from this setting. -1 means no timeout: a worker may wait for days.
        $timeout = ini_set('default_socket_timeout', '-1');
        $end = hrtime(true) + self::CONNECT_TIMEOUT_NANOSECONDS;
        do {
            [$socket, $code] = Warnings::suppressed(
                static fn(): array => [stream_socket_client("unix://\0{$name}", $code, $message, 30.0), $code],
            );
            $isFull = $socket === false && $code === self::EAGAIN && hrtime(true) < $end;
            if ($isFull) {
                usleep(1_000);
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

    /** Proves that this process knows the pool's secret. Does not wait: {@see receive()} checks the answer later. */
    public function greet(int $type, int $id, #[\SensitiveParameter] string $secret, string $data = ''): void
    {
        $nonce = random_bytes(WorkerProtocol::NONCE_BYTES);
        $welcome = WorkerProtocol::welcome($secret, $nonce);
        $this->welcome = WorkerProtocol::frame(WorkerProtocol::WELCOME, $id, $welcome);
        $greeting = WorkerProtocol::greeting($secret, $nonce, $type, $id, $data);
        $this->write(WorkerProtocol::frame($type, $id, $greeting));
    }

    /**
     * @return array{int, int, string}|null type, id and payload; null when the connection has ended, the peer is not
     *     the pool, or the bytes are no frame
     */
    public function receive(): ?array
    {
        if ($this->welcome !== null) {
            if (!$this->isWelcomedWith($this->welcome)) {
                // another process listens under the name of the pool's socket, and gets no more data
                Warnings::suppressed(fn(): bool => stream_socket_shutdown($this->socket, \STREAM_SHUT_RDWR));

                return null;
            }
            $this->welcome = null;
        }
        while ($this->next === null) {
            if ($this->isEnded) {
                return null;
            }
            $this->read();
        }
        $frame = $this->next;
        $this->next = $this->later->isEmpty() ? null : $this->later->dequeue();

        return $frame;
    }

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        $frame = [$type, $id, substr($bytes, $at, $length)];
        $this->next === null ? $this->next = $frame : $this->later->enqueue($frame);
    }

    /** Returns whether bytes were read that receive() has not returned. These bytes do not make the socket readable. */
    public function isBuffered(): bool
    {
        return $this->next !== null || !$this->frames->isEmpty();
    }

    public function isReadable(): bool
    {
        return $this->isBuffered() || Warnings::suppressed(function (): bool {
            $reads = [$this->socket];
            $none = null;

            return stream_select($reads, $none, $none, 0) === 1;
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

    /** Closes the host's socket in a fork. The fork then opens another connection to the pool. */
    public function close(): void
    {
        fclose($this->socket);
    }

    /**
     * Compares the first bytes with the expected frame. Reads at most as many bytes as the expected frame has: any
     * process may have sent these bytes, so the length in the received frame may be wrong.
     */
    private function isWelcomedWith(string $welcome): bool
    {
        $bytes = '';
        while (\strlen($bytes) < \strlen($welcome)) {
            $more = $this->readBytes(max(1, \strlen($welcome) - \strlen($bytes)));
            $bytes .= $more;
            if ($more === null || !str_starts_with($welcome, substr($bytes, 0, LauncherProtocol::HEADER_BYTES))) {
                return false;
            }
        }

        return hash_equals($welcome, $bytes);
    }

    private function read(): void
    {
        $bytes = $this->readBytes(
            $this->frames->isEmpty()
                ? self::MIN_READ_BYTES
                : max(self::MIN_READ_BYTES, min($this->frames->missing(), self::MAX_READ_BYTES)),
        );
        try {
            $this->isEnded = $bytes === null;
            $this->frames->feed((string) $bytes, $this);
        } catch (MalformedFrameException) {
            $this->isEnded = true; // a task has read from the socket, so the start of the next frame is unknown
        }
    }

    /**
     * @param positive-int $maximum
     *
     * @return string|null empty if a signal interrupted the read; null when the pool has closed the connection
     */
    private function readBytes(int $maximum): ?string
    {
        $bytes = fread($this->socket, $maximum); // PHP reports no warning when it cannot read from a socket

        return ($bytes === '' || $bytes === false) && feof($this->socket) ? null : (string) $bytes;
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
