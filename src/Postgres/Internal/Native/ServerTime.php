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

    private int $answered = 0;

    /** Processor time at that moment. */
    private int $busy = 0;

    /** @var array<int, array{int, int}> time and processor time of each write, by the number behind the last exchange in it */
    private array $sent = [];

    /** @param int $roundTrip nanoseconds of the shortest one that was seen; no shorter than the network's own */
    public function __construct(public int $roundTrip) {}

    /**
     * All up to an exchange was written.
     *
     * @param int $tail number behind the last one
     * @param int $now  hrtime
     */
    public function sent(int $tail, int $now): void
    {
        $this->sent[$tail] ??= [$now, BusyTime::until($now)];
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
        [$at, $busy] = [$this->answered, $this->busy];
        foreach ($this->sent as $tail => [$time, $used]) {
            if ($tail > $head) {
                [$at, $busy] = [$time, $used];
                break;
            }
            unset($this->sent[$tail]);
        }
        $took = $now - $at - $this->roundTrip;
        if ($at >= $this->answered) {
            $this->roundTrip = min($this->roundTrip, $now - $at);
        } elseif ($now - $this->answered < $took) {
            [$took, $busy] = [$now - $this->answered, $this->busy];
        }
        $used = BusyTime::until($now);
        $this->answered = $now;
        $this->busy = $used;

        return max(0, intdiv($took > self::SHORT ? $took - ($used - $busy) : $took, $count));
    }
}
