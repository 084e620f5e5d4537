<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Internal\Launcher\Process\Signals;

/** A running process that the supervisor has forked, with its state and deadlines. All times are by hrtime(). */
final class Child
{
    public const MAX_UNANSWERED_PINGS = 4;

    /** Nanoseconds from the signal that asks a process for its position in the code until the process is killed. */
    private const REPORT_NANOSECONDS = 250_000_000;

    private const PROBE_NANOSECONDS = 100_000_000;

    /** Nanoseconds for which a ping of {@see probe()} stays unanswered before the process gets the TRACE_SIGNAL. */
    private const TRACE_NANOSECONDS = 500_000_000;

    /** Seconds from the end of a process's stop or handover timeout until the supervisor kills the process. */
    private const GRACE_SECONDS = 1.0;

    /** Part of the reasons for a kill. Replaced if the process answers that a function of BackgroundWork blocks it. */
    private const CULPRIT = ': a handler';

    /** Time at which the process began to serve; null while it does not serve yet. */
    public ?int $readyAt = null;

    /** Whether the supervisor has asked the process to end, or has killed it during its start. */
    public bool $stopRequested = false;

    /** Time at which a replacement starts, even if this process still answers its last requests. PHP_INT_MAX: never. */
    public int $replaceAt = \PHP_INT_MAX;

    /** Answer to {@see killWithReport()}: file, line and request of the running code; '' without an answer. */
    private string $position = '';

    /** Why the process has asked for its replacement; '' if it has not asked, or the replacement is queued. */
    public string $replacementReason = '';

    private int $unansweredPings = 0;

    private int $probeAt = \PHP_INT_MAX;

    /** Time of the unanswered ping of {@see probe()}; null if there is none. */
    private ?int $probedAt = null;

    /** Whether the process got the TRACE_SIGNAL after the ping at {@see $probedAt}. */
    private bool $traced = false;

    /** Error that prevented the start of the application, as a sentence; null if the process reported none. */
    public ?string $startFailure = null;

    /** How the process ended or why it ends, as a clause such as "exited with 1"; '' if unknown or ended on request. */
    public string $endReason = '';

    public bool $answeredAll = false;

    /** Last report of the process, {@see \Spindle\Http\HttpServerStatistics::toJson()}; null before the first one. */
    public ?string $lastStatistics = null;

    public bool $connected = true;

    /** Maximum seconds from {@see Message::Stop} until the process ends; INF for no limit. */
    private float $stopTimeout = \INF;

    /** Maximum seconds from {@see Message::HandOver} until the process ends; INF for no limit. */
    private float $handOverTimeout = \INF;

    private int $startDeadline = \PHP_INT_MAX;

    private int $endDeadline = \PHP_INT_MAX;

    /** Time at which the process is killed after {@see killWithReport()}; null before that call. */
    private ?int $killAt = null;

    public function __construct(
        public readonly Slot $slot,
        public readonly int $pid,
        public readonly Channel $channel,
    ) {}

    public function __toString(): string
    {
        return "{$this->slot->role->name} (pid {$this->pid})";
    }

    public function startWithin(float $seconds): void
    {
        $this->startDeadline = self::deadline($seconds);
    }

    /** @param string $timeouts payload of {@see Message::Ready} */
    public function handleReady(string $timeouts): void
    {
        /** @var array{1: float, 2: float} $seconds */
        $seconds = unpack('e2', $timeouts);
        [1 => $this->stopTimeout, 2 => $this->handOverTimeout] = $seconds;
        if (!$this->stopRequested) { // end() may have killed the process before this message arrived
            $this->readyAt = (int) hrtime(true);
            $this->startDeadline = \PHP_INT_MAX;
            $this->probeAt = $this->slot->role->tracesBlocks ? $this->readyAt : \PHP_INT_MAX;
        }
    }

    /** Sends {@see Message::Stop} or {@see Message::HandOver}. If the process does not serve yet, kills it instead. */
    public function end(Message $how, string $payload = ''): void
    {
        $this->stopRequested = true;
        if ($this->readyAt === null) {
            $this->kill();

            return;
        }
        $this->channel->send($how, 0, $payload);
        $this->endWithin($how === Message::Stop ? $this->stopTimeout : $this->handOverTimeout);
        Signals::send($this->pid, \SIGCONT); // a suspended process (SIGSTOP) could not read the message
    }

