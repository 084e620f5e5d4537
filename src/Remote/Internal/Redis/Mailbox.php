<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Amp\DeferredFuture;
use Revolt\EventLoop;
use Spindle\Internal\Backoff;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\Letter;

/** A subscription to a channel, which reconnects until it is closed. */
final class Mailbox
{
    /** Seconds between two checks of the connection. */
    private const PING_INTERVAL = 5.0;

    /** Seconds until an engine that refuses is tried again. */
    private const REFUSED_PAUSE_SECONDS = 30.0;

    private ?RedisConnection $link = null;
    private bool $closed = false;
    private int $failures = 0;

    /** Timer of the next attempt. */
    private ?string $timer = null;

    private readonly int $process;
    private readonly Backoff $backoff;
    private readonly string $pinger;

    /** @var DeferredFuture<null>|null until the first attempt has ended */
    private ?DeferredFuture $first;

    private ?BrokerRefusedException $refused = null;

    /**
     * @param \Closure(Letter): void $letter
     * @param \Closure(): void       $open
     */
    public function __construct(
        private readonly Engine $engine,
        private readonly string $mailbox,
        private readonly \Closure $letter,
        private readonly \Closure $open,
    ) {
        $this->process = (int) getmypid();
        $this->backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $this->first = new DeferredFuture();
        $this->engine->doubt($this);
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
        $this->first?->getFuture()->await();
        if ($this->refused !== null) {
            throw $this->refused;
        }
    }

    public function close(): void
    {
        $this->closed = true;
        $this->tried(null);
        EventLoop::cancel($this->pinger);
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
        $link = $this->link;
        $this->link = null;
        $link?->close('the mailbox was closed');
    }

    private function subscribe(): void
    {
        if ($this->closed || $this->process !== getmypid()) {
            return; // or this is a fork, and the mailbox is the other process's
        }
        try {
            $link = $this->engine->open();
            $link->call('SUBSCRIBE', ["spindle:to:{$this->mailbox}"]);
        } catch (BrokerRefusedException $refused) {
            $this->tried($refused);
            $this->later(self::REFUSED_PAUSE_SECONDS);

            return;
        } catch (BrokerException|EngineError) {
            $this->tried(null); // other requests report the reason
            $this->later($this->backoff->after(++$this->failures));

            return;
        }
        if ($this->isClosed()) { // closed while connecting
            $link->close('the mailbox was closed');

            return;
        }
        $this->link = $link;
        $this->failures = 0;
        $this->tried(null);
        $link->listen($this->heard(...));
        ($this->open)();
    }

    private function isClosed(): bool
    {
        return $this->closed;
    }

    private function heard(mixed $message): void
    {
        if (\is_array($message) && ($message[0] ?? null) === 'message' && \is_string($message[2] ?? null)) {
            $letter = Codec::letter($message[2]);
            if ($letter !== null) {
                ($this->letter)($letter);
            }
        } elseif ($message === null && $this->link !== null) {
            $this->link = null;
            $this->later($this->backoff->after(++$this->failures));
        }
    }

    private function tried(?BrokerRefusedException $refused): void
    {
        $this->refused = $refused;
        $refused === null ? $this->engine->trust($this) : $this->engine->doubt($this);
        $first = $this->first;
        $this->first = null;
        $first?->complete();
    }

    private function later(float $seconds): void
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
            $this->link?->call('PING', []);
        } catch (BrokerException|EngineError) {
            // The link is broken then, and reopened.
        }
    }
}
