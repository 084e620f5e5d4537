<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;

/** The tasks of a pool that were submitted one by one. */
final class Submissions implements TaskSource
{
    private readonly BatchSizing $sizing;

    /** @var \SplQueue<Submission> tasks that were never in a batch, and withdrawn tasks that take() will skip */
    private \SplQueue $waiting;

    /** Whether to ignore failures that no fiber awaits: true in a fork, and when PHP has destroyed the pool. */
    public bool $ignoresFailures = false;

    /** Number of tasks without an outcome. Only this class writes this property. */
    public int $openCount = 0;

    /** Number of tasks that were never in a batch and are not withdrawn. */
    private int $waitingCount = 0;

    /** @var \WeakMap<Submission, Cancellation> cancellations of the tasks that have one */
    private \WeakMap $cancellations;

    public function __construct(private readonly PoolEvents $pool)
    {
        $this->sizing = new BatchSizing();
        $this->waiting = new \SplQueue();
        $this->cancellations = new \WeakMap();
        UnfinishedTasks::watch($this);
    }

    public function add(Submission $submission, ?Cancellation $cancellation): void
    {
        if ($cancellation !== null) {
            $this->cancellations[$submission] = $cancellation;
        }
        $this->waiting->enqueue($submission);
        ++$this->openCount;
        ++$this->waitingCount;
    }

    /** Returns the number of tasks that are lost if the script ends now: they have no outcome and are not cancelled. */
    public function lostCount(): int
    {
        $cancelled = 0;
        foreach ($this->cancellations as $submission => $cancellation) {
            // A cancellation notifies the pool only when the loop runs. So this method asks the cancellation.
            $cancelled += !$submission->hasOutcome() && $cancellation->isRequested() ? 1 : 0;
        }

        return $this->openCount - $cancelled;
    }

    /** Makes a waiting task fail, and returns true. Returns false if the task was already in a batch. */
    public function withdraw(Submission $submission, \Throwable $reason): bool
    {
        if (!$submission->isNew) {
            return false;
        }
        $submission->isNew = false; // take() skips the task later
        if (--$this->waitingCount === 0) {
            $this->waiting = new \SplQueue();
        }
        $this->fail($submission, $reason);
        $this->countSettled(1);

        return true;
    }

    public function sizing(): BatchSizing
    {
        return $this->sizing;
    }

    public function code(): ?string
    {
        return null;
    }

    public function id(): int
    {
        return 0;
    }

    public function demand(): int
    {
        return $this->waitingCount;
    }

    public function take(int $maxTasks, int $workers): ?Batch
    {
        if ($this->waitingCount === 0) {
            return null;
        }
        $share = intdiv($this->waitingCount, $workers);
        $size = $share < 2 ? 1 : min($maxTasks, $this->sizing->size, $share);
        $tasks = [];
        while (\count($tasks) < $size) {
            $submission = $this->waiting->dequeue();
            if ($submission->isNew) {
                $submission->isNew = false;
                --$this->waitingCount;
                $tasks[] = $submission;
            }
        }

        return new Batch($this, 0, $tasks, $tasks, true);
    }

    public function succeeded(Batch $batch, int $from, int $count, string|array $results, int $size): void
    {
        [$kinds, $values] = \is_array($results) ? $results : ['', ValuePacking::decodeList($results)];
        $settled = 0;
        foreach ($values as $i => $value) {
            /** @var Submission $submission */
            $submission = $batch->keys[$from + $i];
            if ($kinds === '' || \ord($kinds[$i]) === WorkerProtocol::STRING) {
                $submission->settle($value);
            } elseif (!ValueSerializer::mayRunCode((string) $value)) {
                self::settle($submission, (string) $value, $batch->attempt);
            } else {
                // Unserializing runs code of classes, which may use the pool or suspend the fiber. So the value is
                // unserialized later, when the pool has marked the worker as free.
                EventLoop::queue(function () use ($submission, $value, $batch): void {
                    self::settle($submission, (string) $value, $batch->attempt);
                    $this->countSettled(1);
                });
                continue;
            }
            ++$settled;
        }
        $this->countSettled($settled);
    }

    private static function settle(Submission $submission, string $bytes, int $attempt): void
    {
        try {
            $submission->settle(TaskOutcome::value(WorkerProtocol::SERIALIZED, $bytes, $attempt, null));
        } catch (\Throwable $failure) {
            $submission->fail($failure);
        }
    }

    public function failed(Batch $batch, int $index, \Throwable $failure, int $size = 0): void
    {
        /** @var Submission $submission */
        $submission = $batch->keys[$index];
        $this->fail($submission, $failure);
        $this->countSettled(1);
    }

    public function streamStarted(Batch $batch, int $index, ItemStream $stream): void
    {
        /** @var Submission $submission */
        $submission = $batch->keys[$index];
        $submission->stream($stream);
        $this->countSettled(1);
    }

    public function isAbandoned(): bool
    {
        return false;
    }

    public function close(): void {}

    public function abort(\Throwable $reason): void
    {
        while (!$this->waiting->isEmpty()) {
            $this->withdraw($this->waiting->dequeue(), $reason);
        }
    }

    private function fail(Submission $submission, \Throwable $failure): void
    {
        if ($this->ignoresFailures) {
            $submission->ignore();
        }
        $submission->fail($failure);
    }

    private function countSettled(int $count): void
    {
        $this->openCount -= $count;
        if ($this->openCount === 0) {
            $this->pool->onSettled();
        }
    }
}
