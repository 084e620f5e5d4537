<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\OneWayGenerator;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\ResultBudget;

/** Yields the items of a generator task. If the caller stops early, {@see ItemSource::release()} ends the task. */
final class ItemStream
{
    /**
     * If the pool has a {@see ResultBudget}, the budget counts the bytes of each item that has at least this size.
     * After such an item, the worker waits until the reader asks for the next item.
     */
    private const MIN_BUDGETED_BYTES = WorkerProtocol::MAX_UNREAD_BYTES;

    /** @var \SplQueue<string> */
    private \SplQueue $items;
    private bool $isEnded = false;
    private readonly int $ownerPid;

    /** Number of items that were not acknowledged. If it is not 0, the task may be waiting for the reader. */
    public int $unreadCount = 0;

    /** @var (\Closure(): mixed)|null decodes the result of the generator */
    private ?\Closure $decodeResult = null;

    /** @var (\Closure(): \Throwable)|null decodes the exception that ended the generator */
    private ?\Closure $decodeFailure = null;

    private readonly Condition $changed;

    public function __construct(private readonly ItemSource $source, private readonly ?ResultBudget $budget = null)
    {
        $this->items = new \SplQueue();
        $this->changed = new Condition();
        $this->ownerPid = (int) getmypid();
    }

    public function __destruct()
    {
        if (!$this->isEnded) {
            // At the end of the script, PHP may call other destructors after this one. A destructor that reads the
            // generator gets this exception. Otherwise, the destructor would wait for items that never arrive.
            $this->fail(ExecutorClosedException::destroyed(...));
            $this->source->release();
        }
        foreach ($this->items as $item) {
            $this->budget?->release(self::budgetedBytes($item));
        }
    }

    /** @param string $item key and value, serialized */
    public function add(string $item): void
    {
        $this->items->enqueue($item);
        ++$this->unreadCount;
        $this->budget?->forceAcquire(self::budgetedBytes($item));
        $this->changed->notify();
    }

    /** @param \Closure(): mixed $decodeResult decodes the result; called in the reader's fiber */
    public function finish(\Closure $decodeResult): void
    {
        $this->isEnded = true;
        $this->decodeResult = $decodeResult;
        $this->changed->notify();
    }

    /** @param \Closure(): \Throwable $decodeFailure decodes the exception; called in the reader's fiber */
    public function fail(\Closure $decodeFailure): void
    {
        $this->isEnded = true;
        $this->decodeFailure = $decodeFailure;
        $this->changed->notify();
    }

    /**
     * Returns a generator of the items. PHP keeps a yielded value until the generator is resumed. So this generator
     * yields references: a reader with `foreach (... as &$item)` can free a large item earlier, with `$item = null`.
     *
     * @return \Generator<mixed, mixed, mixed, mixed>
     */
    public function &items(): \Generator
    {
        while (true) {
            while (!$this->items->isEmpty()) {
                $bytes = $this->items->dequeue();
                $size = \strlen($bytes);
                $budgeted = $this->budget === null ? 0 : self::budgetedBytes($bytes);
                if ($budgeted === 0) {
                    $this->acknowledge($size);
                } else {
                    // The release is deferred, so that a reader that keeps the item can first call
                    // ResultBudget::forceAcquire(). Otherwise, other results could reserve the bytes before that call.
                    EventLoop::defer(fn() => $this->budget->release($budgeted));
                }
                $item = $this->source->decode($bytes);
                [$key, $value] = $item;
                unset($bytes, $item);
                OneWayGenerator::refuse(yield $key => $value);
                unset($value);
                if ($budgeted > 0) {
                    $this->acknowledge($size);
                }
            }
            if ($this->decodeFailure !== null) {
                throw ($this->decodeFailure)();
            }
            if ($this->isEnded) {
                return $this->decodeResult === null ? null : ($this->decodeResult)();
            }
            if ($this->ownerPid !== getmypid()) {
                throw ExecutorClosedException::forked();
            }
            $this->changed->wait(owner: $this); // without $this, PHP could destroy stream and fiber as garbage
        }
    }

    private function acknowledge(int $size): void
    {
        --$this->unreadCount;
        if (!$this->isEnded) {
            $this->source->acknowledge(1, $size);
        }
    }

    private static function budgetedBytes(string $item): int
    {
        return \strlen($item) < self::MIN_BUDGETED_BYTES ? 0 : \strlen($item);
    }
}
