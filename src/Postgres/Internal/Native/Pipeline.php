<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\FairMutex;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\WaitingCallers;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;

/**
 * A connection on which exchanges are sent in order, without waiting for answers.
 *
 * Each exchange ends with a Sync of its own, so an error affects no other exchange. What fibers send in one turn of the
 * event loop is written together. When an exchange is cancelled, its caller resumes at once. The server is asked to
 * stop the exchange as soon as it is the current one.
 */
final class Pipeline
{
    private const READ_BYTES = 0x1_0000;

    /** Bytes of a stream's rows that may be held before reading pauses. */
    private const MAX_HELD_BYTES = 0x10_0000;

    /** Maximum number of reads in one turn of the loop, for a stream with its own buffer. */
    private const MAX_READS_PER_TURN = 8;

    /** @var array<int, self> connections with waiting callers, kept alive here since nothing else may reference them */
    private static array $keptAlive = [];

    /** Time of the last activity: hrtime. A read, the start or end of a pause, and most writes are activity. */
    public int $lastActivity = 0;

    public readonly ServerTime $serverTime;

    /** @var (\Closure(list<Exchange>): void)|null called with exchanges that made progress, before callers resume */
    public ?\Closure $onAnswered = null;

    /** COPY that was sent and has not ended. */
    public ?Exchange $copying = null;

    /** Messages that close statements and portals, to be sent ahead of the next submission. */
    public string $closing = '';

    /** Messages that begin a transaction, to be sent ahead of the next submission. */
    public string $begin = '';

    /** Held while a COPY has the connection to itself. */
    public readonly FairMutex $copyMutex;

    public readonly Conversation $conversation;

    public readonly Cancelling $cancelling;

    private readonly WriteBuffer $outbox;

    private readonly string $readable;

    private readonly string $writable;

    /** @var \Closure(): void */
    private readonly \Closure $flush;

    /** Whether a write is scheduled in this turn of the loop. */
    private bool $flushing = false;

    /** Whether a write is waiting until the stream accepts more bytes. */
    private bool $writing = false;

    /** Whether only one exchange was in flight at the last write. Then the next one is probably alone too. */
    private bool $wasAlone = false;

    private bool $paused = false;

    /** Whether answers are expected, so that the event loop must keep running. */
    private bool $expecting = false;

    /** Number of callers that are waiting for all answers. */
    private int $settling = 0;

    /** Whether this process is known not to be a fork, because no caller's code has run since the last check. */
    private bool $isKnownOwner = false;

    /** Timer of the read timeout. */
    private ?string $readTimer = null;

    /** Callers that wait until a cancellation is done, or until all answers arrived. */
    private readonly WaitingCallers $waiting;

    /** @var (\Closure(Notification): void)|null */
    private ?\Closure $listener = null;

    /** @var list<\Closure(\Throwable|null): void> */
    private array $onClose = [];

    private readonly int $ownerPid;

    /** Why the connection has ended; null while it is open. */
    private ConnectionLostException|ConnectionClosedException|null $endReason = null;

    /**
     * @param resource         $stream      non-blocking
     * @param bool             $buffered    whether the stream has a buffer that the loop does not see, as with TLS
     * @param \Closure(): void $stop        sends a cancel request, and returns when the server closed that connection
     * @param float|null       $readTimeout seconds without a byte, while answers are due, until the connection is lost
     * @param int              $roundTrip   upper bound of a round trip in nanoseconds, measured while connecting
     */
    public function __construct(
        private $stream,
        private readonly bool $buffered,
        \Closure $stop,
        private readonly ?float $readTimeout,
        SizeLimits $limits,
        int $roundTrip = 0,
    ) {
        $this->serverTime = new ServerTime($roundTrip);
        $this->ownerPid = (int) getmypid();
        $this->conversation = new Conversation($limits);
        $this->outbox = new WriteBuffer();
        $this->waiting = new WaitingCallers();
        $this->copyMutex = new FairMutex(
            'The connection is busy with a COPY until its data are read to the end or the loop is left',
        );
        $this->lastActivity = hrtime(true);
        if (!$buffered) {
            stream_set_read_buffer($stream, 0);
        }
        // The callbacks must not keep the connection alive.
        $weak = \WeakReference::create($this);
        $this->cancelling = new Cancelling(
            $this->conversation,
            $stop,
            static fn(?ConnectionLostException $failure) => $weak->get()?->onCancelRequestDone($failure),
        );
        $this->flush = static fn() => $weak->get()?->flush();
        $this->readable = EventLoop::unreference(EventLoop::onReadable(
            $stream,
            static fn() => $weak->get()?->receive(),
        ));
        $this->writable = EventLoop::disable(EventLoop::onWritable($stream, $this->flush));
    }

