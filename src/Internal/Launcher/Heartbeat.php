<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Revolt\EventLoop;

/**
 * Decides when a launcher that gives no sign of life is dead.
 *
 * The heartbeat counts checks instead of time. While this process is blocked or stopped, or the whole system is
 * suspended, no check happens, so such a pause counts as one check at most. Before each check the caller reads what the
 * launcher has sent.
 */
final class Heartbeat
{
    /** Between two checks, in seconds. */
    private const INTERVAL = 1.0;

    /** Unanswered checks after which a launcher is dead: one that is stopped (SIGSTOP), and any other. */
    private const STOPPED_CHECKS = 3;
    private const SILENT_CHECKS = 30;

    private readonly string $timer;
    private bool $isActive = false;

    /** Whether something was sent since the last sign of life was asked for. */
    private bool $isExpecting = false;

    /** Whether the launcher has work, so that every check asks it for a sign of life. */
    private bool $isKept = false;

    private bool $isAsked = false;
    private int $unanswered = 0;

    /** @param \Closure(): void $check called for each check; it must not hold the launcher */
    public function __construct(\Closure $check)
    {
        $this->timer = EventLoop::disable(EventLoop::unreference(EventLoop::repeat(self::INTERVAL, $check)));
    }

    /** Checks as long as the launcher has work. */
    public function keep(bool $keep): void
    {
        $this->isKept = $keep;
        if ($keep) {
            $this->start();
        }
    }

    /** Checks at least until the next sign of life: something was sent. */
    public function expect(): void
    {
        $this->isExpecting = true;
        $this->start();
    }

    public function heard(): void
    {
        $this->isAsked = false;
        $this->unanswered = 0;
    }

    /**
     * Counts a check.
     *
     * @param \Closure(): string $state the launcher's state, as one letter of proc(5)
     *
     * @return string|null how the launcher died; null while it counts as alive
     */
    public function check(\Closure $state): ?string
    {
        if (!$this->isAsked || ++$this->unanswered < self::STOPPED_CHECKS) {
            return null;
        }
        if ($state() === 'T') {
            return "it was stopped and did not answer for {$this->unanswered} s, so it was killed";
        }

        return $this->unanswered < self::SILENT_CHECKS
            ? null
            : "it did not answer for {$this->unanswered} s, so it was killed";
    }

    /** Returns whether to ask for a sign of life now. When there is nothing to expect, checks pause. */
    public function asks(): bool
    {
        if ($this->isAsked) {
            return false;
        }
        $this->isAsked = $this->isKept || $this->isExpecting;
        $this->isExpecting = false;
        if (!$this->isAsked) {
            $this->isActive = false;
            EventLoop::disable($this->timer);
        }

        return $this->isAsked;
    }

    public function stop(): void
    {
        $this->isActive = true; // nothing starts it again
        EventLoop::cancel($this->timer);
    }

    private function start(): void
    {
        if (!$this->isActive) {
            $this->isActive = true;
            EventLoop::enable($this->timer);
        }
    }
}
