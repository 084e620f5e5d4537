<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionFactory;

use function Amp\async;

/** Opens sessions for a pool, several concurrently. After a failure, the opener pauses before the next attempt. */
final class SessionOpener
{
    /** Maximum number of concurrent attempts. More concurrent TLS handshakes would delay other fibers noticeably. */
    private const MAX_CONCURRENT_OPENS = 8;

    /** Seconds of the pause after a failed attempt. */
    private const RETRY_PAUSE_SECONDS = 0.2;

    public int $openingCount = 0;

    /** Failure of the last finished attempt; null if it succeeded, or if none has finished. */
    public ?\Throwable $failure = null;

    private ?string $pauseTimer = null;

    private readonly DeferredCancellation $closing;

    private bool $closed = false;

    /**
     * @param \Closure(Session): void $onOpened
     * @param \Closure(\Throwable): void $onFailed
     * @param \Closure(): void $onPauseOver called when sessions may be opened again after a failure
     */
    public function __construct(
        private readonly SessionFactory $sessionFactory,
        private readonly \Closure $onOpened,
        private readonly \Closure $onFailed,
        private readonly \Closure $onPauseOver,
    ) {
        $this->closing = new DeferredCancellation();
    }

    /** Starts to open up to `$wanted` sessions within the limit of concurrent attempts. Does nothing during a pause. */
    public function start(int $wanted): void
    {
        if ($this->closed || $this->pauseTimer !== null) {
            return;
        }
        // After a failure, a single attempt shows whether the server accepts connections again.
        $limit = $this->failure === null ? self::MAX_CONCURRENT_OPENS : 1;
        for ($wanted = min($wanted, $limit - $this->openingCount); $wanted > 0; --$wanted) {
            ++$this->openingCount;
            async($this->open(...))->ignore();
        }
    }

    /** Sets whether a pause keeps the event loop running, because a fiber waits for a session. */
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
            --$this->openingCount;
        } catch (\Throwable $failure) {
            --$this->openingCount;
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
