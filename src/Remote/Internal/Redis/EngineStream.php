<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Predis\Connection\ParametersInterface;
use Predis\Connection\Resource\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Clock;
use Spindle\Internal\Network\WriteBuffer;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Warnings;
use Spindle\Remote\Internal\ProcessEnd;

/**
 * Adapts the socket of a connection to the engine (Redis or Valkey) to the stream interface that Predis uses. While no
 * bytes are available, read() suspends the calling fiber, and other fibers run.
 *
 * At most one fiber may read at a time. write() never suspends, so the commands of several fibers never mix. If the
 * socket does not accept all bytes, a callback of the event loop sends the remaining bytes.
 */
final class EngineStream implements StreamInterface, StreamFactoryInterface
{
    private const READ_BYTES = 1 << 16;

    /** Maximum seconds that an exiting process waits until the engines have read its last requests. */
    private const EXIT_TIMEOUT = 1.0;

    private const BROKEN_CONNECTION_CODE = 1;

    /** @var \WeakMap<self, true>|null all streams; null before the first one */
    private static ?\WeakMap $streams = null;

    /** @var array<int, resource> open sockets by resource id */
    private static array $sockets = [];

    private string $buffer = '';

    /** Number of bytes of the buffer that {@see read()} has returned. */
    private int $offset = 0;

    /** Bytes from {@see write()} that the socket has not accepted. */
    private readonly WriteBuffer $unsent;

    /** Condition on which {@see awaitBytes()} waits until the socket is readable or closed. */
    private readonly Condition $changed;

    /** Reason that was passed to {@see fail()}; null while the stream is open. */
    private ?string $failure = null;

    /** Time of {@see Clock::now()} at which the engine last sent bytes, or accepted bytes that waited in $unsent. */
    private float $lastProgress;

    /** Id of the process that opened the stream. A fork of that process shares the socket, but must not use it. */
    private readonly int $ownerPid;

    /** Whether {@see read()} keeps the event loop running, because a request is unanswered. */
    private bool $keepsLoopRunning = false;

    public readonly OwnLoop $loop;
    private string $readWatcher = '';
    private string $writeWatcher = '';

    /** @var resource|null null once the stream is closed */
    private $socket;

    /** @param resource $socket connected and non-blocking */
    public function __construct($socket)
    {
        $this->socket = $socket;
        $this->lastProgress = Clock::now();
        $this->ownerPid = (int) getmypid();
        $this->changed = new Condition();
        $this->loop = new OwnLoop();
        $this->unsent = new WriteBuffer();
        stream_set_read_buffer($socket, 0);
        self::$streams ??= new \WeakMap();
        self::$streams[$this] = true;
        self::$sockets[(int) $socket] = $socket;
        ProcessEnd::register();
    }

    /**
     * Does not close the socket, because the last requests of a process may be sent after this destructor. PHP closes
     * the socket when PHP frees this object. In a fork, `self::$sockets` keeps the socket open, because closing the
     * socket would end the parent's TLS session.
     */
    public function __destruct()
    {
        $this->cancelWatchers();
        if ($this->belongsToThisProcess()) {
            unset(self::$sockets[(int) $this->socket]);
        }
    }

    /**
     * Ends the connections at the end of the process. Waits until the engines have read all requests and closed the
     * connections, but at most EXIT_TIMEOUT in all. If this process closed a connection with unread answers, the
     * system would reset the connection. Then the requests that the engine has not read would be lost. A fork does not
     * end the connections of its parent.
     */
    public static function endAll(): void
    {
        $end = Clock::now() + self::EXIT_TIMEOUT;
        do {
            [$reading, $writing, $none] = [[], [], null];
            foreach (self::$streams ?? [] as $stream => $_) {
                $socket = $stream->keepsLoopRunning && $stream->belongsToThisProcess() ? $stream->sendEnd() : null;
                if ($socket !== null) {
                    $reading[] = $socket;
                    $writing = $stream->unsent->size > 0 ? [...$writing, $socket] : $writing;
                }
            }
            $left = (int) (($end - Clock::now()) * 1e6);
        } while ($reading !== [] && $left > 0 && Warnings::suppressed(
            static fn() => stream_select($reading, $writing, $none, 0, $left),
        ) !== false);
    }

