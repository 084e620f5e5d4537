<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\Job;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Worker\ExecutorClosedException;

use function Amp\async;

/** Submits tasks and commands to one queue as jobs, and waits for their outcomes. */
final class QueueClient
{
    /** Maximum seconds that a cancelled call or {@see kill()} waits until the engine confirms a job or cancellation. */
    public const CONFIRMATION_TIMEOUT = 1.0;

    /** Null once {@see close()} or kill() has ended. PHP then destroys an unused BrokerClient, with its mailbox. */
    private ?BrokerClient $brokerClient;

    private RemoteActivity $activity;

    public readonly JobCodec $codec;

    public function __construct(
        Broker $broker,
        public readonly string $queue,
        ?SigningKeys $keys,
        JobRetryPolicy $retryPolicy,
        public readonly RemoteOptions $options,
    ) {
        QueueName::check($queue);
        $this->codec = new JobCodec($queue, $keys ?? SigningKeys::fromEnvironment(), $retryPolicy, $options);
        $this->brokerClient = BrokerClient::of($broker);
        $this->activity = new RemoteActivity(MissingAgentWarning::of($options->logger, $queue));
    }

    /**
     * Returns the start of a job's body, which is the same for all jobs with this encoded function or command.
     *
     * @throws ExecutorClosedException
     */
    public function head(string $code): string
    {
        // In a fork, this call also replaces $brokerClient. So job(), which is called after head(), need not check for
        // forks: getmypid() is slow.
        $this->mustBeOpen();

        return $this->codec->head($code);
    }

    /**
     * @param string      $head     as {@see head()} returns it
     * @param string|null $argument encoded argument; null for a task without an argument
     * @param mixed       $key      key of the argument in the input of map(), for the error message
     *
     * @throws PayloadTooLargeException
     */
    public function job(string $head, ?string $argument, mixed $key = null): Job
    {
        $id = ($this->brokerClient ?? throw ExecutorClosedException::closed())->newId();

        return $this->codec->encodeJob($id, JobBody::ofTask($head, $argument), inputKey: $key);
    }

