<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\NullCancellation;
use Revolt\EventLoop;
use Spindle\Internal\ReportDelivery;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\Internal\Process\ThrownFailure;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskException;
use Spindle\Worker\UnserializableException;

/** A task that runs in this process, in a separate fiber. */
final class InlineTask
{
    /** @var DeferredFuture<mixed>|null null once the future has an outcome */
    private ?DeferredFuture $deferred;

    private readonly DeferredCancellation $taskCancellation;

    /**
     * @param \Closure(): mixed $work decodes the task and calls it
     * @param mixed $key key of the task's input in a call of map(); null for a submitted task
     * @param (\Closure(mixed): mixed)|null $onReport
     */
    public function __construct(
        private readonly InlineActivity $activity,
        private readonly \Closure $work,
        private readonly mixed $key,
        private readonly ?\Closure $onReport,
        private readonly ?Cancellation $cancellation,
    ) {
        $this->deferred = new DeferredFuture();
        $this->taskCancellation = new DeferredCancellation();
    }

    /**
     * Starts the task in a callback of the event loop. The future of a cancelled task fails when the task has ended.
     *
     * @return Future<mixed>
     */
    public function start(): Future
    {
        $this->activity->beginTask($this);
        // A TaskContext belongs to a fiber. The loop's fibers also run other callbacks, which must not get the
        // TaskContext of this task. So the task gets a separate fiber.
        $fiber = new \Fiber($this->run(...));
        EventLoop::queue(static fn() => $fiber->start());

        return $this->deferred?->getFuture() ?? throw new \LogicException('The task ended before its start');
    }

    /** Fails the future, and requests the task's cancellation. A running task continues until it returns or throws. */
    public function kill(ExecutorClosedException $reason): void
    {
        $this->deferred?->error($reason);
        $this->deferred = null;
        $this->taskCancellation->cancel($reason);
    }

    private function run(): void
    {
        try {
            if ($this->deferred !== null && !$this->failIfCancelled()) {
                $this->call();
            }
        } finally {
            $this->activity->endTask($this);
        }
    }

    private function call(): void
    {
        $taskCancellation = $this->taskCancellation;
        $cancellation = $this->cancellation ?? new NullCancellation();
        $subscription = $cancellation->subscribe(
            static fn(CancelledException $cancelled) => $taskCancellation->cancel($cancelled),
        );
        TaskContext::enter(
            new TaskContext(1, $taskCancellation->getCancellation(...), $this->report(...)),
            \Fiber::getCurrent(),
        );
        try {
            $result = ($this->work)();
            $result instanceof \Generator ? $this->stream($result) : $this->returned($result);
        } catch (\Throwable $thrown) {
            $this->failed(self::failure($thrown, $this->key));
        } finally {
            $cancellation->unsubscribe($subscription);
        }
        try {
            $result = null; // runs the `finally` blocks of a released generator before the task ends
        } catch (\Throwable $late) { // @phpstan-ignore catch.neverThrown (such a block or a destructor may)
            error_log("A value that a task left behind threw in its destructor: {$late}");
        }
    }

    /** @return bool whether the task was cancelled; if so, its future has failed */
    private function failIfCancelled(): bool
    {
        try {
            $this->cancellation?->throwIfRequested();

            return false;
        } catch (CancelledException $cancelled) {
            $this->deferred?->error($cancelled);
            $this->deferred = null;

            return true;
        }
    }

    private function returned(mixed $result): void
    {
        try {
            $bytes = ValueSerializer::serialize($result, 'The result' . ValueSerializer::keySuffix($this->key));
            $copy = TaskOutcome::value(WorkerProtocol::SERIALIZED, $bytes, 1, $this->key);
        } catch (UnserializableException|TaskException $refused) {
            $this->failed($refused);

            return;
        }
        $this->completed($copy);
    }

    /** @param \Generator<mixed, mixed, mixed, mixed> $items */
    private function stream(\Generator $items): void
    {
        $stream = new InlineStream($this->taskCancellation, $this->key);
        $this->completed($stream->generator());
        $stream->run($items);
    }

    private function completed(mixed $result): void
    {
        if (!$this->failIfCancelled()) {
            $this->deferred?->complete($result);
            $this->deferred = null; // so that PHP destroys a generator result if the caller has dropped the future
        }
    }

    private function failed(\Throwable $failure): void
    {
        if (!$this->failIfCancelled()) {
            $this->deferred?->error($failure);
            $this->deferred = null;
        }
    }

    /** Converts an exception of the task into the exception that a pool would throw for a task in a worker. */
    public static function failure(\Throwable $thrown, mixed $key): \Throwable
    {
        return TaskOutcome::failure(WorkerProtocol::THROWN, ThrownFailure::pack($thrown), 1, $key);
    }

    private function report(mixed $value): void
    {
        $bytes = ValueSerializer::serialize($value, 'The report');
        $onReport = $this->onReport;
        if ($onReport !== null) {
            $decode = static fn(): mixed => ValueSerializer::unserialize($bytes, TaskCode::MISSING);
            ReportDelivery::deliver($decode, $onReport);
        }
    }
}
