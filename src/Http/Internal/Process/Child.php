<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** A process, as the supervisor knows it. */
final class Child
{
    /** When it began to serve, by hrtime(); null before. */
    public ?int $readyAt = null;

    /** When it is killed unless it serves by then, by hrtime(). */
    public int $startUntil = \PHP_INT_MAX;

    /** Whether it was told to end. */
    public bool $ending = false;

    /** Seconds in which it promises to end after {@see Message::Stop} and {@see Message::Leave}; INF for any time. */
    public float $stopTimeout = \INF;
    public float $leaveTimeout = \INF;

    /** When it is killed unless it has ended by then, by hrtime(). */
    public int $endUntil = \PHP_INT_MAX;

    /** When it is killed, by hrtime(), after the signal to say where it is and to end; null before that. */
    public ?int $killAt = null;

    /** Where it was then: file, line and request; '' when it did not say so. */
    public string $place = '';

    /** Why it is to be replaced when it can be. */
    public string $spent = '';

    /** Pings since it last answered one. */
    public int $unanswered = 0;

    /** What it says is wrong with the application; a sentence. */
    public ?string $failure = null;

    /** How it ends otherwise, as far as that is known: "exited with 1". */
    public string $end = '';

    /** Whether it has answered all that had come. */
    public bool $drained = false;

    /** What it had counted when it last said so, {@see \Spindle\Http\HttpServerStatistics::toJson()}. */
    public ?string $counted = null;

    /** Whether it may still say something. */
    public bool $connected = true;

    public function __construct(public readonly Slot $slot, public readonly int $pid, public readonly Channel $channel) {}

    public function __toString(): string
    {
        return "{$this->slot->duty->name} (pid {$this->pid})";
    }

    /** Where it was when it had to end at once, in brackets; '' when it ended otherwise. */
    public function lastPlace(): string
    {
        return match (true) {
            $this->killAt === null => '',
            $this->place === '' => ' (it did not say where: it was stopped, or waits in a function of PHP, as for a database, a lock or another process)',
            default => " ({$this->place})",
        };
    }

    /** How it ended. */
    public function story(): string
    {
        return $this->failure === null ? "{$this} {$this->end}" : "{$this} did not come up: {$this->failure}";
    }
}