    public function __destruct()
    {
        $this->end(null);
    }

    public function isOpen(): bool
    {
        return $this->endReason === null;
    }

    public function inFlight(): int
    {
        return \count($this->conversation->exchanges);
    }

    /**
     * Sends an exchange as soon as no exchange has to be stopped and no other fiber has a COPY under way.
     *
     * An exchange that begins a transaction, or must not be sent twice, waits for all exchanges ahead. Otherwise a late
     * cancel request for one of them could stop this exchange.
     *
     * @param non-empty-list<string> $parts messages of the exchange
     */
    public function submit(Exchange $exchange, #[\SensitiveParameter] array $parts, ?Cancellation $cancellation): void
    {
        do {
            $alone = $exchange->mustNotRepeat || $this->begin !== '';
            $this->settle($alone && $this->copying === null && $this->copyMutex->isMine(), $cancellation);
            if (
                $this->copyMutex->isLocked ? $this->copying !== null
                || !$this->copyMutex->isMine() : $alone && $this->conversation->exchanges !== []
            ) {
                $this->copyMutex->acquire($cancellation);
                try {
                    $this->settle($alone, $cancellation);
                } finally {
                    // The fiber that gets the turn next resumes only after this exchange was sent.
                    $this->copyMutex->release();
                }
            }
        } while ($this->cancelling->unsettled && $this->endReason === null);
        $ahead = $this->closing . $this->begin;
        $exchange->begins = $this->begin !== '';
        $this->closing = $this->begin = '';
        $this->send($exchange, $ahead . $parts[0]);
        foreach (\array_slice($parts, 1) as $part) {
            $this->write($part);
        }
        if ($exchange->onSent !== null) {
            ($exchange->onSent)($exchange);
            $exchange->onSent = null;
        }
    }

    /** @throws ConnectionClosedException|ConnectionLostException when the connection has ended; nothing was sent */
    public function send(Exchange $exchange, #[\SensitiveParameter] string $bytes): void
    {
        if ($this->endReason !== null) {
            throw $this->endReason instanceof ConnectionLostException
                ? ConnectionLostException::earlier($this->endReason)
                : $this->endReason;
        }
        $conversation = $this->conversation;
        $alone = $conversation->exchanges === [];
        $conversation->exchanges[$conversation->tail++] = $exchange;
        // Like WriteBuffer::add(), inlined because it runs for each statement.
        $length = \strlen($bytes);
        if ($length < WriteBuffer::LARGE_BYTES) {
            $this->outbox->tail .= $bytes;
            $this->outbox->size += $length;
        } else {
            $this->outbox->add($bytes);
        }
        if ($alone) {
            $this->startExpecting();
        } elseif ($this->paused) {
            // The answer follows the rows of a stream, so reading must go on.
            $this->pause(false);
        }
        if (!$this->flushing) {
            $this->flushSoon($alone && $this->wasAlone);
        }
    }

    /** Sends more bytes of an exchange that was sent already. */
    public function write(#[\SensitiveParameter] string $bytes): void
    {
        $this->outbox->add($bytes);
        $this->flushSoon(false);
    }

    public function unwritten(): int
    {
        return $this->outbox->size;
    }

    /** Suspends until the exchange is done, or a COPY makes progress. */
    public function await(#[\SensitiveParameter] Exchange $exchange, ?Cancellation $cancellation): void
    {
        $id = $cancellation?->subscribe(fn(CancelledException $reason) => $this->abandon($exchange, $reason));
        try {
            // An exchange that was sent ahead may be done already.
            if (!$exchange->done) {
                $exchange->wait();
            }
        } catch (\Throwable $interruption) {
            $this->abandon($exchange, null);
            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $id);
            }
        }
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }
    }

    /** Gives up an exchange whose caller has left: its rows are dropped, and the server is asked to stop it. */
    public function abandon(#[\SensitiveParameter] Exchange $exchange, ?CancelledException $reason): void
    {
        if ($exchange->done || $this->endReason !== null || $this->isForeign()) {
            return;
        }
        $exchange->cancelled = $exchange->discarded = true;
        $exchange->chunks = [];
        if ($exchange->isStreamed) {
            $this->pause(false);
        }
        // The request starts before the caller resumes, because its next exchange must wait until this one is stopped.
        $this->cancelling->stop($exchange);
        if ($reason !== null) {
            $exchange->failure = $reason;
            $exchange->wake();
        }
    }

    /** Gives up everything that is in flight. */
    public function stop(): void
    {
        foreach ($this->conversation->exchanges as $exchange) {
            $this->abandon($exchange, null);
        }
        if ($this->copying?->copy === 'H') {
            // The reader of the COPY may never return, and others must not wait for it.
            $this->copying = null;
            $this->pause(false);
            $this->copyMutex->release();
        }
    }

    /** Suspends until no exchange has to be stopped any more. With `$all`, also waits until all are answered. */
    public function settle(bool $all, ?Cancellation $cancellation): void
    {
        if ($all && $this->copying === null && $this->conversation->exchanges !== []) {
            $this->pause(false);
        }
        $this->settling += $all ? 1 : 0;
        try {
            while (
                $this->endReason === null
                && ($this->cancelling->unsettled || $all && $this->conversation->exchanges !== [])
            ) {
                $this->waiting->wait($cancellation, static function (): void {});
            }
        } finally {
            $this->settling -= $all ? 1 : 0;
        }
    }

    /**
     * Sets the listener for notifications. While there is one, the event loop keeps running.
     *
     * @param (\Closure(Notification): void)|null $listener
     */
    public function listen(?\Closure $listener): void
    {
        $this->listener = $listener;
        if ($this->endReason === null && $this->conversation->exchanges === []) {
            $listener === null ? EventLoop::unreference($this->readable) : EventLoop::reference($this->readable);
        }
    }

    public function pause(bool $on): void
    {
        if ($this->endReason !== null || $this->paused === $on) {
            return;
        }
        $this->paused = $on;
        $this->lastActivity = hrtime(true);
        if ($on) {
            EventLoop::disable($this->readable);
        } else {
            EventLoop::enable($this->readable);
            if ($this->buffered) {
                $this->receiveLater();
            }
        }
    }

    /** @param \Closure(\Throwable|null): void $callback */
    public function onClose(\Closure $callback): void
    {
        $this->onClose[] = $callback;
    }

    /** Ends the connection. A reason means that it was lost. */
    public function end(?ConnectionLostException $reason): void
    {
        if ($this->endReason !== null) {
            return;
        }
        $this->endReason = $reason ?? ConnectionClosedException::connection();
        EventLoop::cancel($this->readable);
        EventLoop::cancel($this->writable);
        $this->cancelTimers();
        unset(self::$keptAlive[spl_object_id($this)]);
        if ($this->ownerPid === getmypid()) {
            if ($reason === null && $this->outbox->size === 0) {
                @fwrite($this->stream, FrontendMessages::TERMINATE);
            }
            fclose($this->stream);
        }
        $failed = $this->conversation->exchanges;
        $this->conversation->exchanges = [];
        foreach ($failed as $exchange) {
            $exchange->done = true;
            $exchange->failure ??= $this->endReason;
            // A destructor may call this method, and can not resume a fiber.
            EventLoop::queue($exchange->wake(...));
        }
        $this->waiting->wakeAll();
        $callbacks = $this->onClose;
        $this->onClose = [];
        $this->listener = $this->onAnswered = null;
        foreach ($callbacks as $callback) {
            $callback($reason);
        }
    }

    /** Keeps the event loop running for answers, and starts the read timeout. */
    private function startExpecting(): void
    {
        $this->lastActivity = hrtime(true);
        if ($this->expecting) {
            return;
        }
        $this->expecting = true;
        EventLoop::reference($this->readable);
        self::$keptAlive[spl_object_id($this)] = $this;
        if ($this->readTimeout !== null) {
            $this->readTimer ??= $this->startReadTimer($this->readTimeout);
        }
    }

    /** Lets the event loop end, since no answer is expected any more. */
    private function onAllAnswered(): void
    {
        $this->expecting = false;
        if ($this->listener === null) {
            EventLoop::unreference($this->readable);
        }
        if (!$this->cancelling->underWay) {
            unset(self::$keptAlive[spl_object_id($this)]);
        }
        $this->cancelTimers();
        $this->waiting->wakeAll();
    }

    private function cancelTimers(): void
    {
        if ($this->readTimer !== null) {
            EventLoop::cancel($this->readTimer);
            $this->readTimer = null;
        }
        $this->cancelling->cancelTimers();
    }

    private function startReadTimer(float $seconds): string
    {
        return EventLoop::reference(WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->readTimer = null;
            // Bytes that arrived while the loop was blocked count as activity.
            $self->receive();
            $exchange = $self->conversation->current();
            if ($exchange === null || $self->endReason !== null || $self->readTimer !== null) {
                return;
            }
            // No byte is due while reading is paused, or while the server waits for the data of a COPY.
            $isDue = !$self->paused && ($exchange->copy !== 'G' || $exchange->isCopied || $self->outbox->size > 0);
            $rest = (float) $self->readTimeout - ($isDue ? (hrtime(true) - $self->lastActivity) / 1e9 : 0.0);
            if ($rest > 0) {
                $self->readTimer = $self->startReadTimer($rest);
            } else {
                $self->end(ConnectionLostException::while("the server sent nothing within {$self->readTimeout} s"));
            }
        }));
    }

