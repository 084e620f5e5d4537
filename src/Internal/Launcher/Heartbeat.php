<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Revolt\EventLoop;

/**
 * Decides when a launcher that does not answer pings counts as dead.
 * This class counts unanswered checks instead of time. So a pause of this process or of the whole system counts only as
 * one check. Before each check, the caller must read what the launcher has sent.
 */
final class Heartbeat
{
    /** Seconds between two checks. */
    private const CHECK_INTERVAL = 1.0;

    /** Numbers of unanswered checks after which a launcher counts as dead: a stopped one (SIGSTOP), and any other. */
    private const STOPPED_CHECKS = 3;
    private const SILENT_CHECKS = 30;

    private readonly string $timerId;

    private bool $isActive = false;

    /** Whether something was sent since the last ping. */
    private bool $hasSent = false;

    /** Whether the launcher has work, so that pings are sent all the time. */
    private bool $isBusy = false;

    /** Whether the last ping was not answered. */
    private bool $isWaiting = false;

    /** Number of checks since the unanswered ping. */
    private int $unanswered = 0;

    /** Calls {@see LauncherProcess::check()} once per second while the launcher has to answer. */
    public function __construct(LauncherProcess $launcher)
    {
        $weak = \WeakReference::create($launcher);
        $check = static function () use ($weak): void {
            $weak->get()?->check();
        };
        $this->timerId = EventLoop::disable(EventLoop::unreference(EventLoop::repeat(self::CHECK_INTERVAL, $check)));
    }

    /** Sets whether the launcher has work. Checks continue as long as it has. */
    public function setBusy(bool $isBusy): void
    {
        $this->isBusy = $isBusy;
        if ($isBusy) {
            $this->start();
        }
    }

    /** Starts checks until the next answer, because something was sent. */
    public function noteSent(): void
    {
        $this->hasSent = true;
        $this->start();
    }

    /** Records that bytes of the launcher have arrived. */
    public function noteAnswer(): void
    {
        $this->isWaiting = false;
        $this->unanswered = 0;
    }

    /**
     * Counts a check.
     *
     * @return string|null why the launcher counts as dead; null while it counts as alive
     */
    public function check(LauncherChild $child): ?string
    {
        if (!$this->isWaiting || ++$this->unanswered < self::STOPPED_CHECKS) {
            return null;
        }
        if ($child->state() === 'T') {
            return "it was stopped and did not answer for {$this->unanswered} s, so it was killed";
        }

        return $this->unanswered < self::SILENT_CHECKS
            ? null
            : "it did not answer for {$this->unanswered} s, so it was killed";
    }

    /** Returns whether a ping is due, and then expects an answer to it. Stops the checks when none is needed. */
    public function startPingIfDue(): bool
    {
        if ($this->isWaiting) {
            return false;
        }
        $this->isWaiting = $this->isBusy || $this->hasSent;
        $this->hasSent = false;
        if (!$this->isWaiting) {
            $this->isActive = false;
            EventLoop::disable($this->timerId);
        }

        return $this->isWaiting;
    }

    /** Ends the checks for good. */
    public function stop(): void
    {
        $this->isActive = true; // so that start() does nothing
        EventLoop::cancel($this->timerId);
    }

    private function start(): void
    {
        if (!$this->isActive) {
            $this->isActive = true;
            EventLoop::enable($this->timerId);
        }
    }
}