    /** Returns this stream. Predis asks a factory for the stream of a connection, and this object is that factory. */
    public function createStream(ParametersInterface $parameters): StreamInterface
    {
        return $this;
    }

    public function belongsToThisProcess(): bool
    {
        return $this->ownerPid === getmypid();
    }

    public function setKeepsLoopRunning(bool $keepsRunning): void
    {
        $this->keepsLoopRunning = $keepsRunning;
        if ($this->readWatcher !== '' && $this->loop->isCurrent()) {
            $keepsRunning ? EventLoop::reference($this->readWatcher) : EventLoop::unreference($this->readWatcher);
        }
    }

    /** Returns whether the engine sent no bytes and accepted no unsent bytes after $time (of {@see Clock::now()}). */
    public function isSilentSince(float $time): bool
    {
        return $this->lastProgress <= $time;
    }

    /** Closes the socket. {@see read()} still returns the buffered bytes, and then fails with $reason. */
    public function fail(string $reason): void
    {
        $this->failure ??= $reason;
        if ($this->socket !== null) {
            $socket = $this->socket;
            $this->socket = null;
            $this->cancelWatchers();
            unset(self::$sockets[(int) $socket]);
            fclose($socket);
            $this->changed->notify();
        }
    }

    /**
     * Returns whether the stream is closed. First reads without waiting, and closes the stream if the engine has closed
     * it, or if there are bytes. Call this method only while no answer is expected, because it takes all bytes for an
     * error.
     */
    public function hasEnded(): bool
    {
        if ($this->socket !== null && ($this->offset < \strlen($this->buffer) || $this->receive($this->socket))) {
            $this->fail('the engine sent an answer without a request');
        }

        return $this->socket === null;
    }

    public function failure(): string
    {
        return $this->failure ?? 'the connection was closed';
    }

    /**
     * Waits until bytes are available, and returns them.
     *
     * @param int $length maximum number of bytes; -1 for one line with its line break
     *
     * @throws \RuntimeException when the stream is closed
     */
    public function read(int $length): string
    {
        if ($length === -1) {
            $length = $this->awaitLine();
        } elseif ($this->offset === \strlen($this->buffer)) {
            $this->awaitBytes();
        }
        $bytes = substr($this->buffer, $this->offset, $length);
        $this->offset += \strlen($bytes);

        return $bytes;
    }