    /** Writes the outbox: now, or together with everything else that is sent in this turn of the loop. */
    private function flushSoon(bool $now): void
    {
        if ($this->flushing || $this->writing) {
            return;
        }
        if ($now) {
            $this->flush();
        } else {
            $this->flushing = true;
            EventLoop::queue($this->flush);
        }
    }

    private function flush(): void
    {
        $this->flushing = false;
        if ($this->endReason !== null || !$this->isKnownOwner && $this->isForeign()) {
            return;
        }
        $exchanges = $this->conversation->exchanges;
        $this->wasAlone = \count($exchanges) === 1;
        $size = $this->outbox->size;
        $takes = $this->outbox->flush($this->stream);
        $this->serverTime->sent($this->conversation->head, $this->conversation->tail, hrtime(true));
        if ($this->readTimeout !== null && $this->outbox->size < $size) {
            $this->lastActivity = hrtime(true);
        }
        if (!$takes) {
            // Bytes that the server sent before it closed the connection must still be read.
            EventLoop::disable($this->writable);

            return;
        }
        if ($this->writing !== $this->outbox->size > 0) {
            $this->writing = !$this->writing;
            $this->writing ? EventLoop::enable($this->writable) : EventLoop::disable($this->writable);
        }
        $last = $exchanges[$this->conversation->tail - 1] ?? null;
        if (!$this->writing && $last !== null && $last->copy !== '') {
            $last->wake();
        }
    }

