<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\Future;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\IsolatedCall;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Broker;
use Spindle\Remote\Job;
use Spindle\Remote\JobLostException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\TamperedFrameException;
use Spindle\Worker\PortableOutcome;

use function Amp\async;

/** Turns tasks and commands into jobs of one queue, and outcomes into results. */
final class QueueClient
{
    /** Seconds that the engine has to confirm a job or its withdrawal after a cancellation. */
    public const CONFIRMATION_TIMEOUT = 1.0;

    private BrokerClient $brokerClient;

    public function __construct(
        private readonly Broker $broker,
        public readonly string $queue,
        private readonly SigningKeys $keys,
        private readonly JobRetryPolicy $retryPolicy,
        public readonly RemoteOptions $options,
    ) {
        $this->brokerClient = BrokerClient::of($broker);
    }

    /** Returns the start of the job's body, which is the same for all tasks with this code. */
    public function head(string $code): string
    {
        $this->brokerClient = $this->brokerClient(); // here once for all tasks of a map, because getmypid() is slow

        return TaskBody::head($this->retryPolicy, $this->options->timeout, $code);
    }

    /**
     * @param string      $head     as {@see head()} returns it
     * @param string|null $argument encoded; null for a task without an argument
     *
     * @throws PayloadTooLargeException
     */
    public function job(string $head, ?string $argument): Job
    {
        return $this->sealedJob($this->brokerClient->newId(), TaskBody::ofTask($head, $argument), '', 0.0);
    }

    /**
     * Sends a job whose outcome is not awaited here, and returns its id.
     *
     * @throws QueueFullException
     * @throws PayloadTooLargeException
     * @throws \Spindle\Remote\JobConflictException
     * @throws \Spindle\Remote\BrokerException
     * @throws CancelledException
     */
    public function dispatch(
        string $code,
        string $id,
        string $exclusiveKey,
        float $delay,
        ?Cancellation $cancellation,
    ): string {
        $body = TaskBody::ofTask($this->head($code), null);
        $job = $this->sealedJob(Job::storedId($id), $body, $exclusiveKey, $delay);
        $dispatch = fn(): int => $this->brokerClient()->dispatch($this->queue, $this->options, $job);
        if (self::untilCancelled($dispatch, $cancellation) === 0) {
            throw QueueFullException::of($this->queue, $this->options->maxJobs);
        }

        return $id;
    }

