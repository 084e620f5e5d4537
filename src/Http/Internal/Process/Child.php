<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** A running process of the supervisor, with its state and deadlines. Times are by hrtime(). */
final class Child
{
    /** When the process began to serve; null before. */
    public ?int $readyAt = null;

    /** When the process is killed if it does not serve by then. */
    public int $startDeadline = \PHP_INT_MAX;

    /** Whether the supervisor has asked the process to end, or has killed it during its start. */
    public bool $stopRequested = false;

    /** Seconds in which the process ends after {@see Message::Stop} and {@see Message::HandOver}; INF for no limit. */
    public float $stopTimeout = \INF;
    public float $handOverTimeout = \INF;

    /** When the process is killed if it has not ended by then. */
    public int $endDeadline = \PHP_INT_MAX;

    /** When another process is started in its slot although this process still answers requests. */
    public int $replaceAt = \PHP_INT_MAX;

    /** When the process is killed after {@see ServingProcess::REPORT_SIGNAL}; null when it did not get that signal. */
    public ?int $killAt = null;

    /** Position in the code when the process got that signal: file, line and request; '' when it did not answer. */
    public string $position = '';

    /** Why the process should be replaced; '' if it should not be. */
    public string $replacementReason = '';

    /** Number of pings since the last answer to one. */
    public int $unansweredPings = 0;

    /** Error of the application that prevented the start, as a sentence; null if the process reported none. */
    public ?string $startFailure = null;

    /** How the process ended, or why it will end, as a clause: "exited with 1"; '' if that is unknown. */
    public string $endReason = '';

    /** Whether the process ended after it had answered all requests that had arrived. */
    public bool $answeredAll = false;

    /** Last report of the process, {@see \Spindle\Http\HttpServerStatistics::toJson()}; null before the first one. */
    public ?string $lastStatistics = null;

    /** Whether further messages of the process may arrive. */
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

    /** Returns the position in brackets if the process got {@see ServingProcess::REPORT_SIGNAL}; otherwise ''. */
    public function positionClause(): string
    {
        return match (true) {
            $this->killAt === null => '',
            $this->position === '' => ' (its position is unknown: the process was suspended (SIGSTOP),'
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
