<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Http\Client\RequestOptions;
use Spindle\Internal\Async\CallbackFiber;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\TimeSlice;
use Spindle\Internal\Network\ForkedSockets;
use Spindle\Internal\Network\WriteBuffer;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Warnings;

/**
 * A connection of a client, used by one request at a time. Each wait in {@see receive()} has a deadline. If receive()
 * throws, the caller must close the connection.
 */
final class ClientConnection
{
    /**
     * Limits of {@see $readBytes}, the number of bytes that a read requests. A full read multiplies this number by
     * READ_FACTOR, and a small read divides it. Without TLS, PHP allocates this number of bytes even if few arrive.
     */
    private const MIN_READ_BYTES = 8_000;
    private const MAX_READ_BYTES = 512_000;
    private const READ_FACTOR = 8;

    /** While an HttpClient is closing, it ends a response that no fiber has read for this many seconds. */
    private const UNREAD_TIMEOUT = 10.0;

    /** Unsent bytes above which {@see send()} waits. */
    private const MAX_UNSENT_BYTES = 262_144;

    public string $received = '';

    /**
     * Whether an earlier request was answered. The server may close such a connection just when a request is sent. The
     * client then sends that request again if it is repeatable.
     */
    public bool $hasServedRequest = false;
    public bool $isReusable = true;
    public bool $isAnswered = false; // the head of the response has arrived

    /** Why a read has failed, such as a reset; null without a failure. */
    public ?string $readFailure = null;

    /** Times by hrtime(): the deadline of the current wait, the connection's opening, and the last request's end. */
    public int $deadline = \PHP_INT_MAX;
    public readonly int $openedAt;
    public int $freeSince = 0;

    /** Time by hrtime() when a fiber last used the response; PHP_INT_MAX while a fiber waits for bytes. */
    public int $usedAt = \PHP_INT_MAX;

    private readonly int $ownerPid;
    private readonly WriteBuffer $unsent;

    private readonly Condition $readable;
    private readonly Condition $writable;
    private readonly TimeSlice $slice;

    /** @var positive-int maximum bytes of the next read */
    private int $readBytes = self::MIN_READ_BYTES;

    private readonly OwnLoop $loop;
    private readonly string $readWatcher;
    private readonly string $writeWatcher;
    private bool $awaitsWritable = false;
    private readonly bool $isSecure;
    private bool $hasEnded = false;
    private bool $isClosed = false;

    private int $totalDeadline = \PHP_INT_MAX;
    private RequestOptions $options;
    private ?Cancellation $cancellation = null;

    private ?\Throwable $failure = null;

    /** Purpose of the current wait, its maximum seconds, and the option that sets this maximum. */
    private string $waitPurpose = '';
    private float $waitSeconds = \INF;
    private string $waitOption = '';

    /** Time by hrtime() when the current wait began. */
    private int $waitsSince = 0;

    /** Time by hrtime() when sending last made progress: bytes were added or accepted, or the upload ended. */
    public int $sentAt = 0;

    /** Whether an {@see Upload} will send further bytes of the request's body. */
    public bool $isUploading = false;
    public readonly CallbackFiber $uploadFiber;

    /**
     * @param resource $stream non-blocking, without a read buffer
     * @param string $peer the other end of the connection, for messages
     */
    public function __construct(
        public readonly mixed $stream,
        private readonly DeadlineTimer $timer,
        public readonly string $peer,
    ) {
        $this->openedAt = hrtime(true);
        $this->ownerPid = (int) getmypid();
        $this->isSecure = isset(stream_get_meta_data($stream)['crypto']);
        $this->options = new RequestOptions();
        $this->unsent = new WriteBuffer();
        $this->uploadFiber = new CallbackFiber();
        $this->readable = $readable = new Condition();
        $this->writable = new Condition();
        $this->slice = new TimeSlice();
        $this->loop = new OwnLoop();
        // The closures hold no strong reference to the connection, so that its destructor can close it.
        $this->readWatcher = EventLoop::disable(EventLoop::onReadable($stream, static fn() => $readable->notify()));
        $weak = \WeakReference::create($this);
        $this->writeWatcher = EventLoop::disable(EventLoop::onWritable($stream, static fn() => $weak->get()?->flush()));
    }

    public function __destruct()
    {
        $this->close();
    }

    /** @param int $deadline time by hrtime() at which the request must be complete */
    public function begin(RequestOptions $options, int $deadline, ?Cancellation $cancellation): void
    {
        [$this->options, $this->totalDeadline, $this->cancellation] = [$options, $deadline, $cancellation];
        $this->isAnswered = false;
        $this->markUsed();
    }

    /** Called when the response is complete, so that another request can begin. */
    public function end(): void
    {
        $this->hasServedRequest = true;
        $this->cancellation = null;
        $this->freeSince = hrtime(true);
    }

    public function markUsed(): void
    {
        $this->usedAt = hrtime(true);
    }

