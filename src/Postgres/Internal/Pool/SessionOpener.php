<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionFactory;

use function Amp\async;

/** Opens sessions for a pool, several at a time. After a failure it pauses before the next attempt. */
final class SessionOpener
{
    /** Maximum of sessions opened at once: many TLS handshakes in one turn of the loop would delay everything else. */
    private const MAX_CONCURRENT_OPENS = 8;

    /** Seconds of the pause after a failure. */
    private const RETRY_PAUSE_SECONDS = 0.2;

    public int $opening = 0;

    /** Failure of the last attempt; null when it succeeded. */
    public ?\Throwable $failure = null;

    private ?string $pauseTimer = null;

    private readonly DeferredCancellation $closing;

    private bool $closed = false;

    /**
     * @param \Closure(Session): void    $onOpened
     * @param \Closure(\Throwable): void $onFailed
     * @param \Closure(): void           $onPauseOver  called after a pause, when sessions may be opened again
     */
    public function __construct(
        private readonly SessionFactory $sessionFactory,
        private readonly \Closure $onOpened,
        private readonly \Closure $onFailed,
        private readonly \Closure $onPauseOver,
    ) {
        $this->closing = new DeferredCancellation();
    }

    /** Starts opening up to `$wanted` sessions, within the maximum that may be under way. */
    public function start(int $wanted): void
    {
        if ($this->closed || $this->pauseTimer !== null) {
            return;
        }
        // After a failure, a single attempt shows whether the server accepts connections again.
        $limit = $this->failure === null ? self::MAX_CONCURRENT_OPENS : 1;
        for ($wanted = min($wanted, $limit - $this->opening); $wanted > 0; --$wanted) {
            ++$this->opening;
            async($this->open(...))->ignore();
        }
    }

    /** Sets whether a fiber is waiting for a session. If so, the event loop keeps running until the pause is over. */
    public function keepLoopRunning(bool $on): void
    {
        if ($this->pauseTimer !== null) {
            $on ? EventLoop::reference($this->pauseTimer) : EventLoop::unreference($this->pauseTimer);
        }
    }

    public function close(): void
    {
        $this->closed = true;
        $this->closing->cancel();
        if ($this->pauseTimer !== null) {
            EventLoop::cancel($this->pauseTimer);
        }
    }

    private function open(): void
    {
        try {
            $session = $this->sessionFactory->open($this->closing->getCancellation());
            --$this->opening;
        } catch (\Throwable $failure) {
            --$this->opening;
            if (!$this->closed) {
                $this->failure = $failure;
                $this->pauseTimer ??= WeakTimer::after(
                    self::RETRY_PAUSE_SECONDS,
                    $this,
                    static function (self $self): void {
                        $self->pauseTimer = null;
                        ($self->onPauseOver)();
                    },
                );
                ($this->onFailed)($failure);
            }

            return;
        }
        $this->failure = null;
        $this->closed ? $session->close() : ($this->onOpened)($session);
    }
}
