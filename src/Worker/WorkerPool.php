<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Spindle\Internal\CpuCount;
use Spindle\Internal\Launcher\LauncherChild;
use Spindle\Internal\MapsInput;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\UnreadResults;
use Spindle\LauncherException;
use Spindle\Statistics;
use Spindle\Worker\Internal\Context;
use Spindle\Worker\Internal\ContextEvents;
use Spindle\Worker\Internal\HostedContext;
use Spindle\Worker\Internal\MapRun;
use Spindle\Worker\Internal\Process\WorkerBoot;
use Spindle\Worker\Internal\ProcessContext;
use Spindle\Worker\Internal\Submission;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\Internal\TaskDispatcher;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\Internal\WorkerSettings;

/**
 * Runs PHP callables in parallel, by default on all usable CPUs. Each worker runs many tasks, one after the other.
 *
 * Workers start when there are tasks. A worker loads the Composer autoloaders of this process, but not its main script.
 * Workers end with the pool: after {@see close()} or {@see kill()}, or when no variable holds the pool and all
 * its tasks have outcomes. When this process dies, the workers and all processes that their tasks started end, too.
 */
final class WorkerPool implements Executor, Statistics
{
    use MapsInput;
    use NotCopyable;

    /** Maximum levels of nested pools. A pool that a task creates is one level deeper than the task's pool. */
    private const MAX_POOL_DEPTH = 4;

    private readonly TaskDispatcher $dispatcher;
    private readonly WorkerSettings $settings;

    /**
     * @param int|null            $workers number of workers; null for the number of usable CPUs. In a task, null means
     *                                     the usable CPUs divided by the number of workers of the task's pool
     * @param int|TaskRetryPolicy $retries a policy; or the number of retries, for a policy with default values. After a
     *                                     crash of its worker, a task is retried at most once
     *
     * @throws \ValueError              when $workers is below 1, or $retries is below 0 or above 1,000,000,000
     * @throws UnserializableException  when the option `initialize` cannot be serialized
     * @throws ContextUnavailableException
     * @throws LauncherException        when no command-line PHP is found, or PHP lacks a function that a pool needs
     * @throws WorkerStartException     when the calling task is in four nested pools, which is the maximum
     */
    public function __construct(
        ?int $workers = null,
        int|TaskRetryPolicy $retries = 0,
        WorkerPoolOptions $options = new WorkerPoolOptions(),
    ) {
        $size = self::atLeastOne($workers ?? max(1, intdiv((new CpuCount())->usable(), WorkerBoot::siblings())));
        if (WorkerBoot::depth() >= self::MAX_POOL_DEPTH) {
            throw WorkerStartException::impossible(
                'this task runs in ' . self::MAX_POOL_DEPTH . ' nested pools, which is the maximum.'
                    . ' Submit its tasks from an outer pool',
            );
        }
        LauncherChild::checkFunctions(
            ['stream_socket_server'],
            ', or run the tasks in this process with an InlineExecutor',
        );
        $this->settings = $settings = new WorkerSettings($options);
        $this->dispatcher = new TaskDispatcher(
            $size,
            \is_int($retries) ? new TaskRetryPolicy($retries) : $retries,
            $options,
            $settings,
            static fn(ContextEvents $events): Context => self::context($options, $settings, $events),
        );
    }

    public function __destruct()
    {
        if (isset($this->dispatcher) && !$this->dispatcher->isInFork()) {
            $this->dispatcher->poolDestroyed();
        }
    }

    public function submit(callable $task, ?Cancellation $cancellation = null): Future
    {
        $this->mustBeUsable();
        $code = TaskCode::encode($task, $this->settings->key, $isPure);
        $this->dispatcher->replaceOutdatedWorkers();
        $this->dispatcher->mustBeOpen(); // serialization may have run code that closed the pool, and so may the logger
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
        $submission = new Submission($code, $isPure ? WorkerProtocol::STRING : WorkerProtocol::SERIALIZED, $deferred);
        if ($cancellation !== null) {
            $this->watch($submission, $cancellation);
        }
        try {
            $this->dispatcher->submit($submission, $cancellation);
        } catch (\Throwable $failure) {
            $deferred->getFuture()->ignore();
            throw $failure;
        }

        return $deferred->getFuture();
    }

    /**
     * Changes the number of workers. When the number decreases, surplus workers stop after their current tasks.
     *
     * @throws \ValueError         when $workers is below 1
     * @throws ExecutorClosedException in a fork of the process that created the pool
     */
    public function resize(int $workers): void
    {
        $this->mustNotBeFork();
        $this->dispatcher->resize(self::atLeastOne($workers));
    }

