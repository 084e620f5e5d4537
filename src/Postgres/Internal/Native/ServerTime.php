<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

/**
 * Time that a server needs for the exchanges of a connection. It excludes the network's round trip, and the time in
 * which this process was busy.
 *
 * The time of a statement begins with the answer before it, or when it is sent if that is later.
 */
final class ServerTime
{
    /** Nanoseconds up to which a statement counts as short. */
    public const SHORT_NANOSECONDS = 5_000_000;

    /** Nanoseconds that it may take to wake first an idle server process, and then this process. */
    private const WAKEUP_NANOSECONDS = 500_000;

    /** Time of the last answer, and {@see BusyTime} at that time. */
    private int $answered = 0;
    private int $busy = 0;

    /** First write that is not answered completely: number behind its last exchange, time, {@see BusyTime} then. */
    private int $tail = 0;
    private int $sent = 0;
    private int $sentBusy = 0;

    /** @var list<array{int, int, int}> the same three values of later writes */
    private array $laterWrites = [];

    /** @param int $roundTrip nanoseconds of the shortest round trip so far; at least the network's own */
    public function __construct(public int $roundTrip) {}

    /**
     * Records that all exchanges before `$tail` were written.
     *
     * @param int $head number of the first exchange that is not answered
     * @param int $tail number behind the last exchange that was written
     * @param int $now  hrtime
     */
    public function sent(int $head, int $tail, int $now): void
    {
        $busy = BusyTime::until($now);
        if ($this->tail <= $head && $this->laterWrites === []) {
            [$this->tail, $this->sent, $this->sentBusy] = [$tail, $now, $busy];
        } elseif (
            $tail > ($this->laterWrites === [] ? $this->tail : $this->laterWrites[\count($this->laterWrites) - 1][0])
        ) {
            $this->laterWrites[] = [$tail, $now, $busy];
        }
    }

    /**
     * Records that exchanges were answered, all in one read.
     *
     * @param int $head  number of the first exchange that was answered
     * @param int $count number of answered exchanges, at least 1
     * @param int $now   hrtime
     *
     * @return int nanoseconds that the server took for each of them, on average
     */
    public function answered(int $head, int $count, int $now): int
    {
        while ($this->tail <= $head && $this->laterWrites !== []) {
            [$this->tail, $this->sent, $this->sentBusy] = array_shift($this->laterWrites);
        }
        $took = $now - $this->sent - $this->roundTrip;
        $busy = $this->sentBusy;
        if ($this->sent >= $this->answered) {
            // Nothing else was under way, so all of this time is one round trip.
            $this->roundTrip = min($this->roundTrip, $now - $this->sent);
            $took -= self::WAKEUP_NANOSECONDS;
        } elseif ($now - $this->answered < $took) {
            $took = $now - $this->answered;
            $busy = $this->busy;
        }
        $this->answered = $now;
        $this->busy = BusyTime::until($now);
        if ($took > self::SHORT_NANOSECONDS) {
            $took -= $this->busy - $busy;
        }

        return $took <= 0 ? 0 : intdiv($took, $count);
    }
}
