<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\UnserializableException;

/** Sends the items of generator tasks. Waits while the number or size of unread items is at its limit. */
final class ItemSender
{
    /** @var list<array{int, int, string}> frames for {@see Worker} that arrived while a generator waited */
    private array $otherFrames = [];

    /** Memory with the task's start time: {@see \Spindle\Worker\Internal\SharedFlags}; null without a time limit. */
    public ?\Shmop $clock = null;

    public function __construct(
        private readonly PoolLink $link,
        private readonly WorkerLifecycle $lifecycle,
        private readonly ResultBuffer $results,
    ) {}

    /** @return array{int, int, string}|null next frame that arrived while a generator waited; null if there is none */
    public function shiftFrame(): ?array
    {
        return $this->otherFrames === [] ? null : array_shift($this->otherFrames);
    }

    /**
     * Sends all items, then adds the generator's result to $results. The time limit excludes waits for the reader.
     *
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     */
    public function send(int $index, \Generator $items): void
    {
        $elapsed = $this->stopClock();
        $this->lifecycle->flush(0);
        $this->results->isFull = true; // so that the result is sent as soon as the generator has ended
        $this->sendFrame($index, '');
        $unacknowledged = $size = 0;
        $resumeTask = function (int $elapsed): void {
            $this->startClock($elapsed);
            $this->lifecycle->setState(WorkerLifecycle::RUNNING_TASK);
        };
        for ($resumeTask($elapsed); $items->valid(); $resumeTask($elapsed), $items->next()) {
            $elapsed = $this->stopClock();
            $item = [$items->key(), $items->current()];
            $this->lifecycle->state = WorkerLifecycle::RUNNING_OWN_CODE;
            try {
                $bytes = $this->results->serialize($item, 'The item');
            } catch (UnserializableException $refused) {
                $this->results->refuse($refused);

                return;
            }
            $this->lifecycle->killSelfInFork();
            $this->sendFrame($index, $bytes);
            ++$unacknowledged;
            $size += \strlen($bytes);
            while (
                $unacknowledged >= WorkerProtocol::MAX_UNREAD_ITEMS
                || $size >= WorkerProtocol::MAX_UNREAD_BYTES
                || $this->link->isReadable()
            ) {
                $acknowledged = $this->awaitAcknowledgement($index);
                if ($acknowledged === null) {
                    $this->results->add(null);

                    return;
                }
                $unacknowledged -= $acknowledged[0];
                $size -= $acknowledged[1];
            }
        }
        $this->lifecycle->state = WorkerLifecycle::RUNNING_OWN_CODE;
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

    /** @param int $elapsed nanoseconds for which the task has run */
    private function startClock(int $elapsed): void
    {
        if ($this->clock !== null) {
            shmop_write($this->clock, pack('P', hrtime(true) - $elapsed), 8);
        }
    }

    private function sendFrame(int $index, string $bytes): void
    {
        $this->link->send(WorkerProtocol::ITEMS, $this->results->batch, pack('V', $index), $bytes)
            || $this->lifecycle->killSelf();
    }

    /** @return array{int, int}|null number of items read, and their bytes; null if the reader released the generator */
    private function awaitAcknowledgement(int $index): ?array
    {
        $frame = $this->lifecycle->receive() ?? $this->lifecycle->killSelf();
        if (
            $frame[1] !== $this->results->batch
            || ($frame[0] !== WorkerProtocol::ITEMS_READ && $frame[0] !== WorkerProtocol::ITEMS_RELEASED)
        ) {
            $this->otherFrames[] = $frame;

            return [0, 0];
        }
        /** @var array{index: int} $of */
        $of = unpack('Vindex', $frame[2]);
        if ($of['index'] !== $index) {
            return [0, 0]; // the frame is late, and belongs to an earlier generator
        }
        if ($frame[0] === WorkerProtocol::ITEMS_RELEASED) {
            return null;
        }
        /** @var array{items: int, size: int} $acknowledged */
        $acknowledged = unpack('Vitems/Vsize', $frame[2], 4);

        return [$acknowledged['items'], $acknowledged['size']];
    }
}
