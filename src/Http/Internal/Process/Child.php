<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

final class Child
{
    /** When it began to serve, by hrtime(); null before. */
    public ?int $readyAt = null;

    /** Deadline for the start, by hrtime(). The process is killed after it. */
    public int $startDeadline = \PHP_INT_MAX;

    /** Whether the supervisor has sent it a message to end. */
    public bool $stopRequested = false;

    /** Seconds in which it ends after {@see Message::Stop} and {@see Message::HandOver}; INF for no limit. */
    public float $stopTimeout = \INF;
    public float $handOverTimeout = \INF;

    /** Deadline for its end, by hrtime(). The process is killed after it. */
    public int $endDeadline = \PHP_INT_MAX;

    /** When another process takes its place although it still answers requests, by hrtime(). */
    public int $replaceAt = \PHP_INT_MAX;

    /** When it is killed, by hrtime(), after the signal to report its position and end; null before that. */
    public ?int $killAt = null;

    /** Position when it got that signal: file, line and request; '' when it did not answer. */
    public string $position = '';

    /** Why it should be replaced; '' if it need not be. */
    public string $replacementReason = '';

    /** Pings since its last answer. */
    public int $unanswered = 0;

    /** A sentence about what is wrong with the application, as the process reported it. */
    public ?string $startFailure = null;

    /** How it ended otherwise, if known: "exited with 1". */
    public string $endReason = '';

    /** Whether it has answered all requests that had arrived. */
    public bool $answeredAll = false;

    /** Counters in its last report, {@see \Spindle\Http\HttpServerStatistics::toJson()}. */
    public ?string $lastStatistics = null;

    /** Whether further messages may arrive. */
    public bool $connected = true;

    public function __construct(
        public readonly Slot $slot,
        public readonly int $pid,
        public readonly Channel $channel,
    ) {}

    public function __toString(): string
    {
        return "{$this->slot->role->name} (pid {$this->pid})";
    }

    /** Returns its position when it had to end at once, in brackets; '' when it ended otherwise. */
    public function positionClause(): string
    {
        return match (true) {
            $this->killAt === null => '',
            $this->position === '' => ' (its position is unknown: the process was stopped,'
                . ' or waits in a PHP function, for example for a lock or a database)',
            default => " ({$this->position})",
        };
    }

    public function endDescription(): string
    {
        return $this->startFailure === null
            ? "{$this} {$this->endReason}"
            : "{$this} did not start: {$this->startFailure}";
    }
}