    public function write(#[\SensitiveParameter] string $string): int
    {
        $wasEmpty = $this->unsent->size === 0;
        $this->unsent->add($string);
        if ($wasEmpty) {
            $this->flush();
        }

        return \strlen($string);
    }

    /** Does nothing: Predis calls this method in a destructor, perhaps before the last requests have been sent. */
    public function close(): void {}

    /** Returns whether the stream is closed and {@see read()} has returned all bytes of the buffer. */
    public function eof(): bool
    {
        return $this->socket === null && $this->offset === \strlen($this->buffer);
    }

    public function isReadable(): bool
    {
        return true;
    }

    public function isWritable(): bool
    {
        return true;
    }

    public function isSeekable(): bool
    {
        return false;
    }

    public function detach()
    {
        return null;
    }

    public function getSize(): ?int
    {
        return null;
    }

    public function getMetadata(?string $key = null)
    {
        return $key === null ? [] : null;
    }

    public function tell(): int
    {
        throw self::unsupported();
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        throw self::unsupported();
    }

    public function rewind(): void
    {
        throw self::unsupported();
    }

    public function getContents(): string
    {
        throw self::unsupported();
    }

    public function __toString(): string
    {
        return self::class;
    }

    /** Waits until the buffer has a complete line. Returns the line's length with its line break. */
    private function awaitLine(): int
    {
        for ($searchFrom = $this->offset;;) {
            $end = strpos($this->buffer, "\n", $searchFrom);
            if ($end !== false) {
                return $end + 1 - $this->offset;
            }
            $searchFrom = \strlen($this->buffer) - $this->offset; // awaitBytes() moves the unread bytes to the start
            $this->awaitBytes();
        }
    }

    /** Removes from the buffer the bytes that {@see read()} has returned. Then waits for more bytes. */
    private function awaitBytes(): void
    {
        $this->buffer = $this->offset === \strlen($this->buffer) ? '' : substr($this->buffer, $this->offset);
        $this->offset = 0;
        while ($this->socket === null || !$this->receive($this->socket)) {
            if ($this->socket === null) {
                throw new \RuntimeException($this->failure(), self::BROKEN_CONNECTION_CODE);
            }
            $this->enableReadWatcher($this->socket);
            $this->changed->wait();
        }
    }

    /**
     * Appends available bytes to the buffer, and returns whether there were any. Closes the stream at its end.
     *
     * @param resource $socket
     */
    private function receive($socket): bool
    {
        [$bytes, $reason] = Warnings::readWithReason($socket, self::READ_BYTES);
        if ($bytes !== false && $bytes !== '') {
            $this->buffer .= $bytes;
            $this->lastProgress = Clock::now();

            return true;
        }
        if (stream_get_meta_data($socket)['eof']) { // feof() would read, and drop the error of that read
            $this->fail('the engine closed the connection' . ($reason === null ? '' : ": {$reason}"));
        }

        return false;
    }

    /** @param resource $socket */
    private function enableReadWatcher($socket): void
    {
        if ($this->readWatcher !== '') {
            EventLoop::enable($this->readWatcher);

            return;
        }
        $weak = \WeakReference::create($this);
        $this->readWatcher = EventLoop::onReadable($socket, static fn() => $weak->get()?->onReadable());
        $this->setKeepsLoopRunning($this->keepsLoopRunning);
    }

    /** @param resource $socket */
    private function enableWriteWatcher($socket): void
    {
        $weak = \WeakReference::create($this);
        $this->writeWatcher === ''
            ? $this->writeWatcher = EventLoop::onWritable($socket, static fn() => $weak->get()?->onWritable())
            : EventLoop::enable($this->writeWatcher);
    }

    private function cancelWatchers(): void
    {
        $this->loop->cancel($this->readWatcher);
        $this->loop->cancel($this->writeWatcher);
        $this->readWatcher = $this->writeWatcher = '';
    }

    private function onReadable(): void
    {
        EventLoop::disable($this->readWatcher);
        if ($this->belongsToThisProcess()) {
            $this->changed->notify();
        }
    }

    private function onWritable(): void
    {
        if (!$this->belongsToThisProcess()) {
            EventLoop::disable($this->writeWatcher);

            return;
        }
        $before = $this->unsent->size;
        $this->flush();
        if ($this->unsent->size < $before) {
            $this->lastProgress = Clock::now();
        }
    }

    private function flush(): void
    {
        $socket = $this->socket;
        if ($socket === null) {
            return;
        }
        [$isWritten, $warning] = Warnings::of(fn(): bool => $this->unsent->flush($socket));
        if (!$isWritten) {
            $this->fail($warning === '' ? 'the connection broke' : Warnings::socketReason($warning));

            return;
        }
        $this->unsent->size === 0 ? EventLoop::disable($this->writeWatcher) : $this->enableWriteWatcher($socket);
    }

    /**
     * Sends unsent bytes and the end of the stream, and drops answers. Does not wait.
     *
     * @return resource|null the socket; null once the engine has closed the connection
     */
    private function sendEnd()
    {
        $this->flush();
        $socket = $this->socket;
        if ($socket === null) {
            return null;
        }
        if ($this->unsent->size === 0) {
            Warnings::suppressed(static fn() => stream_socket_shutdown($socket, \STREAM_SHUT_WR));
        }
        do {
            $bytes = Warnings::read($socket, self::READ_BYTES);
        } while ($bytes !== false && $bytes !== '');
        if (stream_get_meta_data($socket)['eof']) {
            $this->fail('the process ends');
        }

        return $this->socket;
    }

    private static function unsupported(): \RuntimeException
    {
        return new \RuntimeException('The stream of a connection has no position and no end; use read() and write()');
    }
}
