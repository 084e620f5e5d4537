<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Internal\Async\Condition;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\UnserializableException;

/** Runs a generator task in this process. After each item, the task waits until the reader has taken this item. */
final class InlineStream implements ItemSource
{
    private readonly Condition $taken;

    /** @var \WeakReference<ItemStream>|null yields the items; destroyed together with the reader's generator */
    private ?\WeakReference $stream = null;

    /**
     * @param DeferredCancellation $taskCancellation cancelled when the caller cancels the task, the executor is killed,
     *     or the reader releases the generator
     * @param mixed $key key of the task's input in map()
     */
    public function __construct(private readonly DeferredCancellation $taskCancellation, private readonly mixed $key)
    {
        $this->taken = new Condition();
    }

    /** @return \Generator<mixed, mixed, mixed, mixed> */
    public function generator(): \Generator
    {
        $stream = new ItemStream($this);
        $this->stream = \WeakReference::create($stream);

        return $stream->items();
    }

    public function decode(string $item): array
    {
        /** @var array{mixed, mixed} */
        return $this->value($item);
    }

    public function acknowledge(int $items, int $size): void
    {
        $this->taken->notify();
    }

    public function release(): void
    {
        $this->taskCancellation->cancel();
    }

    /**
     * Passes items and result to the reader. Returns early if the task is cancelled or no reader is left. This object
     * does not keep the generator, so that the generator's `finally` blocks run when the task ends.
     *
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     */
    public function run(\Generator $items): void
    {
        $this->taskCancellation->getCancellation()->subscribe(function (CancelledException $cancelled): void {
            $killed = $cancelled->getPrevious();
            $failure = $killed instanceof ExecutorClosedException ? $killed : $cancelled;
            $this->stream?->get()?->fail(static fn(): \Throwable => $failure);
            $this->taken->notify();
        });
        try {
            while ($this->hasReader() && $items->valid()) {
                $item = [$items->key(), $items->current()];
                if (!$this->send($item)) {
                    return;
                }
                $items->next();
            }
            $result = $this->hasReader() ? $items->getReturn() : null;
        } catch (\Throwable $thrown) {
            $this->stream?->get()?->fail(fn(): \Throwable => InlineTask::failure($thrown, $this->key));

            return;
        }
        $this->sendResult($result);
    }

    /**
     * Passes an item to the reader, and waits until the reader has taken it. Returns whether another item is needed.
     *
     * @param array{mixed, mixed} $item
     */
    private function send(array $item): bool
    {
        try {
            $bytes = ValueSerializer::serialize($item, 'The item' . ValueSerializer::keySuffix($this->key));
        } catch (UnserializableException $refused) {
            $this->stream?->get()?->fail(static fn(): \Throwable => $refused);

            return false;
        }
        $this->stream?->get()?->add($bytes);
        if ($this->hasReader()) {
            $this->taken->wait();
        }

        return $this->hasReader();
    }

    private function sendResult(mixed $result): void
    {
        try {
            $bytes = ValueSerializer::serialize($result, 'The result' . ValueSerializer::keySuffix($this->key));
            $this->stream?->get()?->finish(fn(): mixed => $this->value($bytes));
        } catch (\Throwable $refused) {
            $isRefused = $refused instanceof UnserializableException;
            $failure = $isRefused ? $refused : InlineTask::failure($refused, $this->key);
            $this->stream?->get()?->fail(static fn(): \Throwable => $failure);
        }
    }

    private function hasReader(): bool
    {
        return !$this->taskCancellation->isCancelled() && $this->stream?->get() !== null;
    }

    private function value(string $bytes): mixed
    {
        try {
            return ValueSerializer::unserialize($bytes, TaskCode::MISSING);
        } catch (\Throwable $refused) {
            throw InlineTask::failure($refused, $this->key);
        }
    }
}
