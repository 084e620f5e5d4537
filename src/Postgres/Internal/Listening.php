<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\DeferredCancellation;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Backoff;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\Reconnected;

use function Amp\async;

/** Receives notifications of some channels. When the connection is lost, opens another one and continues. */
final class Listening
{
    /** Number of pending notifications at which receiving pauses until the caller reads them. */
    private const MAX_PENDING_NOTIFICATIONS = 1_000;

    /** Maximum bytes of a channel's name, unless the server was built with another NAMEDATALEN. */
    private const MAX_CHANNEL_BYTES = 63;

    /** Maximum seconds before an attempt. A session that has lived longer is replaced immediately. */
    private const MAX_PAUSE = 5.0;

    /** @var list<Notification> notifications that are not read yet */
    private array $pending = [];

    /** Whether each LISTEN was answered. Before that, receiving must not pause, because the answers must be read. */
    private bool $isAnswered = false;

    /** Event to yield when a lost connection has been replaced; null while a connection is open. */
    private ?Reconnected $reconnected = null;

    private readonly Condition $changed;

    private ?PipelinedSession $session = null;

    /**
     * Time, by hrtime(), until which the connection certainly worked, if receiving has paused since. Null after a ping
     * without a pause: bytes are received as soon as they arrive.
     */
    private ?int $workedAt = null;

    private int $pauseCount = 0;

    /** Time, by hrtime(), at which the last session was opened. */
    private int $openedAt = 0;

    /** Number of attempts to replace a session since a session has lived for a while. */
    private int $attempts = 0;

    private readonly Backoff $pause;

    private function __construct(private readonly Cancellation $cancellation)
    {
        $this->pause = new Backoff(delay: 0.05, factor: 2.0, maxDelay: self::MAX_PAUSE, jitter: 0.5);
        $this->changed = new Condition();
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
        if ($channels === []) {
            throw new \ValueError('listen() needs the name of a channel');
        }
        foreach ($channels as $channel) {
            // The server truncates longer names, so no notification would ever arrive under the full name.
            if ($channel === '' || \strlen($channel) > self::MAX_CHANNEL_BYTES) {
                throw new \ValueError(\sprintf(
                    'The name of a channel must have 1 to %d bytes, not %d: %s',
                    self::MAX_CHANNEL_BYTES,
                    \strlen($channel),
                    json_encode($channel, \JSON_INVALID_UTF8_SUBSTITUTE),
                ));
            }
        }
        $end = $ending->getCancellation();
        $self = new self($cancellation === null ? $end : new CompositeCancellation($end, $cancellation));
        $subscription = $end->subscribe($self->close(...));
        try {
            $self->open($sessionFactory, $channels);
            for (;;) {
                foreach ($self->take() as $notification) {
                    yield $notification;
                }
                if ($self->reconnected !== null && $self->pending === []) {
                    yield $self->openAgain($sessionFactory, $channels, $self->reconnected);
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
        $session?->close();
    }

    /** @param list<string> $channels */
    private function open(SessionFactory $sessionFactory, array $channels): void
    {
        $this->session = $session = $sessionFactory->open($this->cancellation);
        $this->openedAt = hrtime(true);
        $weak = \WeakReference::create($this);
        $session->onNotification(static fn(Notification $notification) => $weak->get()?->add($notification));
        $session->onClose(static fn(?\Throwable $reason) => $weak->get()?->onConnectionClosed($session, $reason));
        $this->reconnected = $this->workedAt = null;
        $this->isAnswered = false;
        foreach ($channels as $channel) {
            $session->query('LISTEN "' . str_replace('"', '""', $channel) . '"', [], $this->cancellation);
        }
        $this->isAnswered = true;
        $timeout = $sessionFactory->readTimeout();
        if ($timeout !== null) {
            $this->pingEvery($timeout, $session);
        }
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

    /** @param list<string> $channels */
    private function openAgain(SessionFactory $sessionFactory, array $channels, Reconnected $reconnected): Reconnected
    {
        if (hrtime(true) - $this->openedAt > self::MAX_PAUSE * 1e9) {
            $this->attempts = 0;
        }
        for (;; ++$this->attempts) {
            if ($this->attempts > 0) {
                (new Condition())->waitFor($this->pause->after($this->attempts), $this->cancellation);
            }
            try {
                $this->open($sessionFactory, $channels);
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
        if ($this->pending === [] && $this->reconnected === null) {
            $this->changed->wait($this->cancellation, $this);
        }
        [$taken, $this->pending] = [$this->pending, []];
        if ($this->session?->isOpen() === true) {
            $this->session->pause(false);
            if ($this->workedAt !== null && $this->session->inFlight() === 0) {
                async($this->pingAfterPause(...), $this->session)->ignore();
            }
        }

        return $taken;
    }

    /** The answer to the ping follows all notifications that the server has sent during the pause. */
    private function pingAfterPause(PipelinedSession $session): void
    {
        $startedAt = (int) hrtime(true);
        $pauseCount = $this->pauseCount;
        $session->ping();
        if ($session === $this->session) {
            $this->workedAt = $pauseCount === $this->pauseCount ? null : $startedAt;
        }
    }

    private function add(Notification $notification): void
    {
        $this->pending[] = $notification;
        if ($this->isAnswered && $this->session !== null && \count($this->pending) >= self::MAX_PENDING_NOTIFICATIONS) {
            $this->workedAt ??= $this->session->lastReceived();
            ++$this->pauseCount;
            $this->session->pause(true);
        }
        $this->changed->notify();
    }

    private function onConnectionClosed(PipelinedSession $session, ?\Throwable $reason): void
    {
        if ($session === $this->session) {
            // Notifications since the last received byte may be missing: a loss may be detected long after it happened.
            $ago = (hrtime(true) - ($this->workedAt ?? $session->lastReceived())) / 1e9;
            $since = new \DateTimeImmutable(\sprintf('@%.6F', microtime(true) - $ago));
            $this->reconnected = new Reconnected($since, $reason ?? ConnectionLostException::while('it was closed'));
            $this->changed->notify();
        }
    }
}
