<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Network\ForkedSockets;
use Spindle\Internal\Network\WriteBuffer;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Warnings;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\CallerTrace;
use Spindle\Postgres\Internal\Connect\Handover;
use Spindle\Postgres\Internal\FairMutex;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;

/**
 * A connection on which exchanges are sent in order, without waiting for answers to earlier ones.
 *
 * Each exchange ends with its own Sync or is a simple query. So after an error, the server skips no other exchange.
 * Exchanges that are sent in one turn of the event loop are usually written together. The caller of a cancelled
 * exchange resumes immediately. The pipeline asks the server to stop this exchange once all earlier ones are answered.
 */
final class Pipeline
{
    private const READ_BYTES = 0x1_0000;

    /** Reading is paused while the only exchange in flight is a stream that holds more than this many bytes of rows. */
    private const MAX_HELD_BYTES = 0x10_0000;

    /** Maximum number of reads in one turn of the event loop, if the socket has a stream buffer, as with TLS. */
    private const MAX_READS_PER_TURN = 8;

    /** @var array<int, self> connections that stay in memory while an exchange or a cancel request is in flight */
    private static array $keptAlive = [];

    /** Time by hrtime() at which bytes were last received, or the connection was opened. */
    public int $lastReceived;

    /** Value of {@see $drainedAt} at the last read that returned bytes. These bytes arrived after this time. */
    public int $completeUntil;

    /** Time by hrtime() before the last read that left no bytes unread. */
    private int $drainedAt;

    /**
     * Time by hrtime() at which the read timeout starts, unless {@see $lastReceived} is later. A write restarts the
     * timeout only during a COPY, or if the stream did not accept the bytes at first. If every write restarted the
     * timeout, further statements would extend the timeout although the server is silent.
     */
    private int $readTimeoutStart = 0;

    public readonly ServerTime $serverTime;

    /** @var (\Closure(list<Exchange>): void)|null */
    private ?\Closure $onAnswered = null;

    public ?Exchange $copying = null;

    /** Messages that close statements and portals, to be sent ahead of the next submitted exchange. */
    public string $pendingCloses = '';

    /** Messages that begin a transaction, to be sent ahead of the next submitted exchange. */
    public string $pendingBegin = '';

    /** Why the connection has ended; null while it is open. Only this class writes the property. */
    public ConnectionLostException|ConnectionClosedException|null $endReason = null;

    /** Held by a fiber that runs a COPY, or that waits in {@see submit()} until all earlier exchanges are answered. */
    public readonly FairMutex $copyMutex;

    public readonly Conversation $conversation;

    public readonly Cancelling $cancelling;

    private readonly WriteBuffer $outbox;

    private readonly OwnLoop $loop;

    private readonly string $readable;

    private readonly string $writable;

    /** @var \Closure(): void */
    private readonly \Closure $flush;

    private bool $isFlushScheduled = false;

    /** Whether the outbox has bytes that the stream did not accept at the last write. */
    private bool $isAwaitingWritable = false;

    /**
     * Whether only one exchange was in flight at the last write. If so, {@see send()} expects no further exchange in
     * this turn of the event loop, and writes without waiting for the end of the turn.
     */
    private bool $hadOneExchange = false;

    private bool $isPaused = false;

    /** Whether answers are expected, so that the event loop must keep running. */
    private bool $isExpectingAnswers = false;

    private int $settlingCount = 0;

    /** Whether {@see flush()} may skip the check for a fork, because no caller's code has run since the last check. */
    private bool $isKnownOwner = false;

    private ?string $readTimer = null;

    /** Callers of {@see settle()}: they wait for cancel requests, or for all answers. */
    private readonly FiberQueue $waiting;

    /** @var (\Closure(Notification, int): void)|null also gets {@see $completeUntil} */
    private ?\Closure $listener = null;

    /** @var list<\Closure(\Throwable|null): void> */
    private array $onClose = [];

    /** @var \WeakMap<FairMutex, true> mutexes for which no fiber may wait after the end of the connection */
    private readonly \WeakMap $mutexes;

    private readonly int $ownerPid;

