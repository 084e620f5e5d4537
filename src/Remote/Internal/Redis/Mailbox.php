<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Amp\DeferredFuture;
use Revolt\EventLoop;
use Spindle\Internal\Backoff;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\MailboxMessage;

/** A subscription to a channel, which reconnects until it is closed. */
final class Mailbox
{
    /** Seconds between two checks of the connection. */
    private const PING_INTERVAL = 5.0;

    /** Seconds until an engine that refuses is tried again. */
    private const REFUSED_PAUSE_SECONDS = 30.0;

    private ?RedisConnection $connection = null;
    private bool $closed = false;
    private int $failures = 0;

    /** Timer of the next attempt. */
    private ?string $timer = null;

    private readonly int $process;
    private readonly Backoff $backoff;
    private readonly string $pinger;

    /** @var DeferredFuture<null>|null until the first attempt has ended */
    private ?DeferredFuture $firstAttempt;

    private ?BrokerRefusedException $refused = null;

    /**
     * @param \Closure(MailboxMessage): void $onMessage
     * @param \Closure(): void               $onOpen
     */
    public function __construct(
        private readonly Engine $engine,
        private readonly string $mailbox,
        private readonly \Closure $onMessage,
        private readonly \Closure $onOpen,
    ) {
        $this->process = (int) getmypid();
        $this->backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $this->firstAttempt = new DeferredFuture();
        $this->engine->addUnverified($this);
        $this->pinger = EventLoop::unreference(EventLoop::repeat(self::PING_INTERVAL, $this->ping(...)));
        EventLoop::queue($this->subscribe(...));
    }

    /**
     * Waits until the first attempt has ended, because outcomes arrive here and requests are useless without it.
     *
     * @throws BrokerRefusedException
     */
    public function check(): void
    {
        $this->firstAttempt?->getFuture()->await();
        if ($this->refused !== null) {
            throw $this->refused;
        }
    }

    public function close(): void
    {
        $this->closed = true;
        $this->attemptEnded(null);
        EventLoop::cancel($this->pinger);
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
        $connection = $this->connection;
        $this->connection = null;
        $connection?->close('the mailbox was closed');
    }

    private function subscribe(): void
    {
        if ($this->closed || $this->process !== getmypid()) {
            return; // or this is a fork, and the mailbox is the other process's
        }
        try {
            $connection = $this->engine->open();
            $connection->call('SUBSCRIBE', ["spindle:to:{$this->mailbox}"]);
        } catch (BrokerRefusedException $refused) {
            $this->attemptEnded($refused);
            $this->retryIn(self::REFUSED_PAUSE_SECONDS);

            return;
        } catch (BrokerException|EngineError) {
            $this->attemptEnded(null); // other requests report the reason
            $this->retryIn($this->backoff->after(++$this->failures));

            return;
        }
        if ($this->isClosed()) { // closed while connecting
            $connection->close('the mailbox was closed');

            return;
        }
        $this->connection = $connection;
        $this->failures = 0;
        $this->attemptEnded(null);
        $connection->listen($this->onData(...));
        ($this->onOpen)();
    }

    private function isClosed(): bool
    {
        return $this->closed;
    }

    private function onData(mixed $message): void
    {
        if (\is_array($message) && ($message[0] ?? null) === 'message' && \is_string($message[2] ?? null)) {
            $parsed = Codec::message($message[2]);
            if ($parsed !== null) {
                ($this->onMessage)($parsed);
            }
        } elseif ($message === null && $this->connection !== null) {
            $this->connection = null;
            $this->retryIn($this->backoff->after(++$this->failures));
        }
    }

    private function attemptEnded(?BrokerRefusedException $refused): void
    {
        $this->refused = $refused;
        $refused === null ? $this->engine->removeUnverified($this) : $this->engine->addUnverified($this);
        $firstAttempt = $this->firstAttempt;
        $this->firstAttempt = null;
        $firstAttempt?->complete();
    }

    private function retryIn(float $seconds): void
    {
        $this->timer = WeakTimer::after(
            $seconds,
            $this,
            static fn(self $mailbox) => EventLoop::queue($mailbox->subscribe(...)),
        );
    }

    private function ping(): void
    {
        if ($this->process !== getmypid()) {
            EventLoop::cancel($this->pinger);

            return;
        }
        try {
            $this->connection?->call('PING', []);
        } catch (BrokerException|EngineError) {
            // The link is broken then, and reopened.
        }
    }
}
