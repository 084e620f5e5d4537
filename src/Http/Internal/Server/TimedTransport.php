<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Http\ClientLeftException;
use Spindle\Internal\Async\FiberQueue;

/**
 * The transport of a connection with the phases and deadlines of the connection. Collects bytes, suspends fibers until
 * the client has received them, and ends this side of the connection.
 */
final class TimedTransport
{
    /** Maximum bytes that are received and discarded after the last response. */
    private const MAX_LINGER_BYTES = 1_048_576;

    /** Maximum bytes per read of {@see discardReceived()}. */
    private const DISCARD_BYTES = 65_536;

    public readonly Transport $transport;

    /** @var Phase without a native type, which would have to be checked twice for each request */
    public $phase = Phase::Head;

    /** The time by hrtime() after which {@see Connection::expire()} is called. */
    public int $deadline = \PHP_INT_MAX;

    /** Bytes of responses that are collected and not sent; and whether {@see flush()} is queued in the event loop. */
    public string $outgoing = '';
    private bool $flushQueued = false;

    public bool $closeAfterResponse = false;

    /** Whether the client has ended its side, and the server has received all bytes before the end. */
    public bool $peerEnded = false;

    public bool $closed = false;

    /** Whether a fiber waits for bytes of a request's body. */
    public bool $bodyAwaited = false;

    /** Checks the upload rate; created when the server first waits for a body. And the number of the body's request. */
    private ?RateWindow $uploadRate = null;
    private int $uploadRequest = 0;

    /** Fibers that wait until the kernel has accepted all collected bytes; null before the first one. */
    private ?FiberQueue $writers = null;

    /** Bytes that the kernel had accepted when the current wait for the client began. */
    private int $sentBefore = 0;

    /** Start of the measurement of {@see isTooSlowSince()}, -1 without one; and the bytes transferred by then. */
    private int $measuredAt = -1;
    private int $measuredBytes = 0;

    /** Bytes that the transport had received when {@see linger()} was called. */
    private int $receivedBeforeLinger = 0;

    /**
     * @param resource         $stream     non-blocking
     * @param Connection|null  $connection null after the end, so that the two objects do not keep each other in memory
     * @param \Closure(): void $onReadable called when bytes can be received, or the other side has ended
     */
    public function __construct(
        $stream,
        private readonly Service $service,
        private ?Connection $connection,
        bool $secure,
        \Closure $onReadable,
    ) {
        $this->transport = new Transport($stream, $secure, $onReadable, $this->written(...));
    }

    public function enterPhase(Phase $phase, int $now): void
    {
        $this->enterPhaseUntil($phase, $now + $this->service->phaseTimeouts[$phase->value]);
    }

    public function enterPhaseUntil(Phase $phase, int $deadline): void
    {
        if ($this->closed) {
            return;
        }
        $this->phase = $phase;
        $this->deadline = $deadline;
        if ($deadline < $this->service->nextDeadlineCheck) {
            $this->service->scheduleDeadlineCheck($deadline);
        }
    }

    /**
     * Starts or continues the wait for more of a body. Its deadline is the end of the rate's time window.
     *
     * @param int $request number of the request, unique per connection
     */
    public function enterBody(int $request): void
    {
        $this->uploadRequest = $request;
        $this->uploadRate ??= new RateWindow(
            $this->transport,
            (int) ceil($this->service->options->minRate * $this->service->options->rateWindow),
        );
        $this->enterPhaseUntil(
            Phase::Body,
            $this->uploadRate->startWait($request) + $this->service->phaseTimeouts[Phase::Body->value],
        );
    }

    /** @return int now by hrtime() */
    public function endBodyWait(): int
    {
        return $this->uploadRate?->endWait() ?? (int) hrtime(true);
    }

    /** @return bool whether the body has arrived fast enough, so that the server waits for another time window */
    public function continueBody(): bool
    {
        if ($this->uploadRate?->isFastEnough() !== true) {
            return false;
        }
        $this->uploadRate->endWait();
        $this->uploadRate->restart();
        $this->enterBody($this->uploadRequest);

        return true;
    }

    /**
     * Starts the wait for the next piece of a streamed response. While a fiber waits for the request's body, the phase
     * is {@see Phase::Body}, so that its deadline applies.
     */
    public function enterStream(): void
    {
        if (!$this->bodyAwaited) {
            $this->enterPhase(Phase::Stream, 0);
        } elseif ($this->phase !== Phase::Body) {
            $this->enterBody($this->uploadRequest);
        }
    }

    /** Makes the event loop send collected bytes as soon as the current fiber suspends. */
    public function flushSoon(): void
    {
        if (!$this->flushQueued) {
            $this->flushQueued = true;
            EventLoop::queue($this->flush(...));
        }
    }

    private function flush(): void
    {
        $this->flushQueued = false;
        if ($this->outgoing !== '' && !$this->closed) {
            $this->transport->send($this->outgoing);
            $this->outgoing = '';
        }
    }

    /** @return bool whether the fiber was suspended because the kernel did not accept all bytes at once */
    public function flushAndWait(): bool
    {
        $out = $this->outgoing;
        $this->outgoing = '';
        if ($this->closed || $this->transport->send($out)) {
            return false;
        }
        if ($this->transport->isBroken()) {
            $this->connection?->close();

            return false;
        }
        $this->enterWrite(Phase::Write);
        ($this->writers ??= new FiberQueue())->wait();

        return true;
    }

