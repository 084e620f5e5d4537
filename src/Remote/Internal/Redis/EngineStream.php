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
use Spindle\Internal\Warnings;

/**
 * Adapts the socket of a connection to the engine (Redis or Valkey) to the stream interface that Predis uses. While no
 * bytes are available, read() suspends the calling fiber, and other fibers run.
 *
 * At most one fiber may read at a time. write() never suspends. If the socket does not accept all bytes, a later
 * callback sends the remaining bytes. So the commands of several fibers never mix.
 */
final class EngineStream implements StreamInterface, StreamFactoryInterface
{
    private const READ_BYTES = 1 << 16;

    /** Seconds in which the engine has to read the last requests of a process that exits. */
    private const EXIT_TIMEOUT = 1.0;

    /** Exception code by which Predis recognizes a broken connection. */
    private const BROKEN_CONNECTION_CODE = 1;

    private string $buffer = '';

    /** Number of bytes of the buffer that {@see read()} has returned. */
    private int $offset = 0;

    /** Bytes from {@see write()} that the socket has not accepted. */
    private readonly WriteBuffer $unsent;

    /** Condition on which {@see awaitBytes()} waits until the socket is readable or closed. */
    private readonly Condition $changed;

    /** Reason that was passed to {@see fail()}; null if the stream is open, or was closed by {@see close()}. */
    private ?string $failure = null;

    /** Time of {@see Clock::now()} at which the engine last sent bytes, or accepted bytes that waited in $unsent. */
    private float $lastProgress;

    /** Id of the process that opened the stream. A fork of that process shares the socket, but must not use it. */
    private readonly int $pid;

    /** Whether a request is unanswered. If so, PHP destroys this object only because the process exits. */
    private bool $keepsLoopRunning = false;

    private readonly string $readWatcher;

    private readonly string $writeWatcher;

    /** @var resource|null null once the stream is closed */
    private $socket;

    /** @param resource $socket connected and non-blocking */
    public function __construct($socket)
    {
        $this->socket = $socket;
        $this->lastProgress = Clock::now();
        $this->pid = (int) getmypid();
        $this->changed = new Condition();
        $this->unsent = new WriteBuffer();
        stream_set_read_buffer($socket, 0);
        $weak = \WeakReference::create($this);
        $onReadable = static fn() => $weak->get()?->onReadable();
        $onWritable = static fn() => $weak->get()?->onWritable();
        $this->readWatcher = EventLoop::disable(EventLoop::onReadable($socket, $onReadable));
        $this->writeWatcher = EventLoop::disable(EventLoop::onWritable($socket, $onWritable));
    }

    public function __destruct()
    {
        if ($this->keepsLoopRunning && $this->isOfThisProcess()) {
            $this->awaitEnd();
        }
        $this->close();
    }

    /** Returns this stream. Predis asks a factory for the stream of a connection, and this object is that factory. */
    public function createStream(ParametersInterface $parameters): StreamInterface
    {
        return $this;
    }

    public function isOfThisProcess(): bool
    {
        return $this->pid === getmypid();
    }

    /** Sets whether a waiting reader keeps the event loop running. */
    public function setKeepsLoopRunning(bool $keepsRunning): void
    {
        $this->keepsLoopRunning = $keepsRunning;
        if ($this->socket !== null) {
            $keepsRunning ? EventLoop::reference($this->readWatcher) : EventLoop::unreference($this->readWatcher);
        }
    }

    /** Returns whether the engine has sent nothing, and accepted none of $unsent, since $time (of Clock::now()). */
    public function isSilentSince(float $time): bool
    {
        return $this->lastProgress <= $time;
    }

    /** Closes the stream. A waiting {@see read()} fails with $reason. */
    public function fail(string $reason): void
    {
        $this->failure ??= $reason;
        $this->close();
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

    /** Closes the socket. {@see read()} still returns the buffered bytes. */
    public function close(): void
    {
        if ($this->socket === null) {
            return;
        }
        $socket = $this->socket;
        $this->socket = null;
        EventLoop::cancel($this->readWatcher);
        EventLoop::cancel($this->writeWatcher);
        fclose($socket);
        $this->changed->notify();
    }

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

    /** Drops the bytes that {@see read()} has returned from the buffer. Then waits for more bytes. */
    private function awaitBytes(): void
    {
        $this->buffer = $this->offset === \strlen($this->buffer) ? '' : substr($this->buffer, $this->offset);
        $this->offset = 0;
        while (true) {
            if ($this->socket === null) {
                throw new \RuntimeException($this->failure(), self::BROKEN_CONNECTION_CODE);
            }
            $socket = $this->socket;
            [$bytes, $reason] = Warnings::readWithReason($socket, self::READ_BYTES);
            if ($bytes !== false && $bytes !== '') {
                $this->buffer .= $bytes;
                $this->lastProgress = Clock::now();

                return;
            }
            if (stream_get_meta_data($socket)['eof']) { // feof() reads, and drops the error of that read
                $this->fail('the engine closed the connection' . ($reason === null ? '' : ": {$reason}"));

                continue;
            }
            EventLoop::enable($this->readWatcher);
            $this->changed->wait();
        }
    }

    private function onReadable(): void
    {
        EventLoop::disable($this->readWatcher);
        if ($this->isOfThisProcess()) {
            $this->changed->notify();
        }
    }

    private function onWritable(): void
    {
        if (!$this->isOfThisProcess()) {
            EventLoop::disable($this->writeWatcher);

            return;
        }
        $before = $this->unsent->size;
        $this->flush();
        if ($this->unsent->size < $before) {
            $this->lastProgress = Clock::now();
        }
    }

    /** Passes unsent bytes to the socket until the socket accepts no more bytes. */
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
        $this->unsent->size === 0 ? EventLoop::disable($this->writeWatcher) : EventLoop::enable($this->writeWatcher);
    }

    /**
     * Blocks until the engine has read all requests and closed the connection. If this process closed a connection with
     * unread answers, the engine would drop the requests that it has not read.
     */
    private function awaitEnd(): void
    {
        $socket = $this->socket;
        if ($socket === null || $this->unsent->size > 0) {
            return;
        }
        Warnings::of(static fn() => stream_socket_shutdown($socket, \STREAM_SHUT_WR));
        for ($end = Clock::now() + self::EXIT_TIMEOUT; !feof($socket) && ($left = $end - Clock::now()) > 0.0;) {
            [$readable, $none] = [[$socket], null];
            Warnings::of(static fn() => stream_select($readable, $none, $none, 0, (int) ($left * 1e6)));
            Warnings::of(static fn() => fread($socket, self::READ_BYTES));
        }
    }

    private static function unsupported(): \RuntimeException
    {
        return new \RuntimeException('The stream of a connection has no position and no end; use read() and write()');
    }
}
