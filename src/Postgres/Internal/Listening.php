<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredCancellation;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Backoff;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Reconnected;

use function Amp\async;

/** Receives notifications of some channels. When the connection is lost, opens another one and continues. */
final class Listening
{
    /** Number of pending notifications at which receiving pauses until the caller reads them. */
    private const MAX_PENDING_NOTIFICATIONS = 1_000;

    /** Seconds between two reads. A longer interval would make {@see Reconnected::$since} earlier than necessary. */
    private const READ_INTERVAL = 1.0;

    /** Maximum seconds of the pause before an attempt. A session that has lived longer is replaced immediately. */
    private const MAX_PAUSE = 5.0;

    /** @var list<Notification> notifications that are not read yet */
    private array $pending = [];

    /** Time by microtime(). All pending notifications arrived at this machine after this time. */
    private float $pendingSince = 0.0;

    /** Whether each LISTEN was answered. Before that, receiving must not pause, because the answers must be read. */
    private bool $isAnswered = false;

    /** @var array<array-key, true> channels, as keys, for which the last session's LISTEN has succeeded */
    private array $listened = [];

    /** The session in which {@see followChannels()} runs. */
    private ?PipelinedSession $following = null;

    /** Failure of a LISTEN or UNLISTEN; null while there is none. */
    private ?\Throwable $failure = null;

    /** Event to yield when a lost connection has been replaced; null while a connection is open. */
    private ?Reconnected $reconnected = null;

    private readonly Condition $changed;

    private ?PipelinedSession $session = null;

    private ?string $readTimer = null;

    private readonly OwnLoop $loop;

    /**
     * @var array{int, float}|null time, by hrtime(), at which the connection certainly worked, and the clock offset at
     *     that time; set when receiving pauses. Null after a ping without a pause: bytes are then received immediately
     */
    private ?array $worked = null;

    private int $pauseCount = 0;

    /** Clock minus hrtime() in seconds before the last bytes arrived; hrtime() stops while the machine is suspended. */
    private float $clockOffset = 0.0;

    private float $lastClockOffset = 0.0;

    private int $clockOffsetUntil = 0;

    private int $openedAt = 0;

    /** Number of attempts to replace a session since the last session that lived longer than {@see MAX_PAUSE}. */
    private int $attempts = 0;

    private readonly Backoff $backoff;

    private function __construct(
        private readonly SessionFactory $sessionFactory,
        private readonly Channels $channels,
        private readonly Cancellation $cancellation,
    ) {
        $this->backoff = new Backoff(delay: 0.05, factor: 2.0, maxDelay: self::MAX_PAUSE, jitter: 0.5);
        $this->changed = new Condition();
        $this->loop = new OwnLoop();
    }

    /**
     * @param list<string> $channels
     * @param DeferredCancellation $ending the caller cancels this object to end the generator. If the caller passes an
     *     exception to cancel(), the generator throws that exception. The generator keeps a reference to the object,
     *     because the destructor of DeferredCancellation would also end the generator
     *
     * @return \Generator<int, Notification|Reconnected>
     */
    public static function to(
        SessionFactory $sessionFactory,
        array $channels,
        ?Cancellation $cancellation,
        DeferredCancellation $ending,
    ): \Generator {
        Channels::check($channels);
        $unchanging = new Channels();
        $unchanging->add($channels);
        yield from self::toChannels($sessionFactory, $unchanging, $cancellation, $ending);
    }

    /**
     * Does the same as {@see to()}, for channels that may change until the generator ends.
     *
     * @return \Generator<int, Notification|Reconnected>
     */
    public static function toChannels(
        SessionFactory $sessionFactory,
        Channels $channels,
        ?Cancellation $cancellation,
        DeferredCancellation $ending,
    ): \Generator {
        $end = $ending->getCancellation();
        $self = new self(
            $sessionFactory,
            $channels,
            $cancellation === null ? $end : new CompositeCancellation($end, $cancellation),
        );
        $weak = \WeakReference::create($self);
        $channels->onChange = static fn() => $weak->get()?->onChange();
        $subscription = $end->subscribe($self->close(...));
        try {
            $self->open();
            for (;;) {
                foreach ($self->take() as $notification) {
                    yield $notification;
                }
                if ($self->reconnected !== null && $self->pending === []) {
                    yield $self->openAgain($self->reconnected);
                }
            }
        } catch (CancelledException|ConnectionClosedException $failure) {
            if (!$end->isRequested()) {
                throw $failure;
            }
            self::throwReason($end);
        } finally {
            $end->unsubscribe($subscription);
            $self->close();
        }
    }

