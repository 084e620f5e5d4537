<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Internal\Async\FiberQueue;

/**
 * Adds phases and deadlines to the transport of a connection. Collects bytes of responses. Suspends fibers until the
 * kernel has accepted these bytes. Ends this side of the connection.
 */
final class TimedTransport
{
    /** Maximum number of waits after the first one in {@see linger()}: 15 waits of Service::LINGER_SECONDS are 30 s. */
    private const MAX_LINGER_EXTENSIONS = 14;

    /** Maximum bytes that {@see discardReceived()} receives in one read, and in one call. */
    private const DISCARD_BYTES = 65_536;
    private const MAX_DISCARDED_BYTES = 1_048_576;

    /** @var Phase no native type, because PHP would check the type twice for each request */
    public $phase = Phase::Head;

    /** The time by hrtime() after which {@see Connection::expire()} is called. */
    public int $deadline = \PHP_INT_MAX;

    public string $outgoing = '';
    private bool $flushQueued = false;

    public ?OutgoingBody $body = null;

    public bool $closeAfterResponse = false;

    /** Whether the client has ended its side, and the server has received all bytes before the end. */
    public bool $peerEnded = false;

    public bool $closed = false;

    public bool $bodyAwaited = false;

    public int $requestCount = 0;

    /** Time of the last response, by hrtime(). */
    public int $answeredAt = 0;

    private ?RateWindow $uploadRate = null;

    /** Fibers that wait until the kernel has accepted all collected bytes; null before the first wait. */
    private ?FiberQueue $writers = null;

    /** Bytes that the kernel had accepted when the deadline of the current write started. */
    private int $sentBefore = 0;

    private ?SlowClientCheck $slowClientCheck = null;

    private int $lingerExtensions = 0;

    /** Bytes received when the current wait of {@see linger()} began. */
    private int $receivedBeforeLinger = 0;

    /** @param Connection|null $connection null once closed, so that the two objects do not keep each other in memory */
    public function __construct(
        public readonly Transport $transport,
        private readonly Service $service,
        private ?Connection $connection,
    ) {}

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

    /** Starts or continues the wait for more of a body. The deadline is the end of the {@see RateWindow}. */
    public function enterBody(): void
    {
        $this->awaitBytes(Phase::Body);
    }

    public function discardBody(): void
    {
        $this->awaitBytes(Phase::Discard);
    }

    private function awaitBytes(Phase $phase): void
    {
        $this->uploadRate ??= new RateWindow(
            $this->transport,
            (int) ceil($this->service->options->minBodyRate * $this->service->options->rateWindow),
        );
        $this->enterPhaseUntil(
            $phase,
            $this->uploadRate->startWait($this->requestCount) + $this->service->phaseTimeouts[$phase->value],
        );
    }

    /**
     * Ends the wait for more of a request's body. Restores the interrupted phase with its remaining time. After the
     * response has begun, restores only an unfinished Phase::Write, and otherwise enters {@see Phase::Stream}.
     *
     * @param int $remaining nanoseconds that the interrupted phase had left when the wait began
     */
    public function leaveBody(ServerExchange $exchange, Phase $interrupted, int $remaining): void
    {
        if ($this->phase === Phase::Discard) {
            return;
        }
        $now = $this->uploadRate?->endWait() ?? (int) hrtime(true);
        if ($this->phase !== Phase::Body || $exchange->ended) {
            return;
        }
        $isWriting = $interrupted === Phase::Write && $this->transport->sending;
        if ($exchange->responseStarted && !$isWriting) {
            $this->enterPhase(Phase::Stream, 0);
            $this->startWriteDeadline();
        } else {
            $this->enterPhaseUntil($interrupted, $now + $remaining);
        }
    }

    /** Returns whether enough bytes were transferred in the current {@see RateWindow}. If so, starts the next one. */
    public function continueBody(): bool
    {
        if ($this->uploadRate?->isFastEnough() !== true) {
            return false;
        }
        $this->uploadRate->endWait();
        $this->uploadRate->restart();
        $this->awaitBytes($this->phase);

        return true;
    }

