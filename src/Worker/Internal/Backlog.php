<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;

/**
 * Tasks that a source has given away and no worker has: taken back from one, or to be tried again. They go before others.
 */
final class Backlog
{
    /** @var list<Batch> */
    private array $batches = [];

    /** @var array<string, Batch> that wait for another attempt, by the timer */
    private array $pauses = [];

    /** @param \Closure(): void $ready one more can be given to a worker, because its time has come */
    public function __construct(private readonly \Closure $ready) {}

    /** Batches that can be given to a worker now. */
    public function count(): int
    {
        return \count($this->batches);
    }

    /** The next one, of no more tasks than this. */
    public function shift(int $most): ?Batch
    {
        $batch = array_shift($this->batches);
        if ($batch !== null && \count($batch->tasks) > $most) {
            array_unshift($this->batches, $batch->slice($most, \count($batch->tasks)));

            return $batch->slice(0, $most);
        }

        return $batch;
    }

    /** Tasks that were not started. Those that nobody wants any more have their outcomes now. */
    public function add(Batch $batch): void
    {
        if ($batch->source->isLeft()) {
            return;
        }
        foreach ($batch->tasks as $index => $task) {
            if ($task instanceof Submission && $task->cancelled !== null) {
                $batch->source->failed($batch, $index, $task->cancelled);
                $this->add($batch->slice(0, $index));
                $this->add($batch->slice($index + 1, \count($batch->tasks)));

                return;
            }
        }
        if ($batch->tasks !== []) {
            $this->batches[] = $batch;
        }
    }

    /** @param float $delay in seconds, before it can be given to a worker */
    public function addLater(Batch $batch, float $delay): void
    {
        $timer = '';
        $timer = WeakTimer::after($delay, $this, static function (self $backlog) use (&$timer): void {
            $batch = $backlog->pauses[$timer];
            unset($backlog->pauses[$timer]);
            $backlog->add($batch);
            ($backlog->ready)();
        });
        $this->pauses[$timer] = $batch;
    }

    /** @return bool whether the task was here; it has its outcome then */
    public function withdraw(Submission $submission, \Throwable $reason): bool
    {
        foreach ([...$this->batches, ...$this->pauses] as $key => $batch) {
            $index = array_search($submission, $batch->keys, true);
            if ($index === false) {
                continue;
            }
            if (\is_string($key)) {
                EventLoop::cancel($key);
                unset($this->pauses[$key]);
            } else {
                $rest = [$batch->slice(0, $index), $batch->slice($index + 1, \count($batch->tasks))];
                array_splice($this->batches, $key, 1, array_filter($rest, static fn(Batch $part): bool => $part->tasks !== []));
            }
            $batch->source->failed($batch, $index, $reason);

            return true;
        }

        return false;
    }

    /** Nobody wants the outcomes of its tasks any more. */
    public function drop(Source $source): void
    {
        $this->batches = array_values(array_filter($this->batches, static fn(Batch $batch): bool => $batch->source !== $source));
        foreach ($this->pauses as $timer => $batch) {
            if ($batch->source === $source) {
                EventLoop::cancel($timer);
                unset($this->pauses[$timer]);
            }
        }
    }

    /** All of them fail. */
    public function fail(\Throwable $reason): void
    {
        $batches = [...$this->batches, ...array_values($this->pauses)];
        array_map(EventLoop::cancel(...), array_keys($this->pauses));
        $this->batches = $this->pauses = [];
        foreach ($batches as $batch) {
            foreach ($batch->tasks as $index => $_) {
                $batch->source->failed($batch, $index, $reason);
            }
        }
    }
}