    /** Whether this process is a fork of the connection's owner. If so, the connection ends, and nothing is sent. */
    private function isForeign(): bool
    {
        if ($this->ownerPid === getmypid()) {
            return false;
        }
        $this->end(ConnectionLostException::while('this process is a fork of the one that opened it'));

        return true;
    }

    private function receive(): void
    {
        if ($this->endReason !== null || $this->isForeign()) {
            return;
        }
        for ($rounds = 0; $this->endReason === null && !$this->paused; ++$rounds) {
            if ($rounds === self::MAX_READS_PER_TURN) {
                $this->receiveLater();

                return;
            }
            $bytes = @fread($this->stream, self::READ_BYTES);
            if ($bytes === '' || $bytes === false) {
                if ($bytes === false || feof($this->stream)) {
                    $this->end(ConnectionLostException::while('the server closed it'));
                }

                return;
            }
            $this->receiveBytes($bytes);
            if (!$this->buffered) {
                return;
            }
        }
    }

    /** Schedules a read, since the loop does not see bytes in the buffer of the stream. */
    private function receiveLater(): void
    {
        $weak = \WeakReference::create($this);
        EventLoop::defer(static fn() => $weak->get()?->receive());
    }

    private function onCancelRequestDone(?ConnectionLostException $failure): void
    {
        if ($failure !== null) {
            $this->end($failure);
        }
        if ($this->conversation->exchanges === []) {
            unset(self::$keptAlive[spl_object_id($this)]);
        }
        if ($this->endReason !== null || $this->cancelling->settles()) {
            $this->waiting->wakeAll();
        }
    }

