<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Revolt\EventLoop;

/**
 * Decides when a launcher that gives no sign of life is dead.
 *
 * Counts checks instead of time: a pause of this process or of the whole system counts as one check at most. Before
 * each check the caller reads what the launcher has sent.
 */
final class Heartbeat
{
    /** Seconds between two checks. */
    private const CHECK_INTERVAL = 1.0;

    /** Unanswered checks after which a launcher counts as dead: one that is stopped (SIGSTOP), and any other. */
    private const STOPPED_CHECKS = 3;
    private const SILENT_CHECKS = 30;

    private readonly string $timer;
    private bool $isActive = false;

    /** Whether something was sent since the last request for a sign of life. */
    private bool $hasSent = false;

    /** Whether the launcher has work, so that every check requests a sign of life. */
    private bool $isBusy = false;

    private bool $isWaiting = false;
    private int $unanswered = 0;

    /** @param \Closure(): void $check called for each check; must not refer to the launcher */
    public function __construct(\Closure $check)
    {
        $this->timer = EventLoop::disable(EventLoop::unreference(EventLoop::repeat(self::CHECK_INTERVAL, $check)));
    }

    /** Sets whether the launcher has work, so that checks go on. */
    public function setBusy(bool $isBusy): void
    {
        $this->isBusy = $isBusy;
        if ($isBusy) {
            $this->start();
        }
    }

    /** Starts checks until the next sign of life, because something was sent. */
    public function noteSent(): void
    {
        $this->hasSent = true;
        $this->start();
    }

    public function noteAnswer(): void
    {
        $this->isWaiting = false;
        $this->unanswered = 0;
    }

    /**
     * Counts a check.
     *
     * @param \Closure(): string $state returns the launcher's state, as one letter of proc(5)
     *
     * @return string|null why the launcher counts as dead; null while it counts as alive
     */
    public function check(\Closure $state): ?string
    {
        if (!$this->isWaiting || ++$this->unanswered < self::STOPPED_CHECKS) {
            return null;
        }
        if ($state() === 'T') {
            return "it was stopped and did not answer for {$this->unanswered} s, so it was killed";
        }

        return $this->unanswered < self::SILENT_CHECKS
            ? null
            : "it did not answer for {$this->unanswered} s, so it was killed";
    }

    /** Whether to request a sign of life now. Checks pause when nothing is expected. */
    public function mustPing(): bool
    {
        if ($this->isWaiting) {
            return false;
        }
        $this->isWaiting = $this->isBusy || $this->hasSent;
        $this->hasSent = false;
        if (!$this->isWaiting) {
            $this->isActive = false;
            EventLoop::disable($this->timer);
        }

        return $this->isWaiting;
    }

    public function stop(): void
    {
        $this->isActive = true; // so that nothing starts it again
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
