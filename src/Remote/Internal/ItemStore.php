<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Clock;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\ResultTooLargeException;

/** Stores the items of a generator task in the engine. Waits while readers are behind by too many items or bytes. */
final class ItemStore
{
    private const MAX_UNTAKEN_ITEMS = 32;
    private const MAX_UNTAKEN_BYTES = 32 << 20;

    /** Seconds between two checks for taken items, in case the message about them is lost. */
    private const CHECK_INTERVAL = 1.0;

    /** Seconds without a request after which the agent asks whether a reader wants the next item. */
    private const MAX_UNCHECKED_SECONDS = 5.0;

    /** Maximum seconds of a request that count for the task's time limit. During a longer request, the task waits. */
    private const MAX_COUNTED_SECONDS = 0.1;

    /** Number of failed attempts after which a warning is logged. In most outages, the heartbeat logs one earlier. */
    private const LOGGED_FAILURE = 5;

    /** @var list<int> sizes of the last MAX_UNTAKEN_ITEMS items in bytes */
    private array $sizes = [];

    /** Number of running calls of {@see put()}. */
    private int $putCount = 0;

    private float $putSince = 0.0;

    /** Time of {@see Clock::now()} at which the engine last answered whether a reader wants items. */
    private float $checkedAt = 0.0;

    /** @param \Generator<mixed, mixed, mixed, mixed>|null $items encoded items; null once the task must end */
    public function __construct(
        private ?\Generator $items,
        private readonly AgentRun $run,
        private readonly ClaimedJob $job,
        private readonly SettlementFactory $settlements,
    ) {
        $job->itemCount = 0;
    }

    /**
     * Stores all items, waits until the task has ended, and returns the task's encoded outcome.
     *
     * @throws CancelledException when the job was cancelled, or its reader takes no more items
     */
    public function send(): string
    {
        $timer = EventLoop::unreference(EventLoop::repeat(self::MAX_UNCHECKED_SECONDS / 5, $this->checkReader(...)));
        try {
            $result = $this->sendItems();
        } catch (\Throwable $failure) {
            // A finally block would also run when PHP destroys the fiber. But endTask() can't suspend that fiber.
            $this->endTask();

            throw $failure;
        } finally {
            EventLoop::cancel($timer);
        }
        $this->endTask();

        return $result;
    }

    /** Cancels the job if its reader has left while the task computes its next item. */
    private function checkReader(): void
    {
        if ($this->putCount > 0 || Clock::now() - $this->checkedAt < self::MAX_UNCHECKED_SECONDS) {
            return;
        }
        try {
            $this->put([], 0.0);
        } catch (CancelledException) {
            if ($this->items !== null) {
                $this->job->cancel();
            }
        } catch (LeaseLostException $lost) {
            $this->run->abandon($lost);
        } catch (BrokerException) {
            // The next request of sendItems() or of the heartbeat has the same failure.
        }
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
            $this->job->itemArrived($this->job->itemCount ?? 0);
            $untakenCount = $this->putItem(\is_string($item) ? $item : '');
            $item = null; // $item is a reference, so this also frees the generator's item
            $deadline = Clock::now() + $this->run->options->outcomeRetention;
            for (; $this->isFull($untakenCount); $untakenCount = $this->put([])) {
                if (Clock::now() > $deadline) {
                    throw new CancelledException();
                }
                $this->job->awaitItemsTaken(self::CHECK_INTERVAL);
            }
        }
        $result = $this->items?->getReturn();

        return \is_string($result) ? $result : '';
    }

    /** @return \Generator<mixed, mixed, mixed, mixed> the items, by reference if the generator supports that */
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

    private function isFull(int $untakenCount): bool
    {
        return $untakenCount >= self::MAX_UNTAKEN_ITEMS
            || array_sum(\array_slice($this->sizes, \count($this->sizes) - $untakenCount)) >= self::MAX_UNTAKEN_BYTES;
    }

    /** @return int number of stored items that no reader has taken */
    private function putItem(string $item): int
    {
        $size = \strlen($item);
        $this->sizes = [...\array_slice($this->sizes, 1 - self::MAX_UNTAKEN_ITEMS), $size];
        $this->run->pools->budget->forceAcquire($size);
        try {
            return $this->put([$this->settlements->item($this->job->delivery, $this->job->itemCount ?? 0, $item)]);
        } finally {
            $this->run->pools->budget->release($size);
        }
    }

    /**
     * Stores frames, and returns the number of stored items that no reader has taken. While the engine is not
     * available, retries for $retrySeconds, or until the job is cancelled. The loss of the lease cancels the job, too.
     *
     * @param list<string> $frames empty to announce the stored items again, in case the message about them was lost
     */
    private function put(array $frames, float $retrySeconds = \INF): int
    {
        if (++$this->putCount === 1) {
            $this->job->pauseTimeLimit();
            $this->putSince = Clock::now();
        }
        try {
            $untakenCount = ReconnectBackoff::retry($retrySeconds, $this->request($frames));
            $this->checkedAt = Clock::now();
        } finally {
            if (--$this->putCount === 0) {
                $this->job->resumeTimeLimit(min(Clock::now() - $this->putSince, self::MAX_COUNTED_SECONDS));
            }
        }
        $this->job->throwIfRequested();
        if ($untakenCount === null) {
            throw new CancelledException();
        }
        $this->job->itemCount = ($this->job->itemCount ?? 0) + \count($frames);

        return $untakenCount;
    }

    /**
     * @param list<string> $frames
     *
     * @return \Closure(bool): ?int
     */
    private function request(array $frames): \Closure
    {
        $first = $frames === [] ? 0 : $this->job->itemCount ?? 0;
        /** @var int $failureCount */
        $failureCount = 0;

        return function (bool $isRepeated) use ($first, $frames, &$failureCount): ?int {
            $this->job->throwIfRequested();
            try {
                $maxBytes = $isRepeated ? $this->run->broker->maxFrameBytes() : \PHP_INT_MAX;
                if (\strlen($frames[0] ?? '') > $maxBytes) { // the limit was lowered after the start of the task
                    throw ResultTooLargeException::of($this->job->delivery->id, \strlen($frames[0]), $maxBytes);
                }

                return $this->run->broker->putItems(
                    $this->run->queue,
                    $this->run->owner,
                    $this->job->delivery->id,
                    $this->job->delivery->claimNumber,
                    $first,
                    $frames,
                );
            } catch (BrokerUnavailableException $failure) {
                if (++$failureCount === self::LOGGED_FAILURE) {
                    $this->run->engine->itemRefused($this->job->delivery->id, $failure);
                }

                throw $failure;
            }
        };
    }
}
