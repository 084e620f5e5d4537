<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Revolt\EventLoop;
use Spindle\Worker\ExecutorClosedException;

/** One call of map() in this process: reads a value, runs its task, yields the result, and so on. */
final class InlineMap
{
    /** @var \Closure|null the decoded task */
    private ?\Closure $task = null;

    /** @var \Generator<mixed, mixed, mixed, void> */
    private readonly \Generator $values;

    /** Number of values in the input; null if it is unknown. */
    private readonly ?int $valueCount;

    private int $pulledCount = 0;

    /** @var DeferredFuture<array{mixed, mixed}|null>|null value that is being read */
    private ?DeferredFuture $pulled = null;

    /** Exception to throw in place of further results, because the executor was closed or killed. */
    private ?ExecutorClosedException $end = null;

    /**
     * @param iterable<mixed, mixed>       $input
     * @param string                       $code      from {@see TaskCode::encode()}
     * @param string                       $signatureKey key that signs closures
     * @param (\Closure(mixed): void)|null $onReport
     */
    public function __construct(
        private readonly InlineActivity $activity,
        iterable $input,
        private readonly string $code,
        private readonly string $signatureKey,
        private readonly ?\Closure $onReport,
    ) {
        $this->values = self::values($input);
        $this->valueCount = \is_array($input) ? \count($input) : null;
    }

    /** @return \Generator<mixed, mixed> */
    public function results(?Cancellation $cancellation): \Generator
    {
        $cancellation?->throwIfRequested();
        $this->activity->beginMap($this);
        try {
            while (($pulled = $this->pull()->await($cancellation)) !== null) {
                [$key, $value] = $pulled;
                $argument = ValueSerializer::serialize($value, 'The argument' . ValueSerializer::keySuffix($key));
                $pulled = $value = null;
                $work = fn(): mixed => $this->task()(ValueSerializer::unserialize($argument, TaskCode::MISSING));
                yield $key => InlineTask::start($this->activity, $work, $key, $this->onReport, $cancellation)->await();
                $cancellation?->throwIfRequested();
            }
        } finally {
            $this->activity->endMap($this);
        }
    }

    /** Ends the map after the task that runs, unless it was the last one of an array. Does not await a running read. */
    public function close(): void
    {
        if ($this->pulledCount !== $this->valueCount) {
            $this->kill(ExecutorClosedException::closedBeforeInputEnd());
        }
    }

    /** Ends the map before the next task. */
    public function kill(ExecutorClosedException $reason): void
    {
        $this->end ??= $reason;
        if ($this->pulled?->isComplete() === false) {
            $this->pulled->error($reason);
        }
    }

    private function task(): \Closure
    {
        return $this->task ??= TaskCode::decode($this->code, $this->signatureKey);
    }

    /**
     * Reads the next value in a callback of the loop: the input may suspend, and a cancellation must not wait for it.
     *
     * @return Future<array{mixed, mixed}|null> key and value; null at the end of the input
     */
    private function pull(): Future
    {
        if ($this->end !== null) {
            throw $this->end;
        }
        /** @var DeferredFuture<array{mixed, mixed}|null> $pulled */
        $pulled = $this->pulled = new DeferredFuture();
        EventLoop::queue(function () use ($pulled): void {
            [$result, $failure] = [null, null];
            try {
                $this->values->next();
                $result = $this->values->valid() ? [$this->values->key(), $this->values->current()] : null;
            } catch (\Throwable $failure) {
            }
            if (!$pulled->isComplete()) { // otherwise the executor was closed or killed
                $this->pulledCount += $result === null ? 0 : 1;
                $failure === null ? $pulled->complete($result) : $pulled->error($failure);
            }
        });

        return $pulled->getFuture()->ignore();
    }

    /**
     * @param iterable<mixed, mixed> $input
     *
     * @return \Generator<mixed, mixed, mixed, void>
     */
    private static function values(iterable $input): \Generator
    {
        yield; // so that every pull can start with next()
        foreach ($input as $key => $value) {
            yield $key => $value;
        }
    }
}
