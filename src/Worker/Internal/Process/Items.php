<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\Protocol;
use Spindle\Worker\UnserializableException;

/** Sends the items of tasks that are generators, as many ahead as the pool has room for. */
final class Items
{
    /** @var list<array{int, int, string}> frames that came while a generator waited for one of its own */
    private array $frames = [];

    /**
     * Memory with the time at which the task started; null without a time limit. See {@see
     * \Spindle\Worker\Internal\Mark}.
     */
    public ?\Shmop $clock = null;

    public function __construct(
        private readonly Wire $wire,
        private readonly Life $life,
        private readonly ResultBuffer $results,
    ) {}

    /** @return array{int, int, string}|null a frame that came meanwhile and is not about items */
    public function shift(): ?array
    {
        return array_shift($this->frames);
    }

    /**
     * Sends all items, then leaves the result to be sent. While an item waits for its reader, the time limit of the
     * task pauses.
     *
     * @param int                                    $index of the task
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     */
    public function send(int $index, \Generator $items): void
    {
        $spent = $this->stopClock();
        $this->life->flush(0);
        $this->results->full = true; // nobody is to wait for its end, whatever that is
        $this->tell($index, '');
        $ahead = $size = 0;
        $goOn = function (int $spent): void {
            $this->startClock($spent);
            $this->life->enter(Life::TASK);
        };
        for ($goOn($spent); $items->valid(); $goOn($spent), $items->next()) {
            $spent = $this->stopClock();
            $item = [$items->key(), $items->current()];
            $this->life->state = Life::BUSY;
            try {
                $bytes = $this->results->serialize($item, 'The item');
            } catch (UnserializableException $refused) {
                $this->results->refuse($refused);

                return;
            }
            $this->life->vanishInFork();
            $this->tell($index, $bytes);
            ++$ahead;
            $size += \strlen($bytes);
            while ($ahead >= Protocol::WINDOW || $size >= Protocol::WINDOW_SIZE || $this->wire->isReadable()) {
                $taken = $this->taken($index);
                if ($taken === null) {
                    $this->results->add(null);

                    return;
                }
                $ahead -= $taken[0];
                $size -= $taken[1];
            }
        }
        $this->life->state = Life::BUSY;
        $this->results->add($items->getReturn());
    }

    /** @return int nanoseconds for which the task has run */
    private function stopClock(): int
    {
        if ($this->clock === null) {
            return 0;
        }
        /** @var array{1: int} $startedAt */
        $startedAt = unpack('P', shmop_read($this->clock, 8, 8));
        shmop_write($this->clock, pack('P', 0), 8);

        return hrtime(true) - $startedAt[1];
    }

    /** @param int $spent nanoseconds for which the task has run */
    private function startClock(int $spent): void
    {
        if ($this->clock !== null) {
            shmop_write($this->clock, pack('P', hrtime(true) - $spent), 8);
        }
    }

    private function tell(int $index, string $bytes): void
    {
        $this->wire->send(Protocol::ITEMS, $this->results->batch, pack('V', $index), $bytes) || $this->life->vanish();
    }

    /**
     * Waits for a frame.
     *
     * @return array{int, int}|null items that the reader has taken, and their bytes; null when nobody reads them any more
     */
    private function taken(int $index): ?array
    {
        $frame = $this->life->receive() ?? $this->life->vanish();
        if ($frame[1] !== $this->results->batch || ($frame[0] !== Protocol::WANTED && $frame[0] !== Protocol::UNWANTED)) {
            $this->frames[] = $frame;

            return [0, 0];
        }
        /** @var array{index: int} $of */
        $of = unpack('Vindex', $frame[2]);
        if ($of['index'] !== $index) {
            return [0, 0]; // it came too late for a generator before this one
        }
        if ($frame[0] === Protocol::UNWANTED) {
            return null;
        }
        /** @var array{items: int, size: int} $taken */
        $taken = unpack('Vitems/Vsize', $frame[2], 4);

        return [$taken['items'], $taken['size']];
    }
}
