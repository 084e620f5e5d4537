<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

/**
 * Measures how long the server takes for the exchanges of a connection. The time of an exchange begins one round trip
 * after the write, to leave out the network. If the previous exchange is answered later than that, the time begins at
 * that answer. If the time exceeds {@see SHORT_NANOSECONDS}, subtracts the time in which this process was busy.
 */
final class ServerTime
{
    public const SHORT_NANOSECONDS = 5_000_000;

    /** Nanoseconds that the operating systems may need to wake an idle server process, and then this process. */
    private const WAKEUP_NANOSECONDS = 500_000;

    private int $answeredAt = 0;

    /** Busy nanoseconds of this process, by {@see BusyTime::until()}, at the last answer. */
    private int $busyAtAnswer = 0;

    /** Argument `$tail` of {@see recordWrite()} for the earliest write that has unanswered exchanges. */
    private int $writeTail = 0;

    private int $writtenAt = 0;

    /** Busy nanoseconds of this process, by {@see BusyTime::until()}, at the time {@see $writtenAt}. */
    private int $busyAtWrite = 0;

    /** @var list<array{int, int, int}> values of $writeTail, $writtenAt and $busyAtWrite for later writes */
    private array $laterWrites = [];

    /** @param int $roundTrip shortest round trip so far in nanoseconds; includes the server's time for the exchange */
    public function __construct(public int $roundTrip) {}

    /**
     * Records that all exchanges before number `$tail` were written.
     *
     * @param int $head number of the first exchange that is not answered
     * @param int $now time by hrtime()
     */
    public function recordWrite(int $head, int $tail, int $now): void
    {
        $this->forgetAnsweredWrites($head);
        $busy = BusyTime::until($now);
        if ($this->writeTail <= $head) {
            [$this->writeTail, $this->writtenAt, $this->busyAtWrite] = [$tail, $now, $busy];
        } elseif ($tail > ($this->laterWrites[\count($this->laterWrites) - 1][0] ?? $this->writeTail)) {
            $this->laterWrites[] = [$tail, $now, $busy];
        }
    }

    /**
     * Records that the answers of one or more exchanges arrived in one read.
     *
     * @param int $head number of the first of these exchanges
     * @param int $count number of these exchanges, at least 1
     * @param int $now time by hrtime()
     *
     * @return int average nanoseconds that the server took for each exchange
     */
    public function recordAnswers(int $head, int $count, int $now): int
    {
        $this->forgetAnsweredWrites($head);
        $nanoseconds = $now - $this->writtenAt - $this->roundTrip;
        $busy = $this->busyAtWrite;
        if ($this->writtenAt >= $this->answeredAt) {
            // All earlier exchanges were answered before the write, so the time from write to answer is one round trip.
            $this->roundTrip = min($this->roundTrip, $now - $this->writtenAt);
            $nanoseconds -= self::WAKEUP_NANOSECONDS;
        } elseif ($now - $this->answeredAt < $nanoseconds) {
            $nanoseconds = $now - $this->answeredAt;
            $busy = $this->busyAtAnswer;
        }
        $this->answeredAt = $now;
        $this->busyAtAnswer = BusyTime::until($now);
        if ($nanoseconds > self::SHORT_NANOSECONDS) {
            $nanoseconds -= $this->busyAtAnswer - $busy;
        }

        return $nanoseconds <= 0 ? 0 : intdiv($nanoseconds, $count);
    }

    private function forgetAnsweredWrites(int $head): void
    {
        while ($this->writeTail <= $head && $this->laterWrites !== []) {
            [$this->writeTail, $this->writtenAt, $this->busyAtWrite] = array_shift($this->laterWrites);
        }
    }
}