    /**
     * Starts the wait for the next piece of a streamed response. While a fiber waits for the request's body, the phase
     * is {@see Phase::Body}, so that the deadline of the body applies.
     */
    public function enterStream(): void
    {
        if (!$this->bodyAwaited) {
            $this->enterPhase(Phase::Stream, 0);
        } elseif ($this->phase !== Phase::Body) {
            $this->enterBody();
        }
    }

    /** Makes the event loop send collected bytes as soon as the current fiber suspends. */
    public function flushSoon(): void
    {
        if (!$this->flushQueued) {
            $this->flushQueued = true;
            EventLoop::queue(OwnCallback::of($this->flush(...)));
        }
    }

    public function flush(): void
    {
        $this->flushQueued = false;
        if ($this->closed) {
            return;
        }
        $this->outgoing .= $this->body?->takeJoined() ?? '';
        if ($this->outgoing !== '') {
            $isSent = $this->transport->send($this->outgoing);
            $this->outgoing = '';
            if (!$isSent) {
                $this->transport->isBroken ? $this->abort() : $this->startWriteDeadline();
            }
        }
    }

    /** Sends collected bytes of a streamed response, and waits until the kernel has accepted all bytes. */
    public function flushStream(): void
    {
        if ($this->outgoing !== '' || $this->transport->sending) {
            $this->flushAndWait();
            $this->enterStream();
        }
    }

    /** Starts the deadline of {@see Phase::Write} if the kernel has not accepted all bytes of a streamed response. */
    private function startWriteDeadline(): void
    {
        if ($this->phase === Phase::Stream && $this->transport->sending) {
            $this->enterWrite(Phase::Write);
        }
    }

    /** @return bool true if the write failed, or if the fiber was suspended until the kernel had accepted all bytes */
    public function flushAndWait(): bool
    {
        $out = $this->outgoing;
        $this->outgoing = '';
        if ($this->closed || $this->transport->send($out)) {
            return false;
        }
        if ($this->transport->isBroken) {
            $this->abort();

            return true;
        }
        $this->enterWrite(Phase::Write);
        ($this->writers ??= new FiberQueue())->wait();

        return true;
    }

    /** Called when all unsent bytes were sent, or can't be sent any more. */
    public function continueOutput(): void
    {
        if ($this->transport->isBroken) {
            $this->abort();
        } elseif ($this->phase === Phase::Linger) {
            $this->endOutput();
        } else {
            if ($this->phase === Phase::Write) {
                $this->enterStream();
            }
            $this->wakeWriters();
        }
    }

    public function wakeWriters(): void
    {
        $this->writers?->wakeAll();
    }

    /** Starts the deadline for bytes that the kernel did not accept immediately. */
    private function enterWrite(Phase $phase): void
    {
        $this->sentBefore = $this->transport->sentBytes;
        $this->enterPhaseUntil($phase, (int) hrtime(true) + $this->service->phaseTimeouts[Phase::Write->value]);
    }

    /** Continues a write if the client has received bytes since the wait began. Otherwise closes the connection. */
    public function checkProgress(): void
    {
        $phase = $this->phase;
        // The event loop reports progress only after a third of the kernel's buffer, perhaps megabytes, is free.
        $this->transport->trySend();
        if ($this->closed || !$this->transport->sending) {
            return;
        }
        $this->transport->sentBytes > $this->sentBefore
            ? $this->enterWrite($phase)
            : $this->abort(ClientDisconnectedException::tooSlow());
    }

