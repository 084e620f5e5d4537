<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Spindle\Internal\CpuCount;
use Spindle\Statistics;
use Spindle\Worker\Internal\Context;
use Spindle\Worker\Internal\ContextEvents;
use Spindle\Worker\Internal\Dispatcher;
use Spindle\Worker\Internal\HostedContext;
use Spindle\Worker\Internal\MapRun;
use Spindle\Worker\Internal\Process\Boot;
use Spindle\Worker\Internal\ProcessContext;
use Spindle\Worker\Internal\Protocol;
use Spindle\Worker\Internal\Settings;
use Spindle\Worker\Internal\Submission;
use Spindle\Worker\Internal\TaskCode;

/**
 * Runs PHP callables on every core, in workers that live for many tasks.
 *
 * Workers are started as there is work for them. They load what Composer autoloads in this process, not its main script.
 * They end with the pool: after {@see close()}, {@see kill()}, or when nothing refers to it any more and the tasks that it
 * was given have their outcomes. When this process dies, they and all that their tasks have started do as well.
 */
final class WorkerPool implements Executor, Statistics
{
    /** So deep may pools be that are made by tasks of pools. */
    private const DEPTH = 4;

    private readonly Dispatcher $dispatcher;
    private readonly Settings $settings;
    private readonly int $owner;

    /**
     * @param int|null            $workers at once; null for as many as there are usable CPUs, or in a task, for its share of them
     * @param int|TaskRetryPolicy $retries further attempts for a task that fails, with the policy's defaults; 0 for none
     *
     * @throws \ValueError              when there are to be less than 1, or the retries are below 0 or above 1,000,000,000
     * @throws UnserializableException  when the initialiser can't be sent to a worker
     * @throws ContextUnavailableException
     * @throws WorkerStartException     when a task makes a pool and is itself run by one that a task has made, four deep
     */
    public function __construct(
        ?int $workers = null,
        int|TaskRetryPolicy $retries = 0,
        WorkerPoolOptions $options = new WorkerPoolOptions(),
    ) {
        $size = self::atLeastOne($workers ?? max(1, intdiv((new CpuCount())->usable(), Boot::siblings())));
        if (Boot::depth() >= self::DEPTH) {
            throw WorkerStartException::impossible('this task runs in a pool that was made by a task that runs in a pool, and so on: ' . self::DEPTH . ' is as deep as it may be');
        }
        $this->owner = (int) getmypid();
        $this->settings = $settings = new Settings($options);
        $this->dispatcher = new Dispatcher(
            $size,
            \is_int($retries) ? new TaskRetryPolicy($retries) : $retries,
            $options,
            $settings,
            static fn(ContextEvents $events): Context => self::context($options, $settings, $events),
        );
    }

    public function __destruct()
    {
        if ($this->owner === getmypid()) {
            $this->dispatcher->release();
        }
    }

    /** Forbidden: closing a copy would close the original. */
    private function __clone() {}

