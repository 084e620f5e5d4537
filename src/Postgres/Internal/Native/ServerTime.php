<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

/**
 * How long a server works at what a connection sends, without the network's round trip and without the time in which this process was
 * busy with something else.
 *
 * A statement's time begins with the answer before it, or with its own sending if that came later.
 */
final class ServerTime
{
    /** Nanoseconds up to which a statement is short. */
    public const SHORT = 5_000_000;

    /** Nanoseconds until a server that had nothing to do, and then this process, may have been woken. */
    private const WAKING = 500_000;

    /** When something was answered last, and {@see BusyTime} then. */
    private int $answered = 0;
    private int $busy = 0;

    /** Of the first write that is not answered as a whole: the number behind its last exchange, its time, {@see BusyTime} then. */
    private int $tail = 0;
    private int $sent = 0;
    private int $sentBusy = 0;

    /** @var list<array{int, int, int}> the same of the writes behind it */
    private array $later = [];

    /** @param int $roundTrip nanoseconds of the shortest one that was seen; no shorter than the network's own */
    public function __construct(public int $roundTrip) {}

    /**
     * All up to an exchange was written.
     *
     * @param int $head number of the first that is not answered
     * @param int $tail number behind the last one
     * @param int $now  hrtime
     */
    public function sent(int $head, int $tail, int $now): void
    {
        $busy = BusyTime::until($now);
        if ($this->tail <= $head && $this->later === []) {
            [$this->tail, $this->sent, $this->sentBusy] = [$tail, $now, $busy];
        } elseif ($tail > ($this->later === [] ? $this->tail : $this->later[\count($this->later) - 1][0])) {
            $this->later[] = [$tail, $now, $busy];
        }
    }

    /**
     * Exchanges were answered, in what was read now.
     *
     * @param int $head  number of the first
     * @param int $count at least 1
     * @param int $now   hrtime
     *
     * @return int nanoseconds that the server took for each of them, on average
     */
    public function answered(int $head, int $count, int $now): int
    {
        while ($this->tail <= $head && $this->later !== []) {
            [$this->tail, $this->sent, $this->sentBusy] = array_shift($this->later);
        }
        $took = $now - $this->sent - $this->roundTrip;
        $busy = $this->sentBusy;
        if ($this->sent >= $this->answered) {
            // Nothing was under way, so that all of it is one round trip.
            $this->roundTrip = min($this->roundTrip, $now - $this->sent);
            $took -= self::WAKING;
        } elseif ($now - $this->answered < $took) {
            $took = $now - $this->answered;
            $busy = $this->busy;
        }
        $this->answered = $now;
        $this->busy = BusyTime::until($now);
        if ($took > self::SHORT) {
            $took -= $this->busy - $busy;
        }

        return $took <= 0 ? 0 : intdiv($took, $count);
    }
}