    /**
     * @param string $code as {@see \Spindle\Command\PortableCommand} encodes it
     *
     * @throws PayloadTooLargeException
     */
    public function commandJob(#[\SensitiveParameter] string $code): Job
    {
        return $this->codec->encodeJob($this->clientOrThrow()->newId(), JobBody::ofCommand($this->head($code)));
    }

    /**
     * Sends jobs. Returns N if the engine has accepted the first N of them. The others did not fit into the queue.
     *
     * @param list<Job> $jobs
     *
     * @throws QueueFullException|PayloadTooLargeException|BrokerException as from {@see Broker::submit()}
     */
    public function send(array $jobs, OutcomeReceiver $waiter, bool $checkIds = false): int
    {
        return $this->activity->send(fn(): int => $this->listening()->submit($this, $jobs, $waiter, $checkIds));
    }

    /**
     * Sends a job, and awaits no outcome. Returns 1 if the engine has accepted the job, and 0 if the queue is full.
     *
     * @throws \Spindle\Remote\JobConflictException|BrokerException|CancelledException
     */
    public function dispatch(Job $job, ?Cancellation $cancellation): int
    {
        return $this->request(fn(): int => $this->queueOrThrow()->outbox->send($this, [$job], true), $cancellation);
    }

    public function attach(RemoteSubmission $submission): void
    {
        $this->listening()->attach($submission->id, $submission);
    }

    /** @throws BrokerException|CancelledException */
    public function status(string $id, ?Cancellation $cancellation): ?JobStatus
    {
        $request = fn(): ?JobStatus => $this->clientOrThrow()->broker->status($this->queue, $id);

        return $this->request($request, $cancellation);
    }

    /**
     * Cancels a dispatched job. Returns whether the job was unfinished. While the engine is not available, retries for
     * `$brokerRetryTimeout`.
     *
     * @throws BrokerException|CancelledException
     */
    public function cancelDispatched(string $id, ?Cancellation $cancellation): bool
    {
        $request = fn(bool $isRepeated): bool => match ($this->clientOrThrow()->broker->cancelAndRecord(
            $this->queue,
            [$id],
        )[$id] ?? null) {
            JobStatus::Waiting, JobStatus::Delayed, JobStatus::Running => true,
            JobStatus::Cancelled => $isRepeated, // the first request has cancelled the job, and its answer was lost
            default => false,
        };

        return $this->request(function () use ($id, $request): bool {
            $outbox = $this->queueOrThrow()->outbox;
            if ($outbox->isPending($id)) {
                $outbox->flush(); // the engine can't cancel a job that it does not have yet
            }

            return ReconnectBackoff::retry($this->options->brokerRetryTimeout, $request);
        }, $cancellation);
    }

    /**
     * Sends a request, and returns its answer.
     *
     * Cancellation: ends only the wait. The request continues in the background, and its answer is dropped.
     *
     * @template T
     *
     * @param \Closure(): T $request
     *
     * @return T
     */
    private function request(\Closure $request, ?Cancellation $cancellation): mixed
    {
        FiberSwitch::ensurePossible();
        if ($cancellation === null) {
            return $this->activity->request($request);
        }
        $cancellation->throwIfRequested();
        /** @var Future<T> $answer */
        $answer = async($this->activity->request(...), $request)->ignore();
        try {
            // close() waits for running calls of RemoteActivity::request(). The call above begins in a later turn of
            // the event loop. So this fiber makes a second call, which begins now. A cancellation ends only that call.
            return $this->activity->request(static fn(): mixed => $answer->await($cancellation));
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        }
    }

    /**
     * Sends a job as {@see send()} does. After a cancellation, waits up to CONFIRMATION_TIMEOUT for the answer. If none
     * arrives, calls $abandon and returns null. If the engine accepts the job later, this client then cancels the job.
     *
     * @param \Closure(CancelledException): void $abandon
     *
     * @throws QueueFullException when the engine is out of memory
     * @throws PayloadTooLargeException|BrokerException
     */
    public function sendUntilCancelled(
        Job $job,
        OutcomeReceiver $receiver,
        Cancellation $cancellation,
        \Closure $abandon,
    ): ?int {
        /** @var Future<int> $sending */
        $sending = async($this->send(...), [$job], $receiver);
        try {
            return $sending->await($cancellation);
        } catch (CancelledException $cancelled) {
            try {
                return $sending->await(new TimeoutCancellation(self::CONFIRMATION_TIMEOUT));
            } catch (CancelledException) {
                $abandon($cancelled);
                $this->cancelWhenSent($job, $sending);

                return null;
            }
        } catch (\FiberError $blocked) { // unlike Condition::wait(), await() throws no CannotWaitException
            $this->cancelWhenSent($job, $sending);

            throw CannotWaitException::because($blocked);
        }
    }

    /** @param Future<int> $sending */
    private function cancelWhenSent(Job $job, Future $sending): void
    {
        $this->activity->requestLater(function () use ($job, $sending): void {
            try {
                $sending->await();
            } catch (\Throwable) {
                return; // the engine has refused the job, or is not available
            }
            $this->cancel([$job->id]);
        });
    }

    /** @param list<string> $ids ids of jobs; waiters of a job are notified when the job is removed or has ended */
    public function cancel(array $ids): void
    {
        $this->activity->request(fn() => $this->shared()?->cancel($ids, true));
    }

    /**
     * Cancels jobs. A later callback of the event loop sends the request, unless {@see kill()} sends it earlier.
     *
     * @param list<string> $ids
     */
    public function cancelLater(array $ids): void
    {
        $queue = $this->shared();
        $queue?->addCancellations($ids, true);
        $this->activity->requestLater(static fn() => $queue?->cancel([], true));
    }

    /**
     * Calls $callback after `$brokerRetryTimeout`, or after CONFIRMATION_TIMEOUT if that is longer. Does not call
     * $callback if $owner was destroyed. The timer keeps the event loop running.
     *
     * @template T of object
     *
     * @param T                 $owner
     * @param \Closure(T): void $callback must be static
     */
    public function afterRetryTimeout(object $owner, \Closure $callback): string
    {
        return EventLoop::reference(WeakTimer::after($this->retryTimeout(), $owner, $callback));
    }

    public function cancelUnclaimed(string $id): void
    {
        $this->activity->request(fn() => $this->shared()?->cancel([$id], false));
    }

    /**
     * Verifies and decodes an outcome. The result of a generator task is a generator that reads the stored items.
     *
     * @param mixed       $key   key of the task's input in a map() call
     * @param SharedQueue $queue fetches the items, perhaps after this client was closed
     *
     * @throws InvalidSignatureException|\Spindle\Worker\TaskException|\Spindle\Worker\UnserializableException
     */
    public function result(string $id, string $frame, mixed $key, SharedQueue $queue): mixed
    {
        $outcome = $this->codec->outcome($id, $frame);
        if (OutcomeBody::itemCount($outcome) === null) {
            return OutcomeBody::read($outcome, $key, $id, $this->queue);
        }
        $stream = new StoredItems($this, $queue, $id, $key);
        $stream->onOutcome($frame);

        return $stream->items();
    }

    /** Returns the queue, which several clients share; null after the end of {@see close()} or {@see kill()}. */
    public function shared(): ?SharedQueue
    {
        return $this->brokerClient()?->queue($this->queue);
    }

    /** @throws ExecutorClosedException after the end of {@see close()} or {@see kill()} */
    public function queueOrThrow(): SharedQueue
    {
        return $this->clientOrThrow()->queue($this->queue);
    }

    /** Registers work that will await outcomes. {@see close()} waits for registered work, and {@see kill()} ends it. */
    public function begin(OutcomeReceiver $work): void
    {
        $this->activity->begin($work, $this->brokerClient?->broker);
    }

    /** Unregisters work when its outcome has arrived. Further calls have no effect. */
    public function end(OutcomeReceiver $work): void
    {
        $this->activity->end($work);
    }

    /** @throws ExecutorClosedException */
    public function mustBeOpen(): void
    {
        $this->brokerClient(); // in a fork, forgets the work of the parent process
        $this->activity->mustBeOpen();
    }

    /**
     * Refuses new jobs. Waits until all outcomes have arrived, and the engine has answered all requests. Then waits for
     * the engine to confirm cancellations, at most `$brokerRetryTimeout` or CONFIRMATION_TIMEOUT, whichever is longer.
     * Finally waits at most CONFIRMATION_TIMEOUT until the engine has dropped the outcomes that were received. Then
     * closes the mailbox, unless other clients use the mailbox.
     *
     * Cancellation: ends the unfinished work as {@see kill()} does.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation): void
    {
        $this->brokerClient();
        try {
            $this->activity->close($cancellation);
            $shared = $this->shared();
            if ($shared?->cancellations->hasPending() === true) {
                $this->flush($shared, $cancellation);
            }
        } catch (CancelledException $cancelled) {
            $this->kill();

            throw $cancelled;
        }
        $this->shared()?->removeWaitersOf($this); // waiters of unconfirmed cancellations
        $this->shared()?->receivedOutcomes->awaitDropped(self::CONFIRMATION_TIMEOUT, $cancellation);
        $this->brokerClient = null;
    }

    /**
     * Waits up to {@see retryTimeout()} seconds until the engine confirms the cancellations. kill() ends the wait.
     *
     * @throws CancelledException
     */
    private function flush(SharedQueue $queue, ?Cancellation $cancellation): void
    {
        $ending = new DeferredCancellation();
        $this->activity->requestLater(function () use ($queue, $ending): void {
            try {
                $queue->flush([], $this->retryTimeout(), $ending->getCancellation());
            } catch (CancelledException) {
                // The wait below has ended, so $ending was cancelled.
            }
        });
        try {
            $this->activity->close($cancellation);
        } finally {
            $ending->cancel();
        }
    }

    /**
     * Ends all work and cancels its jobs. If PHP can suspend the caller, waits up to CONFIRMATION_TIMEOUT until the
     * engine has confirmed the cancellations.
     */
    public function kill(): void
    {
        $queue = $this->shared();
        $this->activity->kill(ExecutorClosedException::jobsCancelled());
        $queue?->outbox->abandon($this, ExecutorClosedException::unconfirmed());
        $this->brokerClient = null;
        $ids = $queue?->removeWaitersOf($this) ?? [];
        if ($queue === null || $ids === [] && !$queue->cancellations->hasPending()) {
            return;
        }
        // If the engine does not confirm the cancellations during the wait below, $flushing finishes its last attempt
        // while the event loop runs. If the loop does not run, ProcessEnd sends the cancellations.
        $queue->cancellations->add($ids, true);
        $flush = static fn() => $queue->flush($ids, self::CONFIRMATION_TIMEOUT);
        $flushing = async(ProcessEnd::keepDuring(...), $queue, $flush)->ignore();
        FiberSwitch::awaitIfPossible($flushing, new TimeoutCancellation(self::CONFIRMATION_TIMEOUT));
    }

    private function retryTimeout(): float
    {
        return max(self::CONFIRMATION_TIMEOUT, $this->options->brokerRetryTimeout);
    }

    /** Returns the client, replaced in a fork or another event loop; null after the end of close() or kill(). */
    private function brokerClient(): ?BrokerClient
    {
        if ($this->brokerClient?->isOwn() === false) {
            $this->brokerClient = BrokerClient::of($this->brokerClient->broker);
            $this->activity = $this->activity->ofFork();
        }

        return $this->brokerClient;
    }

    /**
     * Opens the mailbox that receives the outcomes, and returns the queue.
     *
     * @throws ExecutorClosedException
     */
    private function listening(): SharedQueue
    {
        $client = $this->clientOrThrow();
        $client->openMailbox();

        return $client->queue($this->queue);
    }

    /** @throws ExecutorClosedException */
    private function clientOrThrow(): BrokerClient
    {
        return $this->brokerClient() ?? throw ExecutorClosedException::closed();
    }
}