    /** Processes bytes from the server. */
    public function receiveBytes(#[\SensitiveParameter] string $bytes): void
    {
        $conversation = $this->conversation;
        $this->lastActivity = hrtime(true);
        $head = $conversation->head;
        try {
            $conversation->receive($bytes);
        } catch (ProtocolException $failure) {
            $this->end(ConnectionLostException::while($failure->getMessage(), $failure));
        }
        if ($this->cancelling->unsettled && $this->cancelling->settles()) {
            $this->waiting->wakeAll();
        }
        $next = $conversation->current();
        if ($next !== null && $next->cancelled && $conversation->head > $head) {
            $this->cancelling->requestLater($next);
        }
        if (
            $next !== null
            && $next->isStreamed
            && !$next->discarded
            && $next->held() > self::MAX_HELD_BYTES
            && $this->settling === 0
            && \count($conversation->exchanges) === 1
        ) {
            $this->pause(true);
        }
        if ($conversation->reply !== '' || $conversation->notifications !== [] || $conversation->serverEnd !== null) {
            $this->handleEvents();
        }
        // Callers are woken last: each one runs at once, and may send, close or throw.
        $awake = $conversation->toWake;
        $conversation->toWake = [];
        if ($conversation->head > $head && $awake[0]->isTimed) {
            $this->recordTimes($awake, $head, $conversation->head - $head);
        }
        if ($this->onAnswered !== null && $awake !== []) {
            $this->isKnownOwner = true;
            ($this->onAnswered)($awake);
            $this->isKnownOwner = false;
        }
        foreach ($awake as $exchange) {
            // The caller copies a large value once more. Other callbacks of the loop run before that.
            if ($conversation->isLarge) {
                EventLoop::delay(0, $exchange->wake(...));
            } else {
                $exchange->wake();
            }
        }
        $conversation->isLarge = false;
        // The check is last, because most callers that were woken have sent something.
        if ($conversation->exchanges === [] && $this->endReason === null) {
            $this->onAllAnswered();
        }
    }

    /**
     * Records how long the server took for exchanges.
     *
     * @param list<Exchange> $answered
     */
    private function recordTimes(array $answered, int $head, int $count): void
    {
        $took = $this->serverTime->answered($head, $count, $this->lastActivity);
        if ($count === 1) {
            $answered[0]->nanoseconds = $took;

            return;
        }
        $isSlow = $took > ServerTime::SHORT_NANOSECONDS;
        foreach ($answered as $index => $exchange) {
            // When several were slow together, all of the time counts for the first one: the others waited for it.
            $exchange->nanoseconds = !$isSlow ? $took : ($index === 0 ? $took * $count : -1);
        }
    }

    private function handleEvents(): void
    {
        $conversation = $this->conversation;
        if ($conversation->reply !== '') {
            $this->write($conversation->reply);
            $conversation->reply = '';
        }
        $notifications = $conversation->notifications;
        $conversation->notifications = [];
        foreach ($notifications as $notification) {
            if ($this->listener !== null) {
                ($this->listener)($notification);
            }
        }
        $error = $conversation->serverEnd;
        if ($error !== null) {
            $this->end(ConnectionLostException::while(
                "the server ended it: {$error->message()} (SQLSTATE {$error->sqlState()})",
                error: $error,
            ));
        }
    }
}