    private static function throwReason(Cancellation $end): void
    {
        try {
            $end->throwIfRequested();
        } catch (CancelledException $cancelled) {
            if ($cancelled->getPrevious() !== null) {
                throw $cancelled->getPrevious();
            }
        }
    }

    /** Closes the connection. No {@see Reconnected} is yielded, because the end of the connection is intended. */
    private function close(): void
    {
        $session = $this->session;
        $this->session = null;
        $this->loop->cancel($this->readTimer);
        $session?->close();
    }

    private function open(): void
    {
        $this->session = $session = $this->sessionFactory->open($this->cancellation);
        $this->openedAt = hrtime(true);
        $this->channels->takenSince = microtime(true);
        $this->lastClockOffset = self::clockOffset();
        $weak = \WeakReference::create($this);
        $session->pipeline->listen(static fn(Notification $notification, int $completeUntil)
            => $weak->get()?->add($notification, $completeUntil));
        $session->pipeline->onClose(
            static fn(?\Throwable $reason) => $weak->get()?->onConnectionClosed($session, $reason),
        );
        $this->reconnected = $this->worked = null;
        $this->isAnswered = false;
        $this->listened = $this->channels->withReaders($this->listened);
        if ($this->listened !== []) {
            $this->execute($session, $this->listened);
        }
        $this->followChannels($session);
        $this->isAnswered = true;
        $this->readEvery(self::READ_INTERVAL, $session);
        $timeout = $this->sessionFactory->options->readTimeout;
        if ($timeout !== null) {
            $this->pingEvery($timeout, $session);
        }
    }

    private function onChange(): void
    {
        $session = $this->session;
        if ($session === null || !$this->isAnswered) {
            return; // open() sends this change later: it calls followChannels()
        }
        async($this->followChannels(...), $session)->catch(function (\Throwable $failure) use ($session): void {
            if ($session === $this->session && $session->isOpen()) {
                $this->failure = $failure;
                $this->changed->notify();
            }
        })->ignore();
    }

    /** Sends LISTEN and UNLISTEN until the session listens to {@see $channels}. */
    private function followChannels(PipelinedSession $session): void
    {
        if ($this->following === $session) {
            return;
        }
        $this->following = $session;
        try {
            while ($session === $this->session && ($changes = $this->channels->changes($this->listened)) !== []) {
                $this->change($session, $changes);
            }
        } finally {
            $this->following = $this->following === $session ? null : $this->following;
        }
    }

    /** @param non-empty-array<array-key, bool> $changes whether to listen, by channel */
    private function change(PipelinedSession $session, array $changes): void
    {
        try {
            $this->execute($session, $changes);
            $this->listened = array_diff_key($this->listened, $changes) + array_filter($changes);
        } catch (QueryException $refusal) {
            if (\count($changes) > 1) {
                foreach ($changes as $channel => $isListened) {
                    $this->change($session, [$channel => $isListened]);
                }

                return;
            }
            $this->listened = array_diff_key($this->listened, $changes);
            if (current($changes)) {
                $this->channels->refuse((string) key($changes), $refusal);
            }
        }
    }

    /** @param non-empty-array<array-key, bool> $changes whether to listen, by channel */
    private function execute(PipelinedSession $session, array $changes): void
    {
        $statements = [];
        foreach ($changes as $channel => $isListened) {
            $name = '"' . str_replace('"', '""', (string) $channel) . '"';
            $statements[] = $isListened ? "LISTEN {$name}" : "UNLISTEN {$name}";
        }
        \count($statements) === 1
            ? $session->query($statements[0], [], $this->cancellation)
            : $session->script(implode('; ', $statements), $this->cancellation);
    }

    /** Reads regularly. A read that finds no bytes proves that the bytes of later reads arrived after this read. */
    private function readEvery(float $seconds, PipelinedSession $session): void
    {
        $pid = getmypid();
        $read = static function (self $self) use ($seconds, $session, $pid): void {
            if ($self->session === $session && $session->isOpen() && $pid === getmypid()) {
                $session->pipeline->receive();
                $self->noteClockOffset($session);
                $self->lastClockOffset = self::clockOffset();
                $self->readEvery($seconds, $session);
            }
        };
        $this->loop->cancel($this->readTimer);
        $this->readTimer = WeakTimer::after($seconds, $this, $read);
    }

