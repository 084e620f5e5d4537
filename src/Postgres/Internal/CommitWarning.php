<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Clock;
use Spindle\Internal\WeakTimer;

/**
 * Reports a COMMIT that has waited for a minute. All COMMITs of a session share one timer, which stays set when the
 * answer arrives. So a short transaction neither sets nor cancels a timer.
 */
final class CommitWarning
{
    public const AFTER_SECONDS = 60;

    /** @var \WeakMap<Session, self>|null */
    private static ?\WeakMap $warnings = null;

    private ?string $timer = null;

    /** When the current COMMIT was sent, by {@see Clock}. */
    private float $since = 0.0;

    /** @var (\Closure(): void)|null reports the current COMMIT; null if there is none, or it was reported */
    private ?\Closure $report = null;

    private function __construct() {}

    public function __destruct()
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
    }

    public static function of(Session $session): self
    {
        self::$warnings ??= new \WeakMap();

        return self::$warnings[$session] ??= new self();
    }

    /** @param \Closure(): void $report called after a minute, unless {@see stop()} was called */
    public function start(\Closure $report): void
    {
        $this->report = $report;
        $this->since = Clock::now();
        $this->timer ??= $this->startTimer(self::AFTER_SECONDS);
    }

    public function stop(): void
    {
        $this->report = null;
    }

    private function startTimer(float $seconds): string
    {
        return WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->timer = null;
            if ($self->report === null) {
                return;
            }
            $left = $self->since + self::AFTER_SECONDS - Clock::now();
            if ($left > 0) {
                $self->timer = $self->startTimer($left);

                return;
            }
            $report = $self->report;
            $self->report = null;
            $report();
        });
    }
}