    /**
     * Refuses new tasks, and waits until all accepted tasks have outcomes and the workers have stopped.
     *
     * A running map() still yields the results of the values that it has read. Then it throws ExecutorClosedException,
     * unless it had reached the end of the input before close(). map() reaches the end of an iterator only when it asks
     * for a value after the last one. If a loop over results calls close(), the pool keeps all further results of
     * this loop in memory, because the loop can't read them before close() returns. For a generator task, close() waits
     * until the task has ended or the caller's generator was destroyed. close() also waits for the next runs of tasks
     * that threw a {@see RetryLaterException}.
     *
     * Cancellation: ends the workers and the remaining tasks as {@see kill()} does.
     *
     * @throws CancelledException
     * @throws ExecutorClosedException in a fork of the process that created the pool
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->mustNotBeFork();
        $this->dispatcher->close($cancellation);
    }

    /**
     * Ends all workers and all processes that their tasks started, and blocks until they have ended. Tasks without
     * outcomes, running loops over results and open generators fail with ExecutorClosedException.
     *
     * @throws ExecutorClosedException in a fork of the process that created the pool
     */
    public function kill(): void
    {
        $this->mustNotBeFork();
        $this->dispatcher->kill();
    }

    /**
     * Cancels the submitted tasks that no worker has begun, and ends all map() calls. Tasks that have begun continue.
     *
     * @internal
     */
    public function cancelWaiting(): void
    {
        $this->mustNotBeFork();
        $this->dispatcher->cancelWaiting();
    }

    /**
     * Returns counts of workers and tasks.
     *
     * - `workers`: existing workers; `in_use`: workers with a task; `max`: the pool's size
     * - `waiting`: tasks without a worker: submitted, taken back from a worker before they began, waiting for a retry
     * - `attempts_total`: ended attempts; `failed_total`: failed ones; `crashed_total`: attempts whose worker crashed
     */
    public function statistics(): array
    {
        return $this->dispatcher->statistics();
    }

    /** @return array<string, mixed> only values that cannot be secret */
    public function __debugInfo(): array
    {
        return ['workers' => $this->dispatcher->size()];
    }

    /**
     * @param iterable<mixed, mixed> $input
     *
     * @return \Generator<mixed, mixed>
     */
    private function results(
        iterable $input,
        callable $task,
        ?Cancellation $cancellation,
        bool $inOrder,
        bool $keepsFailures,
    ): \Generator {
        $this->mustBeUsable();
        $code = TaskCode::encode($task, $this->settings->key);
        $run = new MapRun($this->dispatcher, $input, $code, $inOrder, $keepsFailures);

        return $run->results($cancellation, new UnreadResults('ran no task', $cancellation), $this);
    }

    private function watch(Submission $submission, Cancellation $cancellation): void
    {
        $dispatcher = \WeakReference::create($this->dispatcher);
        $watched = \WeakReference::create($submission);
        $id = $cancellation->subscribe(
            static function (CancelledException $cancelled) use ($dispatcher, $watched): void {
                $submission = $watched->get();
                if ($submission !== null) {
                    $dispatcher->get()?->cancel($submission, $cancelled);
                }
            },
        );
        $submission->onEnd = static fn() => $cancellation->unsubscribe($id);
    }

    private function mustBeUsable(): void
    {
        $this->mustNotBeFork();
        $this->dispatcher->mustBeOpen();
    }

    private function mustNotBeFork(): void
    {
        if ($this->dispatcher->isInFork()) {
            throw ExecutorClosedException::forked();
        }
    }

    private static function context(
        WorkerPoolOptions $options,
        WorkerSettings $settings,
        ContextEvents $events,
    ): Context {
        // The extensions are checked only if the workers run the same PHP as this process.
        $isHere = $options->php === null && \PHP_SAPI === 'cli';
        $createProcessContext = static fn(ContextEvents $events): ProcessContext
            => new ProcessContext($events, $options->php, $settings->phpOptions(), $options->gracePeriod);
        $advice = $settings->startAdvice();

        return match ($options->context) {
            WorkerContext::Process => $createProcessContext($events),
            WorkerContext::Fork => !$isHere || (\function_exists('pcntl_fork') && \function_exists('posix_kill'))
                ? new HostedContext($events, 'fork', $createProcessContext, $options->gracePeriod, $advice)
                : throw ContextUnavailableException::forks(),
            WorkerContext::Thread => !$isHere || class_exists('parallel\\Runtime')
                ? new HostedContext($events, 'thread', $createProcessContext, $options->gracePeriod, $advice)
                : throw ContextUnavailableException::threads(),
        };
    }

    private static function atLeastOne(int $workers): int
    {
        return $workers >= 1 ? $workers : throw new \ValueError("A pool must have 1 or more workers, not {$workers}");
    }
}