    /**
     * @param string $code as {@see \Spindle\Command\PortableCommand} encodes it
     *
     * @throws PayloadTooLargeException
     */
    public function commandJob(#[\SensitiveParameter] string $code): Job
    {
        return $this->sealedJob($this->brokerClient()->newId(), TaskBody::ofCommand($this->head($code)), '', 0.0);
    }

    /**
     * Sends a job. Returns 1 when the engine has accepted it, and 0 when the queue is full.
     *
     * @throws QueueFullException when the engine is out of memory
     * @throws \Spindle\Remote\BrokerException
     */
    public function send(Job $job, OutcomeReceiver $waiter): int
    {
        return $this->sendAll([$job], $waiter);
    }

    /**
     * Sends jobs. Returns how many of them the engine has accepted, from the start of the list.
     *
     * @param list<Job> $jobs
     *
     * @throws QueueFullException when the engine is out of memory
     * @throws \Spindle\Remote\BrokerException
     */
    public function sendAll(array $jobs, OutcomeReceiver $waiter): int
    {
        return $this->brokerClient()->submit($this->queue, $this->options, $jobs, $waiter);
    }

    /**
     * @throws \Spindle\Remote\BrokerException
     * @throws CancelledException
     * @throws \ValueError
     */
    public function status(string $id, ?Cancellation $cancellation): ?JobStatus
    {
        $id = Job::storedId($id);

        return self::untilCancelled(fn(): ?JobStatus => $this->broker->status($this->queue, $id), $cancellation);
    }

    /**
     * Waits until the request is answered or $cancellation is requested. A cancelled request continues in the
     * background, and its answer is dropped.
     *
     * @template T
     *
     * @param \Closure(): T $request
     *
     * @return T
     */
    private static function untilCancelled(\Closure $request, ?Cancellation $cancellation): mixed
    {
        if ($cancellation === null) {
            return $request();
        }
        $cancellation->throwIfRequested();
        /** @var Future<T> $answer */
        $answer = async($request);
        try {
            return $answer->ignore()->await($cancellation);
        } catch (\FiberError $blocked) {
            throw CannotWaitException::because($blocked);
        }
    }

    /**
     * @return Future<mixed>
     *
     * @throws \ValueError
     */
    public function attach(string $id, ?Cancellation $cancellation): Future
    {
        $id = Job::storedId($id);
        $submission = new RemoteSubmission($this, $id);
        $this->brokerClient()->attach($this->queue, $id, $submission);
        if ($cancellation !== null) {
            $submission->cancelOn($cancellation);
        }

        return $submission->future();
    }

    /**
     * @return Future<mixed>
     *
     * @throws QueueFullException
     * @throws PayloadTooLargeException
     * @throws \Spindle\Remote\BrokerException
     */
    public function submit(string $code, ?Cancellation $cancellation): Future
    {
        $job = $this->job($this->head($code), null);
        if ($cancellation?->isRequested() === true) {
            return \Amp\async($cancellation->throwIfRequested(...));
        }
        $submission = new RemoteSubmission($this, $job->id);
        $accepted = $cancellation === null
            ? $this->send($job, $submission)
            : $this->sendUntilCancelled($job, $submission, $cancellation, $submission->fail(...));
        if ($accepted === 0) {
            throw QueueFullException::of($this->queue, $this->options->maxJobs);
        }
        if ($cancellation !== null) {
            $submission->cancelOn($cancellation);
        }

        return $submission->future();
    }

    /**
     * Sends a job as {@see send()} does. After a cancellation, this method waits for CONFIRMATION_TIMEOUT. If no answer
     * has arrived by then, the method calls $abandon and returns null. The job is withdrawn when the engine answers.
     *
     * @param \Closure(CancelledException): void $abandon
     *
     * @throws QueueFullException when the engine is out of memory
     * @throws PayloadTooLargeException
     * @throws \Spindle\Remote\BrokerException
     */
    public function sendUntilCancelled(
        Job $job,
        OutcomeReceiver $receiver,
        Cancellation $cancellation,
        \Closure $abandon,
    ): ?int {
        /** @var Future<int> $sending */
        $sending = async($this->send(...), $job, $receiver);
        try {
            return $sending->await($cancellation);
        } catch (CancelledException $cancelled) {
            try {
                return $sending->await(new TimeoutCancellation(self::CONFIRMATION_TIMEOUT));
            } catch (CancelledException) {
                $abandon($cancelled);
                $sending->map(fn() => $this->withdraw([$job->id]))->ignore();

                return null;
            }
        } catch (\FiberError $blocked) { // thrown by the future, which does not wait with Fibers::suspend()
            $sending->map(fn() => $this->withdraw([$job->id]))->ignore();

            throw CannotWaitException::because($blocked);
        }
    }

    /** @param list<string> $ids the waiter of a job is notified when the job is removed, or has ended on its agent */
    public function withdraw(array $ids): void
    {
        $this->brokerClient()->withdraw($this->queue, $ids, true);
    }

    /**
     * Calls $callback after the patience, at least after CONFIRMATION_TIMEOUT, unless $owner was destroyed by then. The
     * timer keeps the loop running.
     *
     * @template T of object
     *
     * @param T                 $owner
     * @param \Closure(T): void $callback must be static
     */
    public function afterPatience(object $owner, \Closure $callback): string
    {
        return EventLoop::reference(WeakTimer::after(
            max(self::CONFIRMATION_TIMEOUT, $this->options->patience),
            $owner,
            $callback,
        ));
    }

    public function isWithdrawalPending(string $id): bool
    {
        return $this->brokerClient()->isWithdrawalPending($this->queue, $id);
    }

    public function withdrawUnclaimed(string $id): void
    {
        $this->brokerClient()->withdraw($this->queue, [$id], false);
    }

    public function removeWaiter(string $id): void
    {
        $this->brokerClient()->removeWaiter($this->queue, $id);
    }

    public function replaceWaiter(string $id, OutcomeReceiver $old, OutcomeReceiver $new): void
    {
        $this->brokerClient()->replaceWaiter($this->queue, $id, $old, $new);
    }

    /** Returns whether this process created the id, so that no other process knows it. */
    public function isOwn(string $id): bool
    {
        return $this->brokerClient->isOwn($id);
    }

    public function stopTakingItems(string $id): void
    {
        $this->brokerClient()->stopTakingItems($this->queue, $id);
    }

    /**
     * @param int $offset number of items that were taken before
     *
     * @return list<string> frames, at most $limit
     *
     * @throws \Spindle\Remote\BrokerException
     */
    public function takeItems(string $id, int $offset, int $limit): array
    {
        return $this->brokerClient()->takeItems($this->queue, $this->options, $id, $offset, $limit);
    }

    /**
     * @param int   $index number of the expected item, from 0
     * @param mixed $key   key of the task's input in a map
     *
     * @return array{mixed, mixed} key and item
     *
     * @throws TamperedFrameException
     * @throws JobLostException         when the frame is that of a later item
     * @throws \Spindle\Worker\TaskFailedException
     */
    public function item(string $id, string $frame, int $index, mixed $key): array
    {
        $body = Frame::open($this->keys, Frame::ITEM, $this->queue, $id, $frame);
        /** @var array{1: int} $at */
        $at = unpack('V', $body);
        if ($at[1] > $index) {
            throw JobLostException::items($id, $this->queue, $index, $at[1]);
        }
        if ($at[1] < $index) {
            throw TamperedFrameException::of($id, "it belongs to an item before item {$index}");
        }

        return PortableOutcome::item(substr($body, 4), 1, $key);
    }

    /** Passes a task's report to the caller's closure. Drops a frame with a wrong signature or from another queue. */
    public function report(string $id, string $frame): void
    {
        $onReport = $this->options->onReport;
        if ($onReport === null) {
            return;
        }
        try {
            $report = Frame::open($this->keys, Frame::REPORT, $this->queue, $id, $frame);
        } catch (TamperedFrameException) {
            return;
        }
        IsolatedCall::call(static fn() => $onReport(PortableOutcome::report($report)));
    }

    /**
     * Verifies and decodes an outcome. The result of a generator task is a generator that reads the stored items.
     *
     * @param mixed $key key of the task's input in a map
     *
     * @throws TamperedFrameException
     * @throws \Spindle\Worker\TaskException
     * @throws \Spindle\Worker\UnserializableException
     */
    public function result(string $id, string $frame, mixed $key): mixed
    {
        $outcome = Frame::open($this->keys, Frame::OUTCOME, $this->queue, $id, $frame);
        if (OutcomeBody::itemCount($outcome) === null) {
            return OutcomeBody::read($outcome, $key);
        }
        $stream = new StoredItems($this, $id, $key);
        $stream->onOutcome($frame);

        return $stream->items();
    }

    /**
     * Verifies and decodes the outcome of a generator task, and returns the generator's return value.
     *
     * @throws TamperedFrameException
     * @throws JobLostException
     * @throws \Spindle\Worker\TaskException
     * @throws \Spindle\Worker\UnserializableException
     */
    public function generatorReturn(string $id, string $frame, mixed $key, int $taken): mixed
    {
        $outcome = Frame::open($this->keys, Frame::OUTCOME, $this->queue, $id, $frame);
        $items = OutcomeBody::itemCount($outcome) ?? 0;

        return $taken < $items
            ? throw JobLostException::items($id, $this->queue, $taken, $items)
            : OutcomeBody::read($outcome, $key);
    }

    /** Returns the client of this process, also in a fork. */
    private function brokerClient(): BrokerClient
    {
        if (!$this->brokerClient->isOfThisProcess()) {
            $this->brokerClient = BrokerClient::of($this->broker);
        }

        return $this->brokerClient;
    }

    private function sealedJob(
        string $id,
        #[\SensitiveParameter]
        string $body,
        string $exclusiveKey,
        float $delay,
    ): Job {
        if (\strlen($body) > $this->options->maxPayload) {
            throw PayloadTooLargeException::of(\strlen($body), $this->options->maxPayload);
        }

        return new Job($id, Frame::seal($this->keys, Frame::JOB, $this->queue, $id, 0, $body), $exclusiveKey, $delay);
    }
}