    public function submit(callable $task, ?Cancellation $cancellation = null): Future
    {
        $this->mustBeUsable();
        $code = TaskCode::encode($task, $this->settings->key, $isPure);
        $this->dispatcher->mustBeOpen(); // what the task has captured may have closed the pool while it was serialized
        /** @var DeferredFuture<mixed> $deferred */
        $deferred = new DeferredFuture();
        if ($cancellation?->isRequested() === true) {
            try {
                $cancellation->throwIfRequested();
            } catch (CancelledException $cancelled) {
                $deferred->error($cancelled);
            }

            return $deferred->getFuture();
        }
        $submission = new Submission($code, $isPure ? Protocol::STRING : Protocol::SERIALIZED, $deferred);
        if ($cancellation !== null) {
            $this->watch($submission, $cancellation);
        }
        $this->dispatcher->submit($submission, $cancellation);

        return $deferred->getFuture();
    }

    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return $this->run($input, $task, true, $cancellation);
    }

    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return $this->run($input, $task, false, $cancellation);
    }

    /**
     * Changes how many workers there are. When it is lowered, tasks that run finish first.
     *
     * @throws \ValueError          when it is below 1
     * @throws PoolClosedException in a fork of the process that made the pool
     */
    public function resize(int $workers): void
    {
        $this->mustBeOurs();
        $this->dispatcher->resize(self::atLeastOne($workers));
    }

    /**
     * Takes no more tasks, and returns when those that it has have their outcomes and the workers have stopped. Loops over
     * results that are under way get those of the input that was read, then PoolClosedException if there was more. The items of
     * a task that is a generator are its outcome: close() waits until they have been read, or the generator was let go.
     */
    public function close(): void
    {
        $this->mustBeOurs();
        $this->dispatcher->close();
    }

    /** Ends all workers, and what their tasks have started, at once: tasks without an outcome fail with PoolClosedException. */
    public function kill(): void
    {
        $this->mustBeOurs();
        $this->dispatcher->kill();
    }

    /**
     * Workers that are in use, of so many at most, and so many that there are; tasks that were submitted and wait for one; and
     * tasks that were run, each attempt for itself: all of them, those that failed, and those whose worker died of them.
     */
    public function statistics(): array
    {
        return $this->dispatcher->figures();
    }

    /** @return array<string, mixed> nothing that may be secret */
    public function __debugInfo(): array
    {
        return ['workers' => $this->dispatcher->size()];
    }

    /**
     * @param iterable<mixed, mixed> $input
     *
     * @return \Generator<mixed, mixed>
     */
    private function run(iterable $input, callable $task, bool $inOrder, ?Cancellation $cancellation): \Generator
    {
        $this->mustBeUsable();
        $run = new MapRun($this->dispatcher, $input, TaskCode::encode($task, $this->settings->key), $inOrder);

        return $run->results($cancellation, $this);
    }

    private function watch(Submission $submission, Cancellation $cancellation): void
    {
        $dispatcher = \WeakReference::create($this->dispatcher);
        $watched = \WeakReference::create($submission);
        $id = $cancellation->subscribe(static function (CancelledException $cancelled) use ($dispatcher, $watched): void {
            $submission = $watched->get();
            if ($submission !== null) {
                $dispatcher->get()?->cancel($submission, $cancelled);
            }
        });
        $submission->ended = static fn() => $cancellation->unsubscribe($id);
    }

    private function mustBeUsable(): void
    {
        $this->mustBeOurs();
        $this->dispatcher->mustBeOpen();
    }

    /** @throws PoolClosedException */
    private function mustBeOurs(): void
    {
        if ($this->owner !== getmypid()) {
            throw PoolClosedException::forked();
        }
    }

    /** @throws ContextUnavailableException */
    private static function context(WorkerPoolOptions $options, Settings $settings, ContextEvents $events): Context
    {
        $isHere = $options->php === null && \PHP_SAPI === 'cli'; // or the command-line PHP may have more than this one
        $processes = static fn(ContextEvents $events): ProcessContext => new ProcessContext($events, $options->php, $settings->phpOptions(), $options->grace);

        return match ($options->context) {
            WorkerContext::Process => $processes($events),
            WorkerContext::Fork => !$isHere || (\function_exists('pcntl_fork') && \function_exists('posix_kill'))
                ? new HostedContext($events, 'fork', $processes, $options->grace)
                : throw ContextUnavailableException::forks(),
            WorkerContext::Thread => !$isHere || class_exists('parallel\\Runtime')
                ? new HostedContext($events, 'thread', $processes, $options->grace)
                : throw ContextUnavailableException::threads(),
        };
    }

    private static function atLeastOne(int $workers): int
    {
        return $workers >= 1 ? $workers : throw new \ValueError("A pool has 1 or more workers, not {$workers}");
    }
}
