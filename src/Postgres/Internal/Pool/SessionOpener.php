<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\Sessions;

use function Amp\async;

/** Opens sessions for a pool, several at a time. After a failure it pauses before the next attempt. */
final class SessionOpener
{
    /** Maximum of sessions opened at once: many TLS handshakes in one turn of the loop would delay everything else. */
    private const MAX_CONCURRENT_OPENS = 8;

    /** Seconds of the pause after a failure. */
    private const RETRY_PAUSE_SECONDS = 0.2;

    public int $underWay = 0;

    /** Failure of the last attempt; null when it succeeded. */
    public ?\Throwable $failure = null;

    private ?string $pause = null;

    private readonly DeferredCancellation $closing;

    private bool $closed = false;

    /**
     * @param \Closure(Session): void    $opened
     * @param \Closure(\Throwable): void $failed
     * @param \Closure(): void           $again  called after a pause, when sessions may be opened again
     */
    public function __construct(
        private readonly Sessions $sessions,
        private readonly \Closure $opened,
        private readonly \Closure $failed,
        private readonly \Closure $again,
    ) {
        $this->closing = new DeferredCancellation();
    }

    /** Starts opening up to `$wanted` sessions, within the maximum that may be under way. */
    public function start(int $wanted): void
    {
        if ($this->closed || $this->pause !== null) {
            return;
        }
        // After a failure, a single attempt shows whether the server accepts connections again.
        $most = $this->failure === null ? self::MAX_CONCURRENT_OPENS : 1;
        for ($wanted = min($wanted, $most - $this->underWay); $wanted > 0; --$wanted) {
            ++$this->underWay;
            async($this->open(...))->ignore();
        }
    }

    /** Sets whether a fiber is waiting for a session. If so, the event loop keeps running until the pause is over. */
    public function hold(bool $on): void
    {
        if ($this->pause !== null) {
            $on ? EventLoop::reference($this->pause) : EventLoop::unreference($this->pause);
        }
    }

    public function close(): void
    {
        $this->closed = true;
        $this->closing->cancel();
        if ($this->pause !== null) {
            EventLoop::cancel($this->pause);
        }
    }

    private function open(): void
    {
        try {
            $session = $this->sessions->open($this->closing->getCancellation());
            --$this->underWay;
        } catch (\Throwable $failure) {
            --$this->underWay;
            if (!$this->closed) {
                $this->failure = $failure;
                $this->pause ??= WeakTimer::after(self::RETRY_PAUSE_SECONDS, $this, static function (self $self): void {
                    $self->pause = null;
                    ($self->again)();
                });
                ($this->failed)($failure);
            }

            return;
        }
        $this->failure = null;
        $this->closed ? $session->close() : ($this->opened)($session);
    }
}
