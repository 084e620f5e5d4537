<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Decodes the items of a generator task that a worker runs, and reports to the worker how many items were read. */
final readonly class WorkerItems implements ItemSource
{
    /** @param int $index position of the task in its batch */
    public function __construct(
        private PoolEvents $pool,
        private WorkerHandle $worker,
        private Batch $batch,
        private int $index,
    ) {}

    public function decode(string $item): array
    {
        $key = $this->batch->key($this->index);

        /** @var array{mixed, mixed} */
        return TaskOutcome::value(WorkerProtocol::SERIALIZED, $item, $this->batch->attempt, $key);
    }

    public function acknowledge(int $items, int $size): void
    {
        if ($this->worker->sharedFlags === null) {
            $this->batch->firstSince = (int) hrtime(true); // the generator may have waited until now
        }
        $this->send(WorkerProtocol::ITEMS_READ, pack('VVV', $this->index, $items, $size));
    }

    public function release(): void
    {
        $this->send(WorkerProtocol::ITEMS_RELEASED, pack('V', $this->index));
        $this->pool->streamReleased($this->worker, $this->batch, $this->index);
    }

    private function send(int $type, string $payload): void
    {
        if ($this->worker->firstBatch() === $this->batch) {
            $this->worker->link?->send(WorkerProtocol::frame($type, $this->batch->id, $payload));
        }
    }
}
