<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Revolt\EventLoop;
use Spindle\Internal\Backoff;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Letter;

/** A channel that is listened to, again and again until it is closed. */
final class Mailbox
{
    /** Seconds between two questions whether the engine is still there. */
    private const PING = 5.0;

    private ?Link $link = null;
    private bool $closed = false;
    private int $failures = 0;
    private readonly Backoff $backoff;
    private readonly string $pinger;

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
        $this->backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $this->pinger = EventLoop::unreference(EventLoop::repeat(self::PING, $this->ping(...)));
        EventLoop::queue($this->subscribe(...));
    }

    public function close(): void
    {
        $this->closed = true;
        EventLoop::cancel($this->pinger);
        $link = $this->link;
        $this->link = null;
        $link?->close('the mailbox was closed');
    }

    private function subscribe(): void
    {
        if ($this->closed) {
            return;
        }
        try {
            $link = $this->engine->open();
            $link->call('SUBSCRIBE', ["spindle:to:{$this->mailbox}"]);
        } catch (BrokerUnavailableException) {
            $this->later(); // who asks for something else is told why

            return;
        } catch (BrokerException|EngineError $refused) {
            EventLoop::queue(static fn() => throw $refused); // to ask again does not help, and nobody else may be told

            return;
        }
        if ($this->isClosed()) { // meanwhile
            $link->close('the mailbox was closed');

            return;
        }
        $this->link = $link;
        $this->failures = 0;
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
            $this->later();
        }
    }

    private function later(): void
    {
        WeakTimer::after($this->backoff->after(++$this->failures), $this, static fn(self $mailbox) => EventLoop::queue($mailbox->subscribe(...)));
    }

    private function ping(): void
    {
        try {
            $this->link?->call('PING', []);
        } catch (BrokerException|EngineError) {
            // It is broken then, and made anew.
        }
    }
}