    /** Continues after the remaining bytes were sent, or when they can't be sent any more. */
    private function written(): void
    {
        if ($this->transport->isBroken()) {
            $this->connection?->close();
        } elseif ($this->phase === Phase::Linger) {
            $this->endOutput();
        } else {
            $this->wakeWriters();
        }
    }

    public function wakeWriters(): void
    {
        $this->writers?->wakeAll();
    }

    /** Starts the wait until the client receives bytes that could not be sent at once. */
    private function enterWrite(Phase $phase): void
    {
        $this->sentBefore = $this->transport->sentBytes;
        $this->enterPhaseUntil($phase, (int) hrtime(true) + $this->service->phaseTimeouts[Phase::Write->value]);
    }

    /** Closes the connection if the client has received nothing since the wait began, or else continues the wait. */
    public function checkProgress(): void
    {
        $phase = $this->phase;
        // The event loop reports a full buffer as writable only when a third of it is free, which may be megabytes.
        $this->transport->trySend();
        if ($this->closed || !$this->transport->sending) {
            return;
        }
        $this->transport->sentBytes > $this->sentBefore
            ? $this->enterWrite($phase)
            : $this->connection?->close(ClientLeftException::tooSlow());
    }

    /** Returns whether the client sends a body too slowly to keep its connection while the server is full. */
    public function isSentTooSlowly(int $now): bool
    {
        return $this->uploadRate !== null && $this->isTooSlowSince(
            0,
            $this->uploadRate->waited($now),
            $this->transport->receivedBytes + $this->transport->sentBytes,
        );
    }

    /** Returns whether the client receives a response too slowly to keep its connection while the server is full. */
    public function isReceivedTooSlowly(int $now): bool
    {
        if ($this->phase !== Phase::Write && $this->phase !== Phase::Linger || !$this->transport->sending) {
            return false;
        }
        $waitStart = $this->deadline - $this->service->phaseTimeouts[Phase::Write->value];
        $this->transport->trySend(); // the event loop does not report all progress: see checkProgress()

        return !$this->closed
            && $this->transport->sending
            && $this->isTooSlowSince($waitStart, $now, $this->transport->sentBytes);
    }

    /**
     * Compares the bytes since the last measurement with the minimum rate of a full server. Begins the next measurement
     * if there was none, or if the client was fast enough.
     *
     * @param int $waitStart when the server began to wait; earlier measurements are ignored
     * @param int $time      now, in the same unit: by hrtime(), or nanoseconds of waiting for the body so far
     * @param int $bytes     transferred so far
     */
    private function isTooSlowSince(int $waitStart, int $time, int $bytes): bool
    {
        $waited = $time - $this->measuredAt;
        $isMeasured = $this->measuredAt >= $waitStart && $waited >= 0;
        $minRate = ConnectionLimits::CROWDED_RATE_FACTOR * $this->service->options->minRate;
        if ($isMeasured && $waited < ConnectionLimits::MIN_SLOW_NANOSECONDS) {
            return false;
        }
        if (
            $isMeasured
            && $bytes - $this->measuredBytes < $minRate * $waited / 1e9
        ) {
            return true;
        }
        [$this->measuredAt, $this->measuredBytes] = [$time, $bytes];

        return false;
    }

    /**
     * Ends this side of the connection once all bytes are sent, and waits until the client ends its side. Closing with
     * unread bytes would make the kernel discard the response: RFC 9112, 9.6.
     */
    public function linger(): void
    {
        $this->closeAfterResponse = true;
        $this->phase = Phase::Linger;
        $sent = $this->outgoing === '' ? !$this->transport->sending : $this->transport->send($this->outgoing);
        $this->outgoing = '';
        $this->receivedBeforeLinger = $this->transport->receivedBytes;
        if ($this->transport->isBroken()) {
            $this->connection?->close();
        } elseif ($sent) {
            $this->endOutput();
        } else {
            $this->enterWrite(Phase::Linger);
        }
    }

    /** Ends this side of the connection, whose bytes are all sent. */
    private function endOutput(): void
    {
        if ($this->peerEnded) {
            $this->connection?->close();
        } else {
            $this->enterPhase(Phase::Linger, hrtime(true));
            $this->transport->end();
            $this->transport->resume();
        }
    }

    /** Closes the connection when the client has sent too much since the call of {@see linger()}. */
    public function limitLingering(): void
    {
        if ($this->transport->receivedBytes - $this->receivedBeforeLinger > self::MAX_LINGER_BYTES) {
            $this->connection?->close();
        }
    }

    /** Drops received bytes. Closing with unread bytes would make the kernel discard the response. */
    public function discardReceived(): void
    {
        $maxBytes = $this->transport->receivedBytes + self::MAX_LINGER_BYTES;
        do {
            $bytes = $this->transport->receive(self::DISCARD_BYTES) ?? '';
        } while ($bytes !== '' && $this->transport->receivedBytes < $maxBytes);
    }

    /** Closes the transport for {@see Connection::close()}, which then calls {@see wakeWriters()}. */
    public function close(): void
    {
        $this->closed = $this->closeAfterResponse = true;
        $this->deadline = \PHP_INT_MAX;
        $this->outgoing = '';
        $this->transport->close();
        $this->connection = null;
    }
}
