<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\Sessions;

use function Amp\async;

/** Opens a pool's sessions, side by side. After one that could not be opened it waits before it tries again. */
final class Openings
{
    /** At once: many handshakes with TLS in the same turn of the loop would hold up everything else. */
    private const SIDE_BY_SIDE = 8;

    /** Seconds after one that failed. */
    private const PAUSE = 0.2;

    public int $underWay = 0;

    /** Why the last one could not be opened; null when it could. */
    public ?\Throwable $failure = null;

    private ?string $pause = null;

    private readonly DeferredCancellation $closing;

    private bool $closed = false;

    /**
     * @param \Closure(Session): void    $opened
     * @param \Closure(\Throwable): void $failed
     * @param \Closure(): void           $again  called when it may be tried again
     */
    public function __construct(
        private readonly Sessions $sessions,
        private readonly \Closure $opened,
        private readonly \Closure $failed,
        private readonly \Closure $again,
    ) {
        $this->closing = new DeferredCancellation();
    }

    /** Starts as many as are wanted beside those that are under way. */
    public function start(int $wanted): void
    {
        if ($this->closed || $this->pause !== null) {
            return;
        }
        // One shows whether the server takes connections again.
        $most = $this->failure === null ? self::SIDE_BY_SIDE : 1;
        for ($wanted = min($wanted, $most - $this->underWay); $wanted > 0; --$wanted) {
            ++$this->underWay;
            async($this->open(...))->ignore();
        }
    }

    /** Whether somebody waits for one: then the loop runs on until it is tried again. */
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
                $this->pause ??= WeakTimer::after(self::PAUSE, $this, static function (self $self): void {
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