    /** Pings the server regularly, because the read timeout detects a lost connection only while an answer is due. */
    private function pingEvery(float $seconds, PipelinedSession $session): void
    {
        WeakTimer::after($seconds, $this, static function (self $self) use ($seconds, $session): void {
            if ($self->session !== $session || !$session->isOpen()) {
                return;
            }
            // While notifications are pending, receiving may be paused, so a ping's answer could miss the read timeout.
            if ($self->pending === [] && $session->inFlight() === 0) {
                async($session->ping(...))->ignore();
            }
            $self->pingEvery($seconds, $session);
        });
    }

    private function openAgain(Reconnected $reconnected): Reconnected
    {
        if (hrtime(true) - $this->openedAt > self::MAX_PAUSE * 1e9) {
            $this->attempts = 0;
        }
        for (;; ++$this->attempts) {
            if ($this->attempts > 0) {
                (new Condition())->waitFor($this->backoff->after($this->attempts), $this->cancellation);
            }
            try {
                $this->open();
                ++$this->attempts;

                return $reconnected;
            } catch (AuthenticationException $failure) {
                throw $failure;
            } catch (PostgresException) {
                $this->session?->close();
            }
        }
    }

    /** @return list<Notification> all pending notifications. Suspends until there is one, or the connection is lost */
    private function take(): array
    {
        $this->session?->pipeline->endIfForeign();
        if ($this->pending === [] && $this->reconnected === null && $this->failure === null) {
            $this->changed->wait($this->cancellation, $this);
        }
        if ($this->failure !== null) {
            throw $this->failure;
        }
        [$taken, $this->pending] = [$this->pending, []];
        $this->channels->takenSince = $this->pendingSince;
        if ($this->session?->isOpen() === true) {
            $this->session->pipeline->pause(false);
            if ($this->worked !== null && $this->session->inFlight() === 0) {
                async($this->pingAfterPause(...), $this->session)->ignore();
            }
        }

        return $taken;
    }

    /** Pings the server. The answer arrives after all notifications that the server has sent during the pause. */
    private function pingAfterPause(PipelinedSession $session): void
    {
        $started = [(int) hrtime(true), self::clockOffset()];
        $pauseCount = $this->pauseCount;
        $session->ping();
        if ($session === $this->session) {
            $this->worked = $pauseCount === $this->pauseCount ? null : $started;
        }
    }

    private function add(Notification $notification, int $completeUntil): void
    {
        if ($this->pending === [] && $this->session !== null) {
            $this->pendingSince = $this->clockTime($completeUntil, $this->session);
        }
        $this->pending[] = $notification;
        if ($this->isAnswered && $this->session !== null && \count($this->pending) >= self::MAX_PENDING_NOTIFICATIONS) {
            $this->session->pipeline->pause(true);
            $this->noteClockOffset($this->session);
            $this->worked ??= [$completeUntil, $this->clockOffset];
            ++$this->pauseCount;
        }
        $this->changed->notify();
    }

    private function onConnectionClosed(PipelinedSession $session, ?\Throwable $reason): void
    {
        if ($session === $this->session) {
            // If the event loop was blocked, the connection may have been lost long ago, just after the last bytes.
            [$time, $offset] = $this->worked ?? [$session->pipeline->completeUntil, \INF];
            $since = new \DateTimeImmutable(\sprintf('@%.6F', $this->clockTime($time, $session, $offset)));
            $this->reconnected = new Reconnected($since, $reason ?? ConnectionLostException::while('it was closed'));
            $this->changed->notify();
        }
    }

    /** Returns the time by microtime() for a time by hrtime(), at which or after which the last bytes arrived. */
    private function clockTime(int $time, PipelinedSession $session, float $maxOffset = \INF): float
    {
        $this->noteClockOffset($session);

        return $time / 1e9 + min($this->clockOffset, $maxOffset, self::clockOffset());
    }

    private function noteClockOffset(PipelinedSession $session): void
    {
        if ($this->clockOffsetUntil !== $session->pipeline->completeUntil) {
            [$this->clockOffsetUntil, $this->clockOffset] = [$session->pipeline->completeUntil, $this->lastClockOffset];
        }
    }

    private static function clockOffset(): float
    {
        return microtime(true) - hrtime(true) / 1e9;
    }
}