    /** Returns whether no fiber has used the response for UNREAD_TIMEOUT seconds, or `readTimeout` if that is less. */
    public function isUnread(): bool
    {
        $seconds = min(self::UNREAD_TIMEOUT, $this->options->readTimeout);

        return hrtime(true) - $this->usedAt > $seconds * 1e9;
    }

    /** Sends bytes without waiting. If the server does not accept all of them now, the event loop sends the rest. */
    public function write(#[\SensitiveParameter] string $bytes): void
    {
        $this->sentAt = hrtime(true);
        $this->unsent->add($bytes);
        $this->flush();
        if ($this->unsent->size > 0) { // unsent bytes may give receive() an earlier deadline
            $this->advanceDeadline();
        }
    }

    /**
     * Sends bytes as {@see write()} does, and waits while more than MAX_UNSENT_BYTES are unsent. This wait has no
     * deadline of its own. Returns false once the connection has ended.
     */
    public function send(#[\SensitiveParameter] string $bytes): bool
    {
        $this->write($bytes);
        $this->slice->awaitTurnIfOver();
        while ($this->unsent->size > self::MAX_UNSENT_BYTES && !$this->hasEnded) {
            $this->writable->wait();
        }

        return !$this->hasEnded;
    }

    public function endUpload(): void
    {
        $this->isUploading = false;
        $this->sentAt = hrtime(true);
        $this->advanceDeadline();
    }

    /** Returns whether the connection has ended. In a fork or another event loop, ends the connection first. */
    public function hasEnded(): bool
    {
        return $this->hasEnded || $this->endIfForeign();
    }

    public function hasSent(): bool
    {
        return $this->unsent->size === 0;
    }

    /**
     * Receives bytes. If none are available, waits up to `$seconds` for them. May suspend even if bytes are available.
     *
     * @param string $for purpose of the wait, such as "the response", for messages
     * @param string $option name of the option in {@see RequestOptions} that set `$seconds`, for messages
     * @param bool $isFirst true right after sending the request. Bytes are unlikely then, so receive() waits at once
     *
     * @return bool false when the connection has ended
     *
     * @throws TimedOutException|ClosedException|UnreadableBodyException
     */
    public function receive(string $for, float $seconds, string $option, bool $isFirst = false): bool
    {
        if (!$isFirst) {
            $this->slice->awaitTurnIfOver();
            // The timer and the cancellation end only waits. Available bytes need no wait, so both are checked here.
            $this->cancellation?->throwIfRequested();
            if (!$this->isWithinLimit()) {
                throw TimedOutException::ofRequest($this->options, $for);
            }
            if ($this->read()) {
                return true;
            }
        }
        while (!$this->hasEnded) {
            $this->wait($for, $seconds, $option);
            if ($this->read()) {
                return true;
            }
        }

        return $this->failure === null ? false : throw $this->failure;
    }

    /** Returns whether another request can be sent: the connection is open, and no unexpected bytes have arrived. */
    public function isUsable(): bool
    {
        return !$this->isClosed
            && $this->unsent->size === 0
            && !$this->read()
            && !$this->hasEnded;
    }

    public function isWithinLimit(): bool
    {
        return hrtime(true) < $this->totalDeadline;
    }

    /** Called at the deadline. Ends the wait, unless the deadline is later now because the server accepted bytes. */
    public function expire(): void
    {
        $this->deadline = $this->waitDeadline();
        if ($this->deadline > hrtime(true)) {
            $this->timer->add($this);

            return;
        }
        $readTimeout = $this->options->readTimeout;
        [$for, $seconds, $option] = match (true) {
            $this->unsent->size > 0 => ['the server to receive the request', $readTimeout, 'readTimeout'],
            $this->isUploading => ["the rest of the request's body", $readTimeout, 'readTimeout'],
            default => [$this->waitPurpose, $this->waitSeconds, $this->waitOption],
        };
        $this->readable->fail($this->deadline >= $this->totalDeadline
            ? TimedOutException::ofRequest($this->options, $for)
            : TimedOutException::ofWait($for, $seconds, $option));
    }

    public function fail(\Throwable $reason): void
    {
        $this->failure ??= $reason;
        $this->readable->fail($reason);
        $this->close();
    }

    /** Closes the connection. If a fork closes its copy, the parent process can still use the connection. */
    public function close(): void
    {
        if ($this->isClosed) {
            return;
        }
        $this->ownerPid === getmypid() ? null : ForkedSockets::detach([$this->stream]);
        $this->isClosed = $this->hasEnded = true;
        array_map($this->loop->cancel(...), [$this->readWatcher, $this->writeWatcher]);
        $this->timer->remove($this);
        $stream = $this->stream;
        Warnings::suppressed(static fn() => fclose($stream));
        $this->writable->notify();
        $this->readable->notify();
    }

    private function wait(string $for, float $seconds, string $option): void
    {
        [$this->waitPurpose, $this->waitSeconds, $this->waitOption] = [$for, $seconds, $option];
        $this->waitsSince = hrtime(true);
        $this->deadline = $this->waitDeadline();
        $this->usedAt = \PHP_INT_MAX;
        $this->timer->add($this);
        EventLoop::enable($this->readWatcher);
        try {
            $this->readable->wait($this->cancellation);
        } finally {
            $this->markUsed();
            $this->slice->begin($this->usedAt);
            $this->timer->remove($this);
            EventLoop::disable($this->readWatcher);
        }
    }

    private function read(): bool
    {
        if ($this->hasEnded || $this->endIfForeign()) {
            return false;
        }
        if ($this->isSecure) {
            [$bytes, $this->readFailure] = Warnings::readWithReason($this->stream, $this->readBytes);
        } else { // stream_socket_recvfrom() is faster than fread(), gives no warnings, and returns '' only after a FIN
            $bytes = stream_socket_recvfrom($this->stream, $this->readBytes);
        }
        if ($bytes !== false && $bytes !== '') {
            $this->received = $this->received === '' ? $bytes : $this->received . $bytes;
            $this->adaptReadBytes(\strlen($bytes));

            return true;
        }
        $this->isSecure ? $this->detectTlsEnd($bytes) : $this->detectPlainEnd($bytes);

        return false;
    }

    /**
     * Detects the end of a connection with TLS. Many servers send FIN without close_notify (RFC 9112, 9.8). PHP reports
     * no error then, so this method accepts such an end. It does not call feof(), which reads from the connection and
     * hides errors.
     */
    private function detectTlsEnd(string|false $bytes): void
    {
        $this->hasEnded = $bytes === false || stream_get_meta_data($this->stream)['eof'];
    }

    /** Detects the end without TLS. The socket still has a peer name after a FIN, but not after a reset or timeout. */
    private function detectPlainEnd(string|false $bytes): void
    {
        $this->hasEnded = $bytes === '' || feof($this->stream);
        if ($bytes === false && $this->hasEnded && stream_socket_get_name($this->stream, true) === false) {
            $this->readFailure = 'connection reset or timed out';
        }
    }

    /** Ends the connection in a fork, or if the event loop was replaced. Returns whether either was the case. */
    private function endIfForeign(): bool
    {
        $isInFork = $this->ownerPid !== getmypid();
        if (!$isInFork && $this->loop->isCurrent()) {
            return false;
        }
        $this->fail($isInFork ? ClosedException::inFork() : ClosedException::inOtherLoop());

        return true;
    }

    private function adaptReadBytes(int $size): void
    {
        if ($size === $this->readBytes) {
            $this->readBytes = min(self::MAX_READ_BYTES, $size * self::READ_FACTOR);
        } elseif ($size * self::READ_FACTOR < $this->readBytes) {
            $this->readBytes = max(self::MIN_READ_BYTES, intdiv($this->readBytes, self::READ_FACTOR));
        }
    }

    /**
     * Returns the deadline of the current wait, at most {@see $totalDeadline}. The timeout begins at $waitsSince or
     * $sentAt, whichever is later. Before the head of the response, only $sentAt counts while bytes are unsent. The
     * timeout is `readTimeout` during an upload or while bytes are unsent, and otherwise {@see $waitSeconds}.
     */
    private function waitDeadline(): int
    {
        $hasUnsent = $this->unsent->size > 0;
        $since = $hasUnsent && !$this->isAnswered ? $this->sentAt : max($this->waitsSince, $this->sentAt);
        $seconds = $hasUnsent || $this->isUploading ? $this->options->readTimeout : $this->waitSeconds;

        return min($this->totalDeadline, DeadlineTimer::after($seconds, $since));
    }

    /** Updates the deadline of the current wait if it has become earlier. {@see expire()} applies a later deadline. */
    private function advanceDeadline(): void
    {
        $this->deadline = min($this->deadline, $this->waitDeadline());
        $this->timer->update($this);
    }

    private function flush(): void
    {
        if ($this->isClosed || $this->endIfForeign()) {
            return;
        }
        $before = $this->unsent->size;
        $isWritten = $this->unsent->flush($this->stream);
        if ($this->unsent->size < $before) {
            $this->sentAt = hrtime(true);
        }
        // A failed write does not end the connection: an answer that the server has already sent can still be read.
        $mustWait = $this->unsent->size > 0 && $isWritten;
        if ($mustWait !== $this->awaitsWritable) {
            $this->awaitsWritable = $mustWait;
            $mustWait ? EventLoop::enable($this->writeWatcher) : EventLoop::disable($this->writeWatcher);
            $this->advanceDeadline();
        }
        if (!$isWritten || $this->unsent->size <= self::MAX_UNSENT_BYTES) {
            $this->writable->notify();
        }
    }
}
