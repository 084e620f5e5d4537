<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Revolt\EventLoop;
use Spindle\Internal\OwnLoop;

/**
 * Decides when a launcher that does not answer pings counts as dead.
 * While a ping is unanswered, this class counts its own checks instead of measuring time. So a pause of this process or
 * of the whole system adds only one check. Before each check, the caller must read what the launcher has sent.
 */
final class Heartbeat
{
    private const CHECK_INTERVAL = 1.0;

    /** A launcher that is stopped (SIGSTOP) counts as dead when this many checks after a ping found no answer. */
    private const STOPPED_CHECKS = 3;

    /** Any other launcher counts as dead when this many checks after a ping found no answer. */
    private const SILENT_CHECKS = 30;

    private readonly string $timerId;

    private bool $isActive = false;

    private bool $hasSent = false;

    /** Whether the launcher has work. Pings are sent while it has work. */
    private bool $isBusy = false;

    private bool $isWaiting = false;

    private int $checksWithoutAnswer = 0;

    private readonly OwnLoop $loop;

    /** Creates a timer that calls {@see LauncherProcess::check()} once per second. {@see start()} enables the timer. */
    public function __construct(LauncherProcess $launcher)
    {
        $this->loop = new OwnLoop();
        $weak = \WeakReference::create($launcher);
        $check = static fn() => $weak->get()?->check();
        $this->timerId = EventLoop::disable(EventLoop::unreference(EventLoop::repeat(self::CHECK_INTERVAL, $check)));
    }

    public function setBusy(bool $isBusy): void
    {
        $this->isBusy = $isBusy;
        if ($isBusy) {
            $this->start();
        }
    }

    /** Starts the checks, because something was sent to the launcher. {@see recordPingIfDue()} stops them. */
    public function noteSent(): void
    {
        $this->hasSent = true;
        $this->start();
    }

    /** Records that the launcher has sent bytes. Any bytes count as an answer. */
    public function noteAnswer(): void
    {
        $this->isWaiting = false;
        $this->checksWithoutAnswer = 0;
    }

    /**
     * Counts a check if the last ping was not answered.
     *
     * @return string|null why the launcher counts as dead; null while it counts as alive
     */
    public function check(LauncherChild $child): ?string
    {
        if (!$this->isWaiting || ++$this->checksWithoutAnswer < self::STOPPED_CHECKS) {
            return null;
        }
        if ($child->state() === 'T') {
            return "it was stopped and did not answer for {$this->checksWithoutAnswer} s, so it was killed";
        }

        return $this->checksWithoutAnswer < self::SILENT_CHECKS
            ? null
            : "it did not answer for {$this->checksWithoutAnswer} s, so it was killed";
    }

    /** Returns whether to send a ping, and records it. Stops the checks if no ping is due and none is unanswered. */
    public function recordPingIfDue(): bool
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

    public function stop(): void
    {
        $this->isActive = true; // so that start() does nothing
        $this->loop->cancel($this->timerId);
    }

    private function start(): void
    {
        if (!$this->isActive) {
            $this->isActive = true;
            EventLoop::enable($this->timerId);
        }
    }
}
