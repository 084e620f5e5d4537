<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\UnserializableException;

/** Sends the items of generator tasks, as far ahead of the reader as the pool allows. */
final class Items
{
    /** @var list<array{int, int, string}> other frames that arrived while a generator waited */
    private array $frames = [];

    /**
     * Memory with the start time of the task, see {@see \Spindle\Worker\Internal\SharedFlags}; null without a time
     * limit.
     */
    public ?\Shmop $clock = null;

    public function __construct(
        private readonly PoolLink $wire,
        private readonly WorkerLifecycle $life,
        private readonly ResultBuffer $results,
    ) {}

    /** @return array{int, int, string}|null a frame about something else that arrived while a generator waited */
    public function shift(): ?array
    {
        return array_shift($this->frames);
    }

    /**
     * Sends all items, and adds the generator's result to the results. The time limit of the task pauses while an item
     * waits for its reader.
     *
     * @param int                                    $index index of the task
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     */
    public function send(int $index, \Generator $items): void
    {
        $spent = $this->stopClock();
        $this->life->flush(0);
        $this->results->full = true; // send the result of a generator at once, whatever it is
        $this->tell($index, '');
        $ahead = $size = 0;
        $goOn = function (int $spent): void {
            $this->startClock($spent);
            $this->life->enter(WorkerLifecycle::TASK);
        };
        for ($goOn($spent); $items->valid(); $goOn($spent), $items->next()) {
            $spent = $this->stopClock();
            $item = [$items->key(), $items->current()];
            $this->life->state = WorkerLifecycle::BUSY;
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
            while (
                $ahead >= WorkerProtocol::WINDOW
                || $size >= WorkerProtocol::WINDOW_SIZE
                || $this->wire->isReadable()
            ) {
                $taken = $this->taken($index);
                if ($taken === null) {
                    $this->results->add(null);

                    return;
                }
                $ahead -= $taken[0];
                $size -= $taken[1];
            }
        }
        $this->life->state = WorkerLifecycle::BUSY;
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
        $this->wire->send(WorkerProtocol::ITEMS, $this->results->batch, pack('V', $index), $bytes)
            || $this->life->vanish();
    }

    /**
     * Waits for a frame.
     *
     * @return array{int, int}|null number of items that the reader has read, and their bytes; null when it needs no
     *         more
     */
    private function taken(int $index): ?array
    {
        $frame = $this->life->receive() ?? $this->life->vanish();
        if (
            $frame[1] !== $this->results->batch
            || ($frame[0] !== WorkerProtocol::WANTED && $frame[0] !== WorkerProtocol::UNWANTED)
        ) {
            $this->frames[] = $frame;

            return [0, 0];
        }
        /** @var array{index: int} $of */
        $of = unpack('Vindex', $frame[2]);
        if ($of['index'] !== $index) {
            return [0, 0]; // the frame is late, and belongs to an earlier generator
        }
        if ($frame[0] === WorkerProtocol::UNWANTED) {
            return null;
        }
        /** @var array{items: int, size: int} $taken */
        $taken = unpack('Vitems/Vsize', $frame[2], 4);

        return [$taken['items'], $taken['size']];
    }
}
