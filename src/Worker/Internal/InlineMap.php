<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Revolt\EventLoop;

/** One call of map() in this process: reads a value, runs its task, yields the result, and so on. */
final class InlineMap
{
    /** @var \Closure|null the decoded task */
    private ?\Closure $task = null;

    /** @var \Generator<mixed, mixed, mixed, void> */
    private readonly \Generator $values;

    /**
     * @param iterable<mixed, mixed>       $input
     * @param string                       $code      from {@see TaskCode::encode()}
     * @param string                       $signatureKey key that signs closures
     * @param (\Closure(mixed): void)|null $onReport
     */
    public function __construct(
        iterable $input,
        private readonly string $code,
        private readonly string $signatureKey,
        private readonly ?\Closure $onReport,
    ) {
        $this->values = self::values($input);
    }

    /** @return \Generator<mixed, mixed> */
    public function results(?Cancellation $cancellation): \Generator
    {
        $cancellation?->throwIfRequested();
        while (($pulled = $this->pull()->await($cancellation)) !== null) {
            [$key, $value] = $pulled;
            $argument = ValueSerializer::serialize($value, 'The argument' . ValueSerializer::keySuffix($key));
            $pulled = $value = null;
            $work = fn(): mixed => $this->task()(ValueSerializer::unserialize($argument, TaskCode::MISSING));
            yield $key => InlineTask::start($work, $key, $this->onReport, $cancellation)->await();
            $cancellation?->throwIfRequested();
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
        /** @var DeferredFuture<array{mixed, mixed}|null> $pulled */
        $pulled = new DeferredFuture();
        $values = $this->values;
        EventLoop::queue(static function () use ($values, $pulled): void {
            try {
                $values->next();
                $pulled->complete($values->valid() ? [$values->key(), $values->current()] : null);
            } catch (\Throwable $failure) {
                $pulled->error($failure);
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
