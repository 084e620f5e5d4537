<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\Internal\Message\JoiningStream;
use Spindle\Http\Internal\Message\SingleReader;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Internal\Async\Condition;

/** Sends the body of a request from a stream. A separate fiber does this while the caller waits for the response. */
final class Upload
{
    private const READ_BYTES = 262_144;

    /** Seconds to wait after a read has returned no bytes. Other fibers can run in this time. */
    private const EMPTY_READ_PAUSE = 0.001;

    /** @var \WeakMap<StreamInterface, true>|null bodies that were read, and that perhaps have a stream filter */
    private static ?\WeakMap $filtered = null;

    private bool $mayHaveFilters = false;

    /** Set when the connection has sent or buffered the whole body. */
    public bool $isComplete = false;
    private bool $isAborted = false;
    private bool $hasRead = false;
    private int $sent = 0;

    /** Time by hrtime() until which pieces are joined. */
    private int $joinUntil = 0;

    /** Whether a callback of the event loop will send the joined pieces. */
    private bool $isSendQueued = false;

    private function __construct(
        private readonly ClientConnection $connection,
        private readonly StreamInterface $body,
        private readonly ?int $size,
    ) {}

    /**
     * @param int|null $size bytes of the body; null if the number is unknown, so that the body is sent in chunks
     *
     * @throws UnreadableBodyException when another request sends this body, which can be read only once
     */
    public static function begin(ClientConnection $connection, StreamInterface $body, ?int $size): self
    {
        $upload = new self($connection, $body, $size);
        if ($size === 0) {
            $upload->isComplete = true;

            return $upload;
        }
        UnreadableBodyException::guard($upload->claim(...));
        $connection->isUploading = true;
        EventLoop::queue($connection->uploadFiber->run(...), $upload->run(...));

        return $upload;
    }

    private function claim(): void
    {
        $this->mayHaveFilters = StreamSize::mayHaveFilters($this->body);
        $isExclusive = $this->mayHaveFilters || !$this->body->isSeekable();
        if ($isExclusive && !SingleReader::claim($this->body)) {
            throw new \LogicException(
                'another request sends it, or has sent a part of it; create a new body for each request',
            );
        }
    }

    public function abort(): void
    {
        $this->isAborted = true;
        $this->connection->endUpload();
    }

    private function run(): void
    {
        try {
            UnreadableBodyException::guard($this->send(...));
        } catch (UnreadableBodyException $failure) {
            $this->sendJoined();
            $this->connection->fail($failure); // closes the connection, so that the server sees an incomplete request
        } finally {
            // Keeps the claim only if a part was sent, and another request could not send the body from its start.
            if ($this->sent === 0 || $this->isComplete || !$this->mayHaveFilters && $this->body->isSeekable()) {
                SingleReader::release($this->body, $this->hasRead);
            }
            $this->connection->endUpload();
        }
    }

    private function send(): void
    {
        while (!$this->mustStop() && !$this->isAtEnd($this->sent)) {
            $this->hasRead = true;
            $bytes = $this->read();
            if ($bytes === '') {
                if (!$this->body->eof()) {
                    (new Condition())->waitFor(self::EMPTY_READ_PAUSE);
                }
                continue;
            }
            $this->sent += \strlen($bytes);
            if ($this->mayHaveFilters) {
                self::$filtered ??= new \WeakMap();
                self::$filtered[$this->body] = true;
            }
            if ($this->size !== null && $this->sent > $this->size) {
                $this->connection->send(substr($bytes, 0, $this->ensureGrown($this->size) - $this->sent));
                break;
            }
            if (!$this->connection->send($this->size === null ? self::chunk($bytes) : $bytes)) {
                return;
            }
            $this->joinUntil = (int) hrtime(true) + JoiningStream::JOIN_NANOSECONDS;
        }
        if ($this->mustStop()) {
            return;
        }
        if ($this->size !== null && $this->sent < $this->size) {
            throw new \LengthException(
                "it ends after {$this->sent} bytes, but its declared size is {$this->size} bytes",
            );
        }
        if ($this->sent === 0 && isset(self::$filtered[$this->body])) {
            throw new \LogicException(
                'it was already read, and its stream filter can\'t be reset; create a new body for each request',
            );
        }
        if ($this->size === null) {
            $this->connection->write("0\r\n\r\n");
        }
        $this->isComplete = true;
    }

    /** Returns whether all of the body was read. First seeks to $sent, because other requests may read this file. */
    private function isAtEnd(int $sent): bool
    {
        if ($this->body->isSeekable() && $this->body->tell() !== $sent) {
            $this->body->seek($sent);
        }

        return $this->body->eof();
    }

    /** Joins pieces only if the body is sent in chunks: for a declared size, {@see send()} checks each piece. */
    private function read(): string
    {
        if ($this->size !== null || !$this->body instanceof JoiningStream) {
            return $this->body->read(self::READ_BYTES);
        }
        if (!$this->isSendQueued) {
            $this->isSendQueued = true;
            EventLoop::queue($this->sendJoined(...));
        }

        return $this->body->readJoined(self::READ_BYTES, $this->joinUntil);
    }

    /** Sends the pieces that {@see read()} has joined before it suspended the fiber. */
    private function sendJoined(): void
    {
        $this->isSendQueued = false;
        $bytes = $this->body instanceof JoiningStream ? $this->body->takeJoined() : '';
        if ($bytes !== '' && !$this->mustStop()) {
            $this->connection->write(self::chunk($bytes));
        }
    }

    private static function chunk(string $bytes): string
    {
        return dechex(\strlen($bytes)) . "\r\n{$bytes}\r\n";
    }

    /** Returns $size if the body is a file that has grown, so that its first bytes are sent. Otherwise, throws. */
    private function ensureGrown(int $size): int
    {
        return StreamSize::of($this->body) >= $size && StreamSize::hasGrown($this->body, $size)
            ? $size
            : throw new \LengthException("it is longer than its declared size of {$size} bytes");
    }

    /** Returns whether to stop reading the body. After the connection has ended, another request may read the body. */
    private function mustStop(): bool
    {
        return $this->isAborted || $this->connection->hasEnded();
    }
}
