<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\Future;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\LoadedFiles;
use Spindle\Internal\MapsInput;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\UnreadResults;
use Spindle\Remote\Internal\JobBody;
use Spindle\Remote\Internal\QueueClient;
use Spindle\Remote\Internal\RemoteMap;
use Spindle\Remote\Internal\RemoteSubmission;
use Spindle\Worker\Executor;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\PortableTask;
use Spindle\Worker\UnserializableException;

/**
 * Runs tasks on the machines where `spindle work` serves the queue.
 *
 * A task in a queue is called a job. The queue is in the engine: the Redis or Valkey server of a {@see RedisBroker}.
 *
 * If a machine or a worker dies, its tasks run again in other workers. Each task has only one outcome: the engine
 * accepts an outcome only from the `spindle work` process that was the last to take the task. If the effects of a task
 * must not happen twice, the task can use {@see \Spindle\Worker\TaskContext::$idempotencyKey} and
 * {@see \Spindle\Worker\TaskContext::$attempt}.
 */
final class RemoteExecutor implements Executor
{
    use MapsInput;
    use NotCopyable;

    private readonly QueueClient $client;

    /**
     * @param SigningKeys|null $keys        null to read the file that SPINDLE_KEY_FILE names
     * @param JobRetryPolicy   $retryPolicy how often a failed or crashed task is retried
     *
     * @throws KeyFileException
     * @throws \ValueError      when the queue name is not valid
     */
    public function __construct(
        Broker $broker,
        string $queue,
        ?SigningKeys $keys = null,
        JobRetryPolicy $retryPolicy = new JobRetryPolicy(),
        RemoteOptions $options = new RemoteOptions(),
    ) {
        LoadedFiles::record();
        $this->client = new QueueClient($broker, $queue, $keys, $retryPolicy, $options);
    }

    /**
     * Submits a task as {@see Executor::submit()} does, and returns when the engine has stored the task.
     * {@see Broker::durability()} returns whether the engine can still lose the task.
     *
     * Cancellation: removes a waiting task from the queue, and ends a running task. The future fails when the task has
     * ended. If the engine does not confirm the cancellation, the future fails after
     * {@see RemoteOptions::$brokerRetryTimeout} or after one second, whichever is longer.
     *
     * @throws QueueFullException
     * @throws PayloadTooLargeException
     * @throws BrokerException          when the engine does not answer; the task may be in the queue
     */
    public function submit(callable $task, ?Cancellation $cancellation = null): Future
    {
        $job = $this->client->job($this->client->head(PortableTask::encode($task)), null);
        if ($cancellation?->isRequested() === true) {
            return \Amp\async($cancellation->throwIfRequested(...));
        }
        FiberSwitch::ensurePossible();
        $submission = new RemoteSubmission($this->client, $job->id, $cancellation);
        $this->client->begin($submission);
        try {
            $accepted = $cancellation === null
                ? $this->client->send([$job], $submission)
                : $this->client->sendUntilCancelled($job, $submission, $cancellation, $submission->fail(...));
            if ($accepted === 0) {
                throw QueueFullException::of($this->client->queue, $this->client->options->maxJobs);
            }
        } catch (\Throwable $failure) {
            $submission->finish();

            throw $failure;
        }

        $submission->cancelWhenRequested();

        return $submission->future();
    }

    /**
     * Adds a task to the queue, and returns the task's id when the engine has stored the task. The task runs even after
     * this process has exited. {@see attach()} returns the outcome, which the engine keeps for an hour by default. The
     * task is called without arguments. To pass values to the task, use a closure that captures the values.
     *
     * Cancellation: immediately ends the wait for the engine, but does not cancel the task. The task may already be in
     * the queue, or be added later, because sending is retried for {@see RemoteOptions::$brokerRetryTimeout}. With an
     * $id, the caller can dispatch the same task again or {@see attach()} to it. Without $id, the task can't be found.
     *
     * @param string|null $id           an id that the caller chooses, such as an order number: 1 to 128 printable ASCII
     *                                  characters without spaces; null for a random id. While the queue has a task with
     *                                  this id or keeps its outcome, dispatching the same task again has no effect, and
     *                                  the new $exclusiveKey and $delay are ignored. A different task is refused. A
     *                                  closure at another place in the code is a different task
     * @param string|null $exclusiveKey name of a lock: tasks with the same key never run at the same time; null or ''
     *                                  for none
     * @param float       $delay        seconds before the task can run, by the engine's clock
     *
     * @throws UnserializableException
     * @throws QueueFullException
     * @throws PayloadTooLargeException
     * @throws JobConflictException     when the id belongs to a task with other code, values, retry policy or timeout
     * @throws BrokerException          when the engine does not answer; a second call with the same $id is safe
     * @throws ExecutorClosedException
     * @throws CancelledException
     * @throws \ValueError              when the task needs arguments, or the id, the key or the delay is not valid
     */
    public function dispatch(
        callable $task,
        ?string $id = null,
        ?string $exclusiveKey = null,
        float $delay = 0.0,
        ?Cancellation $cancellation = null,
    ): string {
        $id ??= bin2hex(random_bytes(12)) . '-';
        $code = PortableTask::encode($task);
        $closure = $task(...);
        if ((new \ReflectionFunction($closure))->getNumberOfRequiredParameters() > 0) {
            throw new \ValueError(
                PortableTask::name($code) . ' needs arguments, but a dispatched task gets none, and the second argument'
                    . ' of dispatch() is the id. Dispatch a closure that passes them, such as fn() => send($order)',
            );
        }
        $body = JobBody::ofTask($this->client->head($code), null);
        $job = $this->client->codec->encodeJob(Job::storedId($id), $body, $exclusiveKey ?? '', $delay);
        try {
            $accepted = $this->client->dispatch($job, $cancellation);
        } catch (JobConflictException $conflict) {
            $name = PortableTask::name($code);

            throw str_starts_with($name, 'closure at ') ? $conflict->withClosure($name) : $conflict;
        }

        return $accepted > 0
            ? $id
            : throw QueueFullException::of($this->client->queue, $this->client->options->maxJobs);
    }

