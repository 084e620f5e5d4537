<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Predis\Connection\ParametersInterface;
use Predis\Connection\Resource\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\Clock;
use Spindle\Internal\Fibers;
use Spindle\Internal\Warnings;

/**
 * The stream that Predis reads and writes: a socket whose reader is suspended until bytes arrive, while the loop runs.
 *
 * One fiber reads at a time. Bytes that the socket does not accept are buffered and sent later. So write() never
 * suspends, and commands of several fibers are not interleaved.
 */
final class EngineStream implements StreamInterface, StreamFactoryInterface
{
    /** Bytes of one read. */
    private const READ_BYTES = 1 << 16;

    /** Code that Predis treats as a broken connection. */
    private const BROKEN_CONNECTION_CODE = 1;

    private string $buffer = '';

    /** Read offset into the buffer. */
    private int $offset = 0;

    private string $unsent = '';

    /** @var Suspension<null>|null */
    private ?Suspension $reader = null;

    private ?string $failure = null;

    /** Time of {@see Clock::now()} at which the engine last sent bytes, or accepted buffered bytes. */
    private float $lastProgress;

    /** Process id. A fork shares the socket, and must not read or write. */
    private readonly int $process;

    private readonly string $readable;
    private readonly string $writable;

    /** @var resource|null */
    private $socket;

    /** @param resource $socket connected and non-blocking */
    public function __construct($socket)
    {
        $this->socket = $socket;
        $this->lastProgress = Clock::now();
        $this->process = (int) getmypid();
        stream_set_read_buffer($socket, 0);
        $weak = \WeakReference::create($this);
        $onReadable = static fn() => $weak->get()?->onReadable();
        $onWritable = static fn() => $weak->get()?->onWritable();
        $this->readable = EventLoop::disable(EventLoop::onReadable($socket, $onReadable));
        $this->writable = EventLoop::disable(EventLoop::onWritable($socket, $onWritable));
    }

    public function __destruct()
    {
        $this->close();
    }

    /** Returns this stream to Predis. */
    public function createStream(ParametersInterface $parameters): StreamInterface
    {
        return $this;
    }

    public function isOfThisProcess(): bool
    {
        return $this->process === getmypid();
    }

    /** Sets whether a waiting reader keeps the loop running. */
    public function keepLoop(bool $keep): void
    {
        if ($this->socket !== null) {
            $keep ? EventLoop::reference($this->readable) : EventLoop::unreference($this->readable);
        }
    }

    /** Whether the engine has sent or accepted nothing since that time of {@see Clock::now()}. */
    public function isSilentSince(float $time): bool
    {
        return $this->lastProgress <= $time;
    }

    /** Closes the stream. The reader gets $reason. */
    public function fail(string $reason): void
    {
        $this->failure ??= $reason;
        $this->close();
    }

    /** Returns why the stream was closed. */
    public function failure(): string
    {
        return $this->failure ?? 'the connection was closed';
    }

    /** @param int $length bytes to read at most, at least 1; -1 for a line with its end */
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
        if ($this->unsent !== '') {
            $this->unsent .= $string;
        } else {
            $this->unsent = $string;
            $this->flush();
        }

        return \strlen($string);
    }

    public function close(): void
    {
        if ($this->socket === null) {
            return;
        }
        $socket = $this->socket;
        $this->socket = null;
        EventLoop::cancel($this->readable);
        EventLoop::cancel($this->writable);
        fclose($socket);
        $this->resumeReader();
    }

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

    /** Waits for the next line and returns its length. */
    private function awaitLine(): int
    {
        for ($from = $this->offset;;) {
            $end = strpos($this->buffer, "\n", $from);
            if ($end !== false) {
                return $end + 1 - $this->offset;
            }
            $from = \strlen($this->buffer) - $this->offset; // the unread rest moves to the start in awaitBytes()
            $this->awaitBytes();
        }
    }

    /** Waits for more bytes. */
    private function awaitBytes(): void
    {
        $this->buffer = $this->offset === \strlen($this->buffer) ? '' : substr($this->buffer, $this->offset);
        $this->offset = 0;
        while (true) {
            if ($this->socket === null) {
                throw new \RuntimeException($this->failure(), self::BROKEN_CONNECTION_CODE);
            }
            $socket = $this->socket;
            $bytes = @fread($socket, self::READ_BYTES);
            if ($bytes !== false && $bytes !== '') {
                $this->buffer .= $bytes;
                $this->lastProgress = Clock::now();

                return;
            }
            if (feof($socket)) {
                $this->fail('the engine closed the connection');

                continue;
            }
            EventLoop::enable($this->readable);
            $this->reader = EventLoop::getSuspension();
            Fibers::suspend($this->reader);
        }
    }

    private function onReadable(): void
    {
        EventLoop::disable($this->readable);
        if ($this->isOfThisProcess()) {
            $this->resumeReader();
        }
    }

    private function resumeReader(): void
    {
        $reader = $this->reader;
        $this->reader = null;
        $reader?->resume();
    }

    private function onWritable(): void
    {
        if (!$this->isOfThisProcess()) {
            EventLoop::disable($this->writable);

            return;
        }
        $before = \strlen($this->unsent);
        $this->flush();
        if (\strlen($this->unsent) < $before) {
            $this->lastProgress = Clock::now();
        }
    }

    private function flush(): void
    {
        $socket = $this->socket;
        if ($socket === null) {
            return;
        }
        $bytes = $this->unsent;
        [$written, $warning] = Warnings::of(static fn() => fwrite($socket, $bytes));
        if ($written === false) {
            $this->unsent = '';
            $this->fail($warning === '' ? 'the connection broke' : Warnings::clause($warning));

            return;
        }
        $this->unsent = $written === \strlen($bytes) ? '' : substr($bytes, $written);
        $this->unsent === '' ? EventLoop::disable($this->writable) : EventLoop::enable($this->writable);
    }

    private static function unsupported(): \RuntimeException
    {
        return new \RuntimeException('A connection can\'t be read as a whole and has no position');
    }
}