    /** Handles the report that the process ends. The process has as much time to end as after {@see Message::Stop}. */
    public function handleEnding(string $why): void
    {
        $this->endReason = $why;
        $this->endWithin($this->stopTimeout);
    }

    public function handlePosition(string $position, bool $isInBackgroundWork): void
    {
        $this->position = $position;
        if ($isInBackgroundWork) {
            $this->endReason = str_replace(self::CULPRIT, ': a function of BackgroundWork', $this->endReason);
        }
    }

    /** @param string $why becomes {@see $endReason}, unless there is an earlier reason */
    public function kill(string $why = ''): void
    {
        $this->endReason = $this->endReason === '' ? $why : $this->endReason;
        Signals::send($this->pid, \SIGKILL);
    }

    /**
     * Pings the process. Kills the process after too many unanswered pings. Pings are counted instead of seconds,
     * because seconds also pass while the supervisor is suspended.
     */
    public function ping(float $blockTimeout): void
    {
        if ($this->readyAt === null) {
            return;
        }
        if ($this->unansweredPings++ < self::MAX_UNANSWERED_PINGS) {
            $this->channel->send(Message::Ping);
        } else {
            $this->killWithReport(
                "was killed, because its event loop was blocked for {$blockTimeout} s"
                    . self::CULPRIT . ' does not return',
            );
        }
    }

    public function handlePong(): void
    {
        [$this->unansweredPings, $this->probedAt, $this->traced] = [0, null, false];
    }

    /** Pings the process. If a ping stays unanswered, sends a signal that asks what blocks the event loop. */
    private function probe(int $now): void
    {
        $this->probeAt = $now + self::PROBE_NANOSECONDS;
        if ($this->probedAt === null) {
            $this->probedAt = $now;
            $this->channel->send(Message::Ping);
        } elseif (!$this->traced && $now - $this->probedAt >= self::TRACE_NANOSECONDS) {
            $this->traced = true;
            Signals::send($this->pid, ServingProcess::TRACE_SIGNAL);
        }
    }

    /** Kills the process if it has missed the deadline of its start or end. Probes the process if a probe is due. */
    public function checkDeadlines(int $now, float $startTimeout): void
    {
        if ($this->probeAt <= $now) {
            $this->probe($now);
        }
        if ($this->startDeadline <= $now) {
            $this->startDeadline = \PHP_INT_MAX;
            $this->killWithReport("did not start within {$startTimeout} s, the limit of --start-timeout");
        }
        if ($this->endDeadline <= $now) {
            $this->endDeadline = \PHP_INT_MAX;
            $this->killWithReport(
                'was killed, because it did not end in time' . self::CULPRIT . ' blocks its event loop,'
                    . ' or the process was suspended (SIGSTOP)',
            );
        }
        if ($this->killAt !== null && $this->killAt <= $now) {
            $this->killAt = \PHP_INT_MAX;
            $this->kill();
        }
    }

    public function nextDeadline(): int
    {
        return min(
            $this->startDeadline,
            $this->endDeadline,
            $this->replaceAt,
            $this->probeAt,
            $this->killAt ?? \PHP_INT_MAX,
        );
    }

    /**
     * Sends a signal that asks for the position in the code. {@see checkDeadlines()} kills the process soon after.
     * The process must not continue after the signal. The signal interrupts system calls of handlers, and a handler
     * could mistake an interrupted call for a successful one.
     */
    private function killWithReport(string $why): void
    {
        if ($this->killAt === null) {
            $this->endReason = $this->endReason === '' ? $why : $this->endReason;
            $this->killAt = (int) hrtime(true) + self::REPORT_NANOSECONDS;
            Signals::send($this->pid, ServingProcess::REPORT_SIGNAL);
        }
    }

    /** Returns the position in brackets, or why the position is unknown; '' if the process was not asked for it. */
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

    private function endWithin(float $timeout): void
    {
        $this->endDeadline = min($this->endDeadline, self::deadline($timeout + self::GRACE_SECONDS));
    }

    private static function deadline(float $seconds): int
    {
        return (int) hrtime(true) + (int) min($seconds * 1e9, 1e18);
    }
}