    /**
     * Returns a future with the outcome of the task that this or another process has dispatched with the id $id. The
     * future fails with a {@see JobCancelledException} if the task was cancelled, and with a {@see JobLostException} if
     * the task is unknown or its outcome has expired.
     *
     * Cancellation: ends the wait immediately, but not the task: the future fails with the CancelledException, and
     * attach() can be called again. While a generator task runs, this also ends a foreach loop over its items. Items
     * that this loop has taken are gone. {@see cancel()} ends the task.
     *
     * @return Future<mixed>
     *
     * @throws ExecutorClosedException
     * @throws \ValueError when {@see dispatch()} would refuse the id
     */
    public function attach(string $id, ?Cancellation $cancellation = null): Future
    {
        $this->client->mustBeOpen();
        $submission = new RemoteSubmission($this->client, Job::storedId($id), $cancellation, true);
        if ($cancellation?->isRequested() === true) {
            return \Amp\async($cancellation->throwIfRequested(...));
        }
        FiberSwitch::ensurePossible();
        $this->client->begin($submission);
        $this->client->attach($submission);

        $submission->cancelWhenRequested();

        return $submission->future();
    }

    /**
     * Cancels a task that this or another process has dispatched with the id $id, and returns whether the task was
     * unfinished. A task that no agent has claimed is removed from the queue. If an agent runs the task, the agent is
     * asked to end it, and this method does not wait for the end. If the task finishes before the agent gets the
     * request, the outcome is the task's result. Otherwise, the task does not run again, even if its agent is lost.
     *
     * The futures of {@see attach()} then fail with a {@see JobCancelledException}. {@see status()} returns
     * {@see JobStatus::Cancelled} for an hour, or for a running task as long as its agent keeps outcomes. In this time,
     * the id stays in use: {@see dispatch()} with the same id and task has no effect. So a repeated dispatch() whose
     * first answer was lost does not undo the cancellation. A second call of cancel() is harmless. While the engine is
     * not available, the request is retried for {@see RemoteOptions::$brokerRetryTimeout}.
     *
     * Cancellation: immediately ends the wait for the engine. The task may be cancelled later.
     *
     * @return bool true if the task was waiting, delayed or running; false if it is unknown or had ended before
     *
     * @throws BrokerException         when the engine does not answer; a second call is safe
     * @throws ExecutorClosedException
     * @throws CancelledException
     * @throws \ValueError             when {@see dispatch()} would refuse the id
     */
    public function cancel(string $id, ?Cancellation $cancellation = null): bool
    {
        $this->client->mustBeOpen();

        return $this->client->cancelDispatched(Job::storedId($id), $cancellation);
    }

    /**
     * Returns the status of a dispatched task; null for an unknown task. A task that waits for another task with the
     * same exclusive key has the status {@see JobStatus::Waiting}.
     *
     * Cancellation: ends the wait for the engine immediately.
     *
     * @throws BrokerException
     * @throws ExecutorClosedException
     * @throws CancelledException
     * @throws \ValueError        when {@see dispatch()} would refuse the id
     */
    public function status(string $id, ?Cancellation $cancellation = null): ?JobStatus
    {
        $this->client->mustBeOpen();

        return $this->client->status(Job::storedId($id), $cancellation);
    }

    /**
     * Refuses new tasks. Waits for the outcomes of all tasks of {@see submit()} and {@see attach()}, and for the
     * results of all values that a running {@see map()} has read. Also waits until the engine has confirmed the
     * dispatches and cancellations of this executor, or their retries have ended. Dispatched tasks stay in the queue.
     *
     * A running map() yields the results of the values that it has read. Then map() throws ExecutorClosedException,
     * unless the input is an array that map() has read completely. For a generator task, close() waits until the
     * generator has ended on its agent. The generator's items can be read even after close().
     *
     * When all outcomes have arrived, this method waits at most a second until the engine has dropped them. Finally,
     * this method releases the broker. When the last executor of a broker object is closed, the connection for outcomes
     * is closed. The connection for requests is closed when PHP destroys the broker object.
     *
     * Cancellation: ends unfinished tasks and waits as {@see kill()} does.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->client->close($cancellation);
    }

    /**
     * Cancels all tasks of {@see submit()} and {@see map()} whose outcomes this executor awaits. Running tasks are
     * ended. The futures of these tasks and of {@see attach()} fail with ExecutorClosedException. Loops over the
     * results of map() or over a generator's items throw this exception. Dispatched tasks stay in the queue, and
     * continue.
     *
     * Suspends for at most a second, until the engine has confirmed the cancellations. If a cancellation does not reach
     * the engine, the task continues, and the engine drops the outcome after {@see AgentOptions::$outcomeRetention}.
     */
    public function kill(): void
    {
        $this->client->kill();
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
        $map = new RemoteMap($this->client, $input, PortableTask::encode($task), $inOrder, $keepsFailures);

        return $map->results($cancellation, new UnreadResults('ran no task', $cancellation));
    }
}
