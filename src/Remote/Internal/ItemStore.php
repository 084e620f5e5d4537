<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Spindle\Internal\Clock;
use Spindle\Remote\Broker;
use Spindle\Worker\ResultBudget;

/** Stores the items of a generator task, ahead of the reader by a limited window. */
final class ItemStore
{
    /** Most stored items that are not taken; seconds between checks in case a message about taken ones is lost. */
    private const MAX_UNTAKEN_ITEMS = 32;
    private const CHECK_INTERVAL = 1.0;

    /**
     * @param \Generator<mixed, mixed, mixed, mixed>|null $items     released to end the task
     * @param float                                       $retention longest wait for the reader in seconds
     * @param ResultBudget                                $budget    for items that are not stored yet
     */
    public function __construct(
        private ?\Generator $items,
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $owner,
        private readonly ClaimedJob $job,
        private readonly JobSettlement $settlements,
        private readonly float $retention,
        private readonly ResultBudget $budget,
    ) {
        $job->items = 0;
    }

    /**
     * @return string the generator's return value, encoded
     *
     * @throws CancelledException when no more items are wanted; the task has ended then
     */
    public function send(): string
    {
        try {
            $result = $this->sendItems();
        } catch (\Throwable $failure) { // not finally, because a fiber that is destroyed can't wait
            $this->endTask();

            throw $failure;
        }
        $this->endTask();

        return $result;
    }

    private function endTask(): void
    {
        $this->items = null;
        $this->job->awaitEnd();
    }

    private function sendItems(): string
    {
        $this->put([]);
        foreach ($this->references() as &$item) {
            $untaken = $this->putItem(\is_string($item) ? $item : '');
            $item = null; // frees it in the generator, too
            $deadline = Clock::now() + $this->retention;
            for (; $untaken >= self::MAX_UNTAKEN_ITEMS; $untaken = $this->put([])) {
                if (Clock::now() > $deadline) {
                    throw new CancelledException();
                }
                $this->job->awaitNotification(self::CHECK_INTERVAL);
            }
        }
        $result = $this->items?->getReturn();

        return \is_string($result) ? $result : '';
    }

    /** @return \Generator<mixed, mixed, mixed, mixed> items, by reference if possible, to be freed there */
    private function &references(): \Generator
    {
        $items = $this->items;
        if ($items !== null && (new \ReflectionGenerator($items))->getFunction()->returnsReference()) {
            foreach ($items as &$item) {
                yield $item;
            }
        } else {
            foreach ($items ?? [] as $item) {
                yield $item;
            }
        }
    }

    /** @return int number of stored items that are not taken */
    private function putItem(string $item): int
    {
        $size = \strlen($item);
        $this->budget->occupy($size);
        try {
            return $this->put([$this->settlements->item($this->job->delivery, $this->job->items ?? 0, $item)]);
        } finally {
            $this->budget->release($size);
        }
    }

    /**
     * Stores frames. While the engine is not available, this retries as long as the lease lasts.
     *
     * @param list<string> $frames empty to announce items again, because the message about them may have been lost
     *
     * @return int number of stored items that are not taken
     */
    private function put(array $frames): int
    {
        $first = $frames === [] ? 0 : $this->job->items ?? 0;
        $untaken = ReconnectBackoff::retry(\INF, function () use ($first, $frames): ?int {
            $this->job->throwIfRequested();

            return $this->broker->putItems(
                $this->queue,
                $this->owner,
                $this->job->delivery->id,
                $this->job->delivery->number,
                $first,
                $frames,
            );
        });
        $this->job->throwIfRequested();
        if ($untaken === null) {
            throw new CancelledException();
        }
        $this->job->items = ($this->job->items ?? 0) + \count($frames);

        return $untaken;
    }
}