    /** Returns the time by hrtime() from which the connection can be evicted; null during a request or a write. */
    public function evictableFrom(): ?int
    {
        $minWait = match ($this->phase) {
            Phase::Idle => ConnectionLimits::MIN_IDLE_NANOSECONDS,
            Phase::Handshake,
            Phase::Head,
            Phase::Discard,
            Phase::Linger => ConnectionLimits::MIN_UNFINISHED_NANOSECONDS,
            Phase::Handler, Phase::Body, Phase::Write, Phase::Stream => null,
        };

        return $minWait === null || $this->transport->sending
            ? null
            : $this->deadline - $this->service->phaseTimeouts[$this->phase->value] + $minWait;
    }

    /**
     * Returns whether the client is too slow to keep its connection while the server is full. A client is too slow if
     * the server waits for the client, and the client has transferred too few bytes since an earlier call.
     */
    public function isTooSlowWhenFull(int $now): bool
    {
        return $this->phase === Phase::Body ? $this->isUploadTooSlow($now) : $this->isDownloadTooSlow($now);
    }

    private function isUploadTooSlow(int $now): bool
    {
        return $this->uploadRate !== null && $this->slowClientCheck()->isTooSlow(
            0,
            $this->uploadRate->waited($now),
            $this->transport->receivedBytes + $this->transport->sentBytes,
        );
    }

    private function isDownloadTooSlow(int $now): bool
    {
        if ($this->phase !== Phase::Write && $this->phase !== Phase::Linger || !$this->transport->sending) {
            return false;
        }
        $waitStart = $this->deadline - $this->service->phaseTimeouts[Phase::Write->value];
        $this->transport->trySend(); // the event loop does not report all progress: see checkProgress()

        return !$this->closed
            && $this->transport->sending
            && $this->slowClientCheck()->isTooSlow($waitStart, $now, $this->transport->sentBytes);
    }

    private function slowClientCheck(): SlowClientCheck
    {
        return $this->slowClientCheck ??= new SlowClientCheck($this->service->options->minBodyRate);
    }

    /**
     * Ends this side of the connection once all bytes are sent, and waits until the client ends its side. Some
     * clients, such as proxies, send the whole body before they read the response. If the server closed the connection
     * while bytes are unread, the kernel would discard the response: RFC 9112, section 9.6.
     */
    public function linger(): void
    {
        $this->closeAfterResponse = true;
        $this->phase = Phase::Linger;
        $sent = $this->outgoing === '' ? !$this->transport->sending : $this->transport->send($this->outgoing);
        $this->outgoing = '';
        if ($this->transport->isBroken) {
            $this->abort();
        } elseif ($sent) {
            $this->endOutput();
        } else {
            $this->enterWrite(Phase::Linger);
        }
    }

    private function endOutput(): void
    {
        if ($this->peerEnded) {
            $this->abort();
        } else {
            $this->receivedBeforeLinger = $this->transport->receivedBytes;
            $this->enterPhase(Phase::Linger, hrtime(true));
            $this->transport->end();
            $this->transport->resume();
        }
    }

    /** Extends {@see linger()}, a limited number of times, if the client has sent bytes. Else closes the connection. */
    public function continueLinger(): void
    {
        $this->discardReceived();
        $received = $this->transport->receivedBytes;
        if ($received > $this->receivedBeforeLinger && ++$this->lingerExtensions <= self::MAX_LINGER_EXTENSIONS) {
            $this->receivedBeforeLinger = $received;
            $this->enterPhase(Phase::Linger, hrtime(true));
        } else {
            $this->abort();
        }
    }

    /** Drops received bytes. If a connection is closed with unread bytes, the kernel discards the response. */
    public function discardReceived(): void
    {
        $maxBytes = $this->transport->receivedBytes + self::MAX_DISCARDED_BYTES;
        do {
            $bytes = $this->transport->receive(self::DISCARD_BYTES) ?? '';
        } while ($bytes !== '' && $this->transport->receivedBytes < $maxBytes);
    }

    /** @param ClientDisconnectedException|null $why see {@see Connection::close()} */
    public function abort(?ClientDisconnectedException $why = null): void
    {
        $this->connection?->close($why);
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