    /**
     * @param resource $stream non-blocking
     * @param bool $hasStreamBuffer whether the stream has a buffer that the event loop does not see, as with TLS
     * @param \Closure(bool&): void $sendCancelRequest as for {@see Cancelling}
     * @param float|null $readTimeout the connection ends after this many seconds without a byte, if an answer is due
     * @param int $roundTrip upper bound of a round trip in nanoseconds, measured while connecting
     * @param Handover|null $handover leaves the session for a later HTTP request; null if the stream is not persistent
     */
    public function __construct(
        private $stream,
        private readonly bool $hasStreamBuffer,
        \Closure $sendCancelRequest,
        private readonly ?float $readTimeout,
        SizeLimits $limits,
        int $roundTrip = 0,
        private readonly ?Handover $handover = null,
    ) {
        $this->serverTime = new ServerTime($roundTrip);
        $this->ownerPid = (int) getmypid();
        $this->conversation = new Conversation($limits);
        $this->outbox = new WriteBuffer();
        $this->waiting = new FiberQueue();
        $this->copyMutex = new FairMutex(
            'The connection is busy with a COPY until its data are read to the end or the loop over them ends',
        );
        $this->mutexes = new \WeakMap();
        $this->endWaitsFor($this->copyMutex);
        $this->lastReceived = $this->completeUntil = $this->drainedAt = hrtime(true);
        if (!$hasStreamBuffer) {
            stream_set_read_buffer($stream, 0);
        }
        // The callbacks must not keep the connection alive.
        $weak = \WeakReference::create($this);
        $this->cancelling = new Cancelling(
            $this->conversation,
            $sendCancelRequest,
            static fn(?ConnectionLostException $failure) => $weak->get()?->onCancelRequestDone($failure),
        );
        $this->flush = static fn() => $weak->get()?->flush();
        $this->loop = new OwnLoop();
        $this->readable = EventLoop::unreference(EventLoop::onReadable(
            $stream,
            static fn() => $weak->get()?->receive(),
        ));
        $this->writable = EventLoop::disable(EventLoop::onWritable($stream, $this->flush));
        if ($handover !== null) {
            RequestEnd::endWithRequest($this);
        }
    }

    public function __destruct()
    {
        $this->end(null);
    }

    public function isOpen(): bool
    {
        return $this->endReason === null;
    }

    /**
     * Returns whether a later HTTP request could use the connection. A connection for which a cancel request was sent
     * is not reused, because the signal of the cancel request may arrive late.
     */
    public function isReusable(): bool
    {
        return $this->conversation->isIdle()
            && $this->outbox->size === 0
            && $this->copying === null
            && !$this->cancelling->hasRequested;
    }

    public function inFlight(): int
    {
        return \count($this->conversation->exchanges);
    }

