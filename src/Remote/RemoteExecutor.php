<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Amp\Future;
use Spindle\Internal\LoadedFiles;
use Spindle\Remote\Internal\QueueName;
use Spindle\Remote\Internal\RemoteMap;
use Spindle\Remote\Internal\Sender;
use Spindle\Worker\Executor;
use Spindle\Worker\PortableTask;
use Spindle\Worker\UnserializableException;

/**
 * Runs tasks on other machines: those where `spindle work` serves the queue.
 *
 * A task may run more than once, when a machine or a worker dies; it has one outcome, that of the first run that ended. A task
 * that must not be done twice asks {@see \Spindle\Worker\TaskContext::$idempotencyKey} and {@see \Spindle\Worker\TaskContext::$attempt}.
 */
final class RemoteExecutor implements Executor
{
    private readonly Sender $sender;

    /**
     * @param Keys|null $keys that sign; null for those of the file that SPINDLE_KEY_FILE names
     *
     * @throws KeyFileException
     * @throws \ValueError      when the queue can't be called so
     */
    public function __construct(
        Broker $broker,
        string $queue,
        ?Keys $keys = null,
        JobRetryPolicy $retries = new JobRetryPolicy(),
        RemoteOptions $options = new RemoteOptions(),
    ) {
        LoadedFiles::mark();
        $this->sender = new Sender($broker, QueueName::check($queue), $keys ?? Keys::fromEnvironment(), $retries, $options);
    }

    /** Forbidden: a copy would share what the original owns. */
    private function __clone() {}

    /**
     * As {@see Executor::submit()}, and returns when the engine has confirmed the task: see {@see Broker::tier()} for what that means.
     *
     * @throws QueueFullException
     * @throws PayloadTooLargeException
     * @throws BrokerException          when the engine does not answer; it may have the task all the same
     */
    public function submit(callable $task, ?Cancellation $cancellation = null): Future
    {
        return $this->sender->submit(PortableTask::encode($task), $cancellation);
    }

    /**
     * Has a task done for which nobody need wait: this process may end. Returns its id when the engine has confirmed it; by that its outcome
     * can be had for an hour, see {@see attach()}.
     *
     * @param string|null $id    of the caller's own, such as the number of an order; null for a new one. While the queue has a task of this id or keeps
     *                           its outcome, the same task is accepted and not run again, whatever its key and delay. A different task is refused,
     *                           also a closure with the same text from another place of the code
     * @param string      $key   tasks of one key never run at the same time
     * @param float       $delay seconds of the engine's clock before it may run
     *
     * @throws UnserializableException
     * @throws QueueFullException
     * @throws PayloadTooLargeException
     * @throws JobConflictException     when the id belongs to a different task: other code, values, retries or timeout
     * @throws BrokerException          when the engine does not answer; with an id of one's own it can be dispatched again
     * @throws \ValueError             when the id, the key or the delay can't be so
     */
    public function dispatch(callable $task, ?string $id = null, string $key = '', float $delay = 0.0): string
    {
        return $this->sender->dispatch(PortableTask::encode($task), $id ?? bin2hex(random_bytes(12)) . '-', $key, $delay);
    }

    /**
     * The outcome of a task that was dispatched, by this process or another one. The future fails with {@see JobLostException} when there is no such
     * task, or its outcome is not kept any more.
     *
     * Cancellation: the task is ended, as one that was submitted.
     *
     * @return Future<mixed>
     *
     * @throws \ValueError when there can be no such id
     */
    public function attach(string $id, ?Cancellation $cancellation = null): Future
    {
        return $this->sender->attach($id, $cancellation);
    }

    /**
     * Where a task is that was dispatched; null when nothing is known of it. It can be asked again and again: unlike
     * {@see attach()}, nothing is changed by that. A task that waits for another one of its key is waiting.
     *
     * @throws BrokerException
     * @throws \ValueError when there can be no such id
     */
    public function status(string $id): ?JobStatus
    {
        return $this->sender->status($id);
    }

    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return (new RemoteMap($this->sender, $input, PortableTask::encode($task), true))->results($cancellation);
    }

    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return (new RemoteMap($this->sender, $input, PortableTask::encode($task), false))->results($cancellation);
    }
}
