<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\OneWayGenerator;
use Spindle\Remote\BrokerException;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobLostException;
use Spindle\Worker\ExecutorClosedException;

/**
 * Reads the items of a generator task. If no other process can read the items, the destructor ends the task, and lets
 * the engine drop the stored items.
 */
final class StoredItems
{
    private const MAX_ITEMS_PER_REQUEST = 32;

    /** An answer of at least this size may lack stored items: {@see \Spindle\Remote\Broker::takeItems()}. */
    private const MIN_LIMITED_BYTES = 1 << 20;

    private int $takenCount = 0;

    private bool $mayHaveMore = true;

    /** Whether end() does nothing: no item is left, another reader takes items, reading failed, or end() has run. */
    private bool $isReleased = false;

    private ?string $outcome = null;

    private ?\Throwable $failure = null;

    private readonly Condition $changed;

    /** @param mixed $key key of the task's input in a map() call */
    public function __construct(
        private readonly QueueClient $client,
        private readonly SharedQueue $queue,
        public readonly string $id,
        private readonly mixed $key,
    ) {
        $this->changed = new Condition();
    }

    public function __destruct()
    {
        $this->end();
    }

    /** Ends a running task and lets the engine drop the stored items, unless another process may read the items. */
    private function end(): void
    {
        // Other processes may know the id of a dispatched task, but not an id that this process generated (isOwn()).
        // The process that takes the first item is the only reader of the items of a running task.
        $isOnlyReader = $this->isRunning() && $this->takenCount > 0 || $this->queue->isOwn($this->id);
        if (!$this->isReleased && $isOnlyReader) {
            $this->queue->receivedOutcomes->stopTakingItems($this->id);
        }
        $this->isReleased = true;
    }

    /** Returns a waiter with only a weak reference to this object, so that PHP can destroy this object. */
    public function waiter(): ItemReceiver
    {
        return new ItemReceiver($this->client, \WeakReference::create($this));
    }

    /** @return \Generator<mixed, mixed, mixed, mixed> the items, then the task generator's return value */
    public function items(): \Generator
    {
        $frames = [];
        while (true) {
            if ($this->mayHaveMore) {
                $this->mayHaveMore = false;
                $frames = []; // frees the memory of the last answer
                $frames = $this->takeFrames();
                $bytes = array_sum(array_map(\strlen(...), $frames));
                if (\count($frames) === self::MAX_ITEMS_PER_REQUEST || $bytes >= self::MIN_LIMITED_BYTES) {
                    $this->mayHaveMore = true;
                }
                foreach ($frames as $frame) {
                    $this->throwIfEnded();
                    try {
                        [$key, $item] = $this->client->codec->item($this->id, $frame, $this->takenCount, $this->key);
                    } catch (JobLostException $lost) {
                        $this->isReleased = true; // another reader takes items, so the task must go on

                        throw $lost;
                    }
                    ++$this->takenCount;
                    OneWayGenerator::refuse(yield $key => $item);
                }
            } elseif ($this->failure !== null) {
                $this->isReleased = true;

                throw $this->failure;
            } elseif ($this->outcome !== null) {
                $outcome = $this->outcome;
                // The engine keeps the items of an answer until the next request for items. No request has followed the
                // last answer. If it had items, end() makes the engine drop them.
                $this->isReleased = $frames === [];
                $this->end();

                return $this->client->codec->generatorReturn($this->id, $outcome, $this->key, $this->takenCount);
            } else {
                $this->changed->wait(owner: $this); // the wait keeps this object in memory
            }
        }
    }

    /**
     * Fetches the next items. While the engine is not available, retries for `$brokerRetryTimeout` seconds.
     *
     * @return list<string> at most MAX_ITEMS_PER_REQUEST
     *
     * @throws BrokerException
     */
    private function takeFrames(): array
    {
        return ReconnectBackoff::retry(
            $this->client->options->brokerRetryTimeout,
            function (): array {
                $this->throwIfEnded();

                return $this->queue->takeItems($this->id, $this->takenCount, self::MAX_ITEMS_PER_REQUEST);
            },
        );
    }

    /** Throws if the caller has cancelled the task or the executor has ended it, even if items were not yielded yet. */
    private function throwIfEnded(): void
    {
        $failure = $this->failure;
        $isCancelled = $failure instanceof CancelledException && !$failure instanceof JobCancelledException;
        if ($isCancelled || $failure instanceof ExecutorClosedException) {
            $this->isReleased = true;

            throw $failure;
        }
    }

    public function isRunning(): bool
    {
        return $this->outcome === null && $this->failure === null;
    }

    /** Makes the reader fetch items. Called when the engine has new items. */
    public function onItems(): void
    {
        $this->mayHaveMore = true;
        $this->changed->notify();
    }

    /** Records the outcome. The reader first fetches the remaining items, which were stored before the outcome. */
    public function onOutcome(string $outcome): void
    {
        $this->outcome = $outcome;
        $this->onItems();
    }

    public function fail(\Throwable $failure): void
    {
        $this->failure = $failure;
        $this->changed->notify();
    }
}