    /**
     * Waits for cancelled exchanges, cancel requests and a COPY of another fiber. Then sends an exchange. An exchange
     * that begins a transaction, or must not be sent twice, also waits until all earlier exchanges are answered.
     * Otherwise a late cancel request for an earlier exchange could stop the new one.
     *
     * @param non-empty-list<string> $parts parts of the exchange's messages, in order
     */
    public function submit(Exchange $exchange, #[\SensitiveParameter] array $parts, ?Cancellation $cancellation): void
    {
        do {
            $mustBeFirst = $exchange->mustNotRepeat || $this->pendingBegin !== '';
            $this->settle($mustBeFirst && $this->copying === null && $this->copyMutex->isMine(), $cancellation);
            if (
                $this->copyMutex->isLocked ? $this->copying !== null
                || !$this->copyMutex->isMine() : $mustBeFirst && $this->conversation->exchanges !== []
            ) {
                $this->copyMutex->acquire($cancellation);
                try {
                    $this->settle($mustBeFirst, $cancellation);
                } finally {
                    // The fiber that gets the lock next resumes only after this exchange is sent.
                    $this->copyMutex->release();
                }
            }
        } while ($this->cancelling->blocksSending && $this->endReason === null);
        $ahead = $this->pendingCloses . $this->pendingBegin;
        $exchange->begins = $this->pendingBegin !== '';
        $this->pendingCloses = $this->pendingBegin = '';
        $this->send($exchange, $ahead . $parts[0]);
        foreach (\array_slice($parts, 1) as $part) {
            $this->write($part);
        }
        if ($exchange->onSent !== null) {
            ($exchange->onSent)($exchange);
            $exchange->onSent = null;
        }
    }

    /**
     * Sends an exchange without waiting. {@see submit()} waits until sending is allowed.
     *
     * @param string $bytes messages of the exchange, or their first part
     *
     * @throws ConnectionClosedException|ConnectionLostException when the connection has ended; nothing was sent
     */
    public function send(Exchange $exchange, #[\SensitiveParameter] string $bytes): void
    {
        if (!$this->isExpectingAnswers && !$this->loop->isCurrent()) {
            $this->endIfForeign();
        }
        if ($this->endReason !== null) {
            throw self::unsent($this->endReason);
        }
        $conversation = $this->conversation;
        $isOnly = $conversation->exchanges === [];
        $conversation->exchanges[$conversation->tail++] = $exchange;
        // The code of WriteBuffer::add(), inlined because it runs for each statement.
        $length = \strlen($bytes);
        if ($length < WriteBuffer::LARGE_BYTES) {
            $this->outbox->tail .= $bytes;
            $this->outbox->size += $length;
        } else {
            $this->outbox->add($bytes);
        }
        if ($isOnly) {
            if ($this->readTimeout !== null) {
                $this->readTimeoutStart = hrtime(true);
            }
            if (!$this->isExpectingAnswers) {
                $this->startExpecting();
            }
        } elseif ($this->isPaused) {
            // The answer to this exchange arrives after the rows of a streamed exchange, so reading must go on.
            $this->pause(false);
        }
        if ($this->isFlushScheduled || $this->isAwaitingWritable) {
            return;
        }
        $isOnly && $this->hadOneExchange ? $this->flush() : $this->flushSoon();
    }

    public function write(#[\SensitiveParameter] string $bytes): void
    {
        $this->outbox->add($bytes);
        if (!$this->isFlushScheduled && !$this->isAwaitingWritable) {
            $this->flushSoon();
        }
    }

    public function unwrittenBytes(): int
    {
        return $this->outbox->size;
    }

    /** Suspends until the exchange is done, or its stream or COPY has progressed. */
    public function await(#[\SensitiveParameter] Exchange $exchange, ?Cancellation $cancellation): void
    {
        $id = $cancellation?->subscribe(fn(CancelledException $reason) => $this->abandon($exchange, $reason));
        try {
            // The exchange may be answered already. For example, {@see Portal} fetches rows in advance.
            if (!$exchange->done && !$this->endIfForeign()) {
                $exchange->wait();
            }
        } catch (\Throwable $interruption) {
            $this->abandon($exchange, null);
            throw $interruption;
        } finally {
            $cancellation?->unsubscribe((string) $id);
        }
        if ($exchange->waitFailure !== null) {
            throw CallerTrace::of($exchange->waitFailure);
        }
    }

    /**
     * Abandons an exchange: drops its rows, and asks the server to stop it.
     *
     * @param CancelledException|null $reason exception for the waiting caller; null to resume no caller
     */
    public function abandon(#[\SensitiveParameter] Exchange $exchange, ?CancelledException $reason): void
    {
        if ($exchange->done || $this->endReason !== null || $this->endIfForeign()) {
            return;
        }
        $exchange->cancelled = $exchange->discarded = true;
        $exchange->rows = null;
        if ($exchange->isStreamed) {
            $this->pause(false);
        }
        // Sending is blocked before the caller resumes, so that its next exchange waits for the cancel request.
        $this->cancelling->stop($exchange);
        if ($reason !== null) {
            $exchange->waitFailure = $reason;
            $exchange->wake();
        }
    }

    public function stop(): void
    {
        $this->endIfForeign();
        foreach ($this->conversation->exchanges as $exchange) {
            $this->abandon($exchange, null);
        }
        if ($this->copying?->copyResponse === BackendMessages::COPY_OUT_RESPONSE) {
            // The fiber that reads the COPY may never continue, so other fibers must not wait for its lock.
            $this->copying = null;
            $this->pause(false);
            $this->copyMutex->release();
        }
    }

    /** @param bool $all whether to wait for all answers, not only for cancel requests and cancelled exchanges */
    public function settle(bool $all, ?Cancellation $cancellation): void
    {
        $this->loop->isCurrent() || $this->endIfForeign();
        if ($all && $this->copying === null && $this->conversation->exchanges !== []) {
            $this->pause(false);
        }
        $this->settlingCount += $all ? 1 : 0;
        try {
            while (
                $this->endReason === null
                && ($this->cancelling->blocksSending || $all && $this->conversation->exchanges !== [])
            ) {
                $this->waiting->wait($cancellation);
            }
        } finally {
            $this->settlingCount -= $all ? 1 : 0;
        }
    }

    /** @param (\Closure(Notification, int): void)|null $listener keeps the event loop running; null for none */
    public function listen(?\Closure $listener): void
    {
        $this->listener = $listener;
        if ($this->endReason === null && $this->conversation->exchanges === []) {
            $listener === null ? EventLoop::unreference($this->readable) : EventLoop::reference($this->readable);
        }
    }

    public function pause(bool $on): void
    {
        if ($this->endReason !== null || $this->isPaused === $on) {
            return;
        }
        $this->isPaused = $on;
        $this->readTimeoutStart = hrtime(true);
        if ($on) {
            EventLoop::disable($this->readable);
        } else {
            EventLoop::enable($this->readable);
            if ($this->hasStreamBuffer) {
                $this->receiveLater();
            }
        }
    }

    /** @param \Closure(\Throwable|null): void $callback gets the reason for the end; null for an end on purpose */
    public function onClose(\Closure $callback): void
    {
        $this->onClose[] = $callback;
    }

    /**
     * @param \Closure(list<Exchange>): void $callback called with exchanges that are done or have progressed, before
     *     their callers resume. Not called for a single exchange whose {@see Exchange::$cost} is negative
     */
    public function onAnswered(\Closure $callback): void
    {
        $this->onAnswered = $callback;
    }

    public function endWaitsFor(FairMutex $mutex): void
    {
        $this->mutexes[$mutex] = true;
        if ($this->endReason !== null) {
            $mutex->end(self::unsent($this->endReason));
        }
    }

    /** Ends the connection, so that all exchanges in flight fail. `$reason` is null for an end on purpose. */
    public function end(?ConnectionLostException $reason, ?ConnectionClosedException $closed = null): void
    {
        if ($this->endReason !== null) {
            return;
        }
        $this->endReason = $end = $reason ?? $closed ?? ConnectionClosedException::connection();
        $this->loop->cancel($this->readable);
        $this->loop->cancel($this->writable);
        $this->cancelTimers();
        unset(self::$keptAlive[spl_object_id($this)]);
        if ($this->ownerPid === getmypid()) {
            $this->closeStream($reason === null);
        } elseif ($this->hasStreamBuffer) {
            ForkedSockets::detach([$this->stream]);
        }
        $this->handover?->release();
        $failed = $this->conversation->exchanges;
        $this->conversation->exchanges = [];
        foreach ($failed as $exchange) {
            $exchange->done = true;
            $exchange->waitFailure ??= $this->endReason;
            // A destructor may call this method, and before PHP 8.4 no fiber can be resumed in a destructor.
            EventLoop::queue($exchange->wake(...));
        }
        $this->waiting->wakeAll();
        foreach ($this->mutexes as $mutex => $_) {
            $mutex->end(self::unsent($end));
        }
        $callbacks = $this->onClose;
        $this->onClose = [];
        $this->listener = $this->onAnswered = null;
        foreach ($callbacks as $callback) {
            $callback($reason);
        }
    }

    private static function unsent(
        ConnectionLostException|ConnectionClosedException $reason,
    ): ConnectionLostException|ConnectionClosedException {
        return $reason instanceof ConnectionLostException ? ConnectionLostException::earlier($reason) : $reason;
    }

    private function closeStream(bool $onPurpose): void
    {
        $isKept = $onPurpose
            && $this->handover !== null
            && $this->isReusable()
            && $this->handover->send($this->stream, $this->serverTime->roundTrip);
        if ($isKept) {
            return;
        }
        if ($onPurpose && $this->outbox->size === 0) {
            Warnings::write($this->stream, FrontendMessages::TERMINATE);
        }
        fclose($this->stream);
    }

    /** Keeps the event loop running for answers, and starts the read timeout. */
    private function startExpecting(): void
    {
        $this->isExpectingAnswers = true;
        EventLoop::reference($this->readable);
        self::$keptAlive[spl_object_id($this)] = $this;
        if ($this->readTimeout !== null) {
            $this->readTimer ??= $this->startReadTimer($this->readTimeout);
        }
    }

    /** Lets the event loop end, because no answer is expected any more. A listener keeps the loop running. */
    private function onAllAnswered(): void
    {
        $this->isExpectingAnswers = false;
        if ($this->listener === null) {
            EventLoop::unreference($this->readable);
        }
        if (!$this->cancelling->isRequesting) {
            unset(self::$keptAlive[spl_object_id($this)]);
        }
        $this->cancelTimers();
        $this->waiting->wakeAll();
    }

    private function cancelTimers(): void
    {
        if ($this->readTimer !== null) {
            $this->loop->cancel($this->readTimer);
            $this->readTimer = null;
        }
        $this->cancelling->cancelTimers($this->loop);
    }

    private function startReadTimer(float $seconds): string
    {
        return EventLoop::reference(WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->readTimer = null;
            // Bytes may have arrived while the event loop was blocked.
            $self->receive();
            $exchange = $self->conversation->current();
            if ($exchange === null || $self->endReason !== null || $self->readTimer !== null) {
                return;
            }
            // No byte is due while reading is paused, or while the server waits for the data of a COPY.
            $isServerWaiting = $exchange->copyResponse === BackendMessages::COPY_IN_RESPONSE
                && !$exchange->isCopyDataEnded
                && $self->outbox->size === 0;
            $isDue = !$self->isPaused && !$isServerWaiting;
            $silentSince = max($self->lastReceived, $self->readTimeoutStart);
            $rest = (float) $self->readTimeout - ($isDue ? (hrtime(true) - $silentSince) / 1e9 : 0.0);
            if ($rest > 0) {
                $self->readTimer = $self->startReadTimer($rest);
            } else {
                $self->end(ConnectionLostException::while("the server sent nothing within {$self->readTimeout} s"));
            }
        }));
    }

    /** Schedules one write for the outbox and for all exchanges that are sent in this turn of the event loop. */
    private function flushSoon(): void
    {
        $this->isFlushScheduled = true;
        EventLoop::queue($this->flush);
    }

    private function flush(): void
    {
        $this->isFlushScheduled = false;
        if ($this->endReason !== null || !$this->isKnownOwner && $this->endIfForked()) {
            return;
        }
        $exchanges = $this->conversation->exchanges;
        $last = $exchanges[$this->conversation->tail - 1] ?? null;
        $this->hadOneExchange = \count($exchanges) === 1;
        $size = $this->outbox->size;
        $isWritable = $this->outbox->flush($this->stream);
        if (!$this->hadOneExchange || $last?->isTimed === true) {
            $this->serverTime->recordWrite($this->conversation->head, $this->conversation->tail, hrtime(true));
        }
        $hasWritten = $this->outbox->size < $size;
        if ($this->readTimeout !== null && $hasWritten && ($this->isAwaitingWritable || $this->copying !== null)) {
            $this->readTimeoutStart = hrtime(true);
        }
        if (!$isWritable) {
            // The write failed. receive() reads what the server sent before the failure, and ends the connection.
            EventLoop::disable($this->writable);

            return;
        }
        if ($this->isAwaitingWritable !== $this->outbox->size > 0) {
            $this->isAwaitingWritable = !$this->isAwaitingWritable;
            $this->isAwaitingWritable ? EventLoop::enable($this->writable) : EventLoop::disable($this->writable);
        }
        if (!$this->isAwaitingWritable && $last !== null && $last->copyResponse !== '') {
            $last->wake();
        }
    }

    /** Ends the connection in a fork, or if the event loop was replaced. Returns whether the connection has ended. */
    public function endIfForeign(): bool
    {
        if (!$this->endIfForked() && !$this->loop->isCurrent()) {
            $this->end(ConnectionLostException::while(OwnLoop::REPLACED));
        }

        return $this->endReason !== null;
    }

    private function endIfForked(): bool
    {
        if ($this->ownerPid === getmypid()) {
            return false;
        }
        $this->end(ConnectionLostException::while('this process is a fork of the one that opened it'));

        return true;
    }

    public function receive(): void
    {
        if ($this->endReason !== null || $this->endIfForked()) {
            return;
        }
        for ($reads = 0; $this->endReason === null && !$this->isPaused; ++$reads) {
            if ($reads === self::MAX_READS_PER_TURN) {
                $this->receiveLater();

                return;
            }
            $startedAt = hrtime(true);
            $bytes = Warnings::readFast($this->stream, self::READ_BYTES);
            if ($bytes === '' || $bytes === false) {
                if ($bytes === false || feof($this->stream)) {
                    $this->end(ConnectionLostException::while('the server closed it'));
                }
                $this->drainedAt = $startedAt;

                return;
            }
            $this->completeUntil = $this->drainedAt;
            if (!$this->hasStreamBuffer && \strlen($bytes) < self::READ_BYTES) {
                $this->drainedAt = $startedAt;
            }
            $this->receiveBytes($bytes, $startedAt);
            if (!$this->hasStreamBuffer) {
                return;
            }
        }
    }

    /** Schedules a read, because the event loop does not see bytes in the stream's own buffer. */
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
        if ($this->endReason !== null || $this->cancelling->tryUnblock()) {
            $this->waiting->wakeAll();
        }
    }

    /** @param int $time when the bytes were read, by hrtime() */
    public function receiveBytes(#[\SensitiveParameter] string $bytes, int $time): void
    {
        $conversation = $this->conversation;
        $this->lastReceived = $time;
        $head = $conversation->head;
        try {
            $conversation->receive($bytes);
        } catch (ProtocolException $failure) {
            $this->end(ConnectionLostException::while($failure->getMessage(), $failure));
        }
        if ($this->cancelling->blocksSending && $this->cancelling->tryUnblock()) {
            $this->waiting->wakeAll();
        }
        $next = $conversation->exchanges[$conversation->head] ?? null;
        if ($next !== null && $next->cancelled && $conversation->head > $head) {
            $this->cancelling->requestLater($next);
        }
        if ($next !== null && $next->isStreamed && $this->mustPause($next)) {
            $this->pause(true);
        }
        if ($conversation->reply !== '' || $conversation->notifications !== [] || $conversation->fatalError !== null) {
            $this->handleEvents();
        }
        if ($conversation->head > $head && $conversation->toWake[0]->isTimed) {
            $this->recordTimes($conversation->toWake, $head, $conversation->head - $head);
        }
        if ($conversation->toWake !== []) {
            $this->resumeCallers();
        }
        $conversation->hasLargeRows = false;
        // The check follows resumeCallers(), because most of the resumed callers have sent another exchange.
        if ($conversation->exchanges === [] && $this->endReason === null) {
            $this->onAllAnswered();
        }
    }

    /** Returns whether reading must pause: a stream's caller has many rows to take, and no other caller waits. */
    private function mustPause(#[\SensitiveParameter] Exchange $stream): bool
    {
        return !$stream->discarded
            && ($stream->rows->size ?? 0) > self::MAX_HELD_BYTES
            && $this->settlingCount === 0
            && \count($this->conversation->exchanges) === 1;
    }

    /** Resumes callers, after all events are handled: each caller runs immediately, and may send or close. */
    private function resumeCallers(): void
    {
        $conversation = $this->conversation;
        $awake = $conversation->toWake;
        $conversation->toWake = [];
        // A statement with a negative cost comes from a borrower of an exclusive session. The pool needs no report of
        // the answer to this statement.
        if ($this->onAnswered !== null && ($awake[0]->cost >= 0 || isset($awake[1]))) {
            $this->isKnownOwner = true;
            ($this->onAnswered)($awake);
            $this->isKnownOwner = false;
        }
        foreach ($awake as $exchange) {
            // Decoding large rows will block the event loop for a while. So other callbacks run before the caller.
            $conversation->hasLargeRows ? EventLoop::delay(0, $exchange->wake(...)) : $exchange->wake();
        }
    }

    /**
     * @param list<Exchange> $answered exchanges that are done or have progressed
     * @param int $count number of exchanges in `$answered` that are done
     */
    private function recordTimes(array $answered, int $head, int $count): void
    {
        $took = $this->serverTime->recordAnswers($head, $count, $this->lastReceived);
        if ($count === 1) {
            $answered[0]->nanoseconds = $took;

            return;
        }
        $isSlow = $took > ServerTime::SHORT_NANOSECONDS;
        foreach ($answered as $index => $exchange) {
            // If several exchanges together took long, all of the time is assigned to the first exchange, because the
            // others probably waited for it. The times of the others are unknown (-1).
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
                ($this->listener)($notification, $this->completeUntil);
            }
        }
        $error = $conversation->fatalError;
        if ($error !== null) {
            $this->end(ConnectionLostException::while(
                "the server ended it: {$error->message()} (SQLSTATE {$error->sqlState()})",
                error: $error,
            ));
        }
    }
}
