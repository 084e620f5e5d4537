<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Internal\SessionFactory;

use function Amp\async;

/** Opens sessions for a pool, several concurrently. After a failure, the opener pauses before the next attempt. */
final class SessionOpener
{
    /** Maximum number of concurrent attempts. More concurrent TLS handshakes would delay other fibers noticeably. */
    private const MAX_CONCURRENT_OPENS = 8;

    private const RETRY_PAUSE_SECONDS = 0.2;

    public int $openingCount = 0;

    /** Failure of the last finished attempt; null if that attempt succeeded, or no attempt has finished. */
    public ?\Throwable $failure = null;

    private ?string $pauseTimer = null;

    private readonly OwnLoop $loop;

    private DeferredCancellation $cancellation;

    /**
     * @param \Closure(PipelinedSession): void $onOpened
     * @param \Closure(\Throwable): void $onFailed
     * @param \Closure(): void $onReady called when sessions may be opened again: at the end of the pause
     *     after a failure, and when a cancelled attempt has ended
     */
    public function __construct(
        private readonly SessionFactory $sessionFactory,
        private readonly \Closure $onOpened,
        private readonly \Closure $onFailed,
        private readonly \Closure $onReady,
    ) {
        $this->cancellation = new DeferredCancellation();
        $this->loop = new OwnLoop();
    }

    /** Starts to open up to `$wanted` sessions within the limit of concurrent attempts. Does nothing during a pause. */
    public function start(int $wanted): void
    {
        if ($this->pauseTimer !== null) {
            return;
        }
        // After a failure, a single attempt shows whether the server accepts connections again.
        $limit = $this->failure === null ? self::MAX_CONCURRENT_OPENS : 1;
        for ($wanted = min($wanted, $limit - $this->openingCount); $wanted > 0; --$wanted) {
            ++$this->openingCount;
            async($this->open(...), $this->cancellation->getCancellation())->ignore();
        }
    }

    /** Sets whether a pause keeps the event loop running. This is necessary while a fiber waits for a session. */
    public function keepLoopRunning(bool $on): void
    {
        if ($this->pauseTimer !== null) {
            $on ? EventLoop::reference($this->pauseTimer) : EventLoop::unreference($this->pauseTimer);
        }
    }

    public function cancel(): void
    {
        if ($this->openingCount > 0) {
            $this->cancellation->cancel();
            $this->cancellation = new DeferredCancellation();
        }
        $this->loop->cancel($this->pauseTimer);
        $this->pauseTimer = null;
    }

    private function open(Cancellation $cancellation): void
    {
        $outcome = $this->attempt($cancellation);
        --$this->openingCount;
        if ($cancellation->isRequested()) {
            if ($outcome instanceof PipelinedSession) {
                $outcome->close();
            }
            ($this->onReady)();
        } elseif ($outcome instanceof PipelinedSession) {
            $this->failure = null;
            ($this->onOpened)($outcome);
        } else {
            $this->failure = $outcome;
            $this->pauseTimer ??= WeakTimer::after(
                self::RETRY_PAUSE_SECONDS,
                $this,
                static function (self $self): void {
                    $self->pauseTimer = null;
                    ($self->onReady)();
                },
            );
            ($this->onFailed)($outcome);
        }
    }

    private function attempt(Cancellation $cancellation): PipelinedSession|\Throwable
    {
        try {
            return $this->sessionFactory->open($cancellation);
        } catch (\Throwable $failure) {
            return $failure;
        }
    }
}
