<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Amp\Future;
use Spindle\Remote\Internal\Client;
use Spindle\Remote\Internal\QueueName;
use Spindle\Remote\Internal\RemoteMap;
use Spindle\Remote\Internal\Sender;
use Spindle\Worker\Executor;
use Spindle\Worker\PortableTask;

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
        $this->sender = new Sender(Client::of($broker), QueueName::check($queue), $keys ?? Keys::fromEnvironment(), $retries, $options);
    }

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

    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return (new RemoteMap($this->sender, $input, PortableTask::encode($task), true))->results($cancellation);
    }

    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return (new RemoteMap($this->sender, $input, PortableTask::encode($task), false))->results($cancellation);
    }
}
