<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\Async\InputConsumer;
use Spindle\Internal\Async\InputPump;
use Spindle\Internal\LoopCallback;
use Spindle\Internal\OneWayGenerator;
use Spindle\Internal\UnreadResults;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\MapOutcome;
use Spindle\Worker\PortableTask;

/**
 * Runs one call of map(), mapUnordered(), mapOutcomes() or mapOutcomesUnordered(). Submits a task for each value of
 * the input, and keeps the outcomes until the caller's foreach loop takes them.
 *
 * The window contains the tasks whose values were read, and whose outcomes the caller has not taken. The window has at
 * most MAX_WINDOW_TASKS tasks. While the tasks and outcomes in the window have MAX_BYTES or more, no input is read.
 * Outcomes of tasks that were already sent can exceed this limit. The excess outcomes are written to a file.
 */
final class RemoteMap implements InputConsumer, OutcomeReceiver
{
    private const MAX_WINDOW_TASKS = 4096;
    private const MAX_BATCH_TASKS = 512;
    private const MAX_BYTES = 16 << 20;

    private const FULL_QUEUE_PAUSE_SECONDS = 0.1;

    /** @var array<string, array{int, mixed, int}> by job id: input position, key and frame size of a pending job */
    private array $pending = [];

    /** Outcomes for the caller's foreach loop, in the order of the input, or of arrival if $inOrder is false. */
    private readonly OutcomeBuffer $arrived;

    /** @var list<\Spindle\Remote\Job> jobs for values that were read; not sent yet */
    private array $batch = [];

    /** @var list<\Spindle\Remote\Job> jobs that were sent; not confirmed by the engine yet */
    private array $sending = [];

    private ?string $giveUpTimer = null;

    private int $pendingBytes = 0;
    private int $readCount = 0;
    private int $arrivedCount = 0;
    private bool $isAbandoned = false;
    private bool $isClosed = false;

    /** @var array<string, BrokerRefusedException|JobCancelledException|null> why a job has no outcome, by job id */
    private array $lossReasons = [];

    /**
     * Exception of a cancellation or of kill(). Once the exception is set, the map yields no more results. The map
     * throws the exception when no job is pending.
     */
    private ?\Throwable $abortReason = null;

    private readonly MapStreams $streams;
    private readonly Condition $changed;

    /** Reads the map's input. A failure of the input or of a submission is thrown after the last outcome. */
    private readonly InputPump $input;

    private readonly string $head;

    /** Queue from which the items of generator tasks can be read even after the executor was closed. */
    private SharedQueue $queue;

    /**
     * @param iterable<mixed, mixed> $input
     * @param bool $keepsFailures whether to yield a MapOutcome for each job, and to continue after failed jobs
     */
    public function __construct(
        private readonly QueueClient $client,
        iterable $input,
        string $code,
        private readonly bool $inOrder,
        private readonly bool $keepsFailures,
    ) {
        $this->arrived = new OutcomeBuffer(self::MAX_BYTES);
        $this->changed = new Condition();
        $this->streams = new MapStreams();
        $this->head = $client->head($code);
        $this->queue = $client->queueOrThrow();
        $this->input = new InputPump($this, $input);
    }

    /** @return \Generator<mixed, mixed> */
    public function results(?Cancellation $cancellation, UnreadResults $unread): \Generator
    {
        $unread->begin();
        $this->begin($cancellation);
        $subscription = $cancellation?->subscribe(function (CancelledException $cancelled): void {
            if ($this->isAbandoned) {
                return;
            }
            $this->abortReason = $cancelled;
            $this->abandon();
            $this->changed->notify();
            $this->giveUpTimer = $this->client->afterRetryTimeout($this, static fn(self $map) => $map->giveUp());
        });
        try {
            $this->input->pullSoon();
            while (($arrived = $this->takeNext()) !== null) {
                [$outcome, $key, $id] = $arrived;
                $arrived = null;
                if ($this->keepsFailures) {
                    $outcome = $this->outcome($outcome, $key, $id);
                }
                if (\is_object($outcome)) {
                    yield from OneWayGenerator::yieldOnce($key, $outcome);
                    yield from OneWayGenerator::release(); // ends the task now if the caller has dropped the generator
                } else {
                    yield $key => $this->client->result($id, $outcome ?? throw $this->loss($id), $key, $this->queue);
                }
                $cancellation?->throwIfRequested();
            }
        } finally {
            $cancellation?->unsubscribe((string) $subscription);
            LoopCallback::cancel($this->giveUpTimer);
            $this->abandon();
            foreach (array_keys($this->pending) as $id) {
                // While a job is being sent, this map stays its waiter, so that QueueClient::kill() finds and cancels
                // the job. After the engine's answer, send() cancels the job and removes the waiter.
                if (!$this->queue->outbox->isPending($id)) {
                    $this->queue->removeWaiters($id);
                }
            }
            $this->client->end($this);
            $this->input->release(); // last, because a `finally` block of the input may throw
        }
    }

    private function begin(?Cancellation $cancellation): void
    {
        try {
            $cancellation?->throwIfRequested();
            FiberSwitch::ensurePossible();
            $this->client->mustBeOpen();
            $this->queue = $this->client->queueOrThrow(); // a fork has its own queue object
            $this->client->begin($this);
        } catch (\Throwable $refusal) {
            $this->input->refuse($refusal);
        }
    }

    /**
     * @param string|\Generator<mixed, mixed, mixed, mixed>|null $outcome frame or items; null if lost or refused
     *
     * @return MapOutcome<mixed>
     */
    private function outcome(string|\Generator|null $outcome, mixed $key, string $id): MapOutcome
    {
        if ($outcome === null) {
            return MapOutcome::failed($this->loss($id));
        }
        try {
            return MapOutcome::of(fn(): mixed => \is_string($outcome)
                ? $this->client->result($id, $outcome, $key, $this->queue)
                : $outcome);
        } catch (JobCancelledException|ResultTooLargeException|PayloadTooLargeException|InvalidSignatureException $e) {
            return MapOutcome::failed($e);
        }
    }

    private function loss(string $id): BrokerRefusedException|JobCancelledException|JobLostException
    {
        return $this->lossReasons[$id] ?? JobLostException::unknown($id, $this->client->queue);
    }

    /** Stops reading the input. Does not wait for a running read, because the input's own code may call close(). */
    public function close(): void
    {
        $this->isClosed = true;
        $this->input->close(ExecutorClosedException::closedBeforeInputEnd());
        $this->onChange();
    }

    public function kill(ExecutorClosedException $reason): void
    {
        $this->pending = [];
        $this->streams->clear(); // the executor kills each ItemReceiver
        $this->abortReason ??= $reason;
        $this->abandon();
        $this->onChange();
    }

    public function client(): QueueClient
    {
        return $this->client;
    }

    public function awaitsOutcome(): bool
    {
        return $this->pending !== [];
    }

    public function wantsOutcome(): bool
    {
        return !$this->isAbandoned;
    }

    /** Returns true after abandon(), and always at the end of the process: a fatal error skips the `finally` blocks. */
    public function isCancelled(): bool
    {
        return $this->isAbandoned || ProcessEnd::isSending();
    }

    public function onOutcome(string $id, string $frame): void
    {
        $this->addOutcome($id, $frame);
    }

    public function onUnknown(string $id, ?JobCancelledException $cancelled = null): void
    {
        $this->lossReasons[$id] = $cancelled;
        $this->addOutcome($id, null);
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->lossReasons[$id] = $refused;
        $this->addOutcome($id, null);
    }

    public function onItems(string $id): void
    {
        if ($this->isAbandoned) {
            return; // the map waits for the end of the task
        }
        $stream = new StoredItems($this->client, $this->queue, $id, $this->pending[$id][1] ?? null);
        $this->client->shared()?->waiters->replace($id, $this, $this->streams->add($stream));
        $this->addOutcome($id, $stream->items());
    }

    /** @param string|\Generator<mixed, mixed, mixed, mixed>|null $outcome frame or items; null if lost or refused */
    private function addOutcome(string $id, string|\Generator|null $outcome): void
    {
        [$number, $key, $bytes] = $this->pending[$id] ?? [-1, null, 0];
        if ($number === -1) {
            return;
        }
        unset($this->pending[$id]);
        $this->pendingBytes -= $bytes;
        if (!$this->isAbandoned) {
            $this->arrived->add($this->inOrder ? $number : $this->arrivedCount++, $outcome, $key, $id);
        }
        if ($this->isAbandoned || $this->arrived->hasNext() || $this->pending === []) {
            $this->onChange();
        }
    }

    /** Resumes the caller's foreach loop. After close(), ends the executor's wait for the map if no job is pending. */
    private function onChange(): void
    {
        if ($this->isClosed && $this->pending === []) {
            $this->client->end($this);
        }
        $this->changed->notify();
    }

    /**
     * @return array{string|\Generator<mixed, mixed, mixed, mixed>|null, mixed, string}|null outcome, key and id; null
     *     after the last outcome
     */
    private function takeNext(): ?array
    {
        while (true) {
            if ($this->abortReason !== null) {
                if ($this->pending === []) {
                    throw $this->abortReason;
                }
            } elseif ($this->arrived->hasNext() || $this->isOver() && $this->arrived->skipMissing()) {
                $arrived = $this->arrived->takeNext();
                if (\count($this->pending) + \count($this->arrived) <= self::MAX_WINDOW_TASKS - self::MAX_BATCH_TASKS) {
                    $this->input->pullSoon();
                }

                return $arrived;
            } elseif ($this->isOver()) {
                $this->streams->clear(); // the caller can read the generators after the last outcome

                return $this->input->failure === null ? null : throw $this->input->failure;
            }
            $this->input->pullSoon();
            $this->changed->wait();
        }
    }

    /** Returns whether no more outcomes will arrive. After close(), ignores a running read, whose value is dropped. */
    private function isOver(): bool
    {
        return $this->input->isOver && $this->pending === [] && ($this->isClosed || !$this->input->isReading);
    }

    public function room(): int
    {
        $hasRoom = \count($this->batch) < self::MAX_BATCH_TASKS
            && \count($this->pending) + \count($this->arrived) < self::MAX_WINDOW_TASKS
            && $this->pendingBytes + $this->arrived->totalBytes < self::MAX_BYTES;

        return $hasRoom ? 1 : 0;
    }

    public function onValues(array $keys, array $values): void
    {
        $job = $this->client->job($this->head, PortableTask::encodeArgument($values[0], $keys[0]), $keys[0]);
        if ($this->input->isOver) {
            return; // the value's __serialize() has closed the executor
        }
        $this->pending[$job->id] = [$this->readCount++, $keys[0], \strlen($job->frame)];
        $this->pendingBytes += \strlen($job->frame);
        $this->batch[] = $job;
    }

    public function onSuspended(): void
    {
        if ($this->batch !== []) {
            EventLoop::queue($this->sendBatch(...)); // in another fiber, so that reading the input does not wait
        }
    }

    public function onPaused(): void
    {
        $this->sendBatch();
        $this->onChange();
    }

    private function sendBatch(): void
    {
        $jobs = $this->batch;
        $this->batch = [];
        try {
            $this->send($jobs);
        } catch (\Throwable $failure) {
            $this->input->fail($failure);
            $this->onChange();
        }
    }

    /** @param list<\Spindle\Remote\Job> $jobs sent until the queue has room; a failed attempt may have added some */
    private function send(array $jobs): void
    {
        for ($checkIds = false; $jobs !== [] && !$this->isAbandoned; $checkIds = true) {
            try {
                $this->sending = $jobs;
                $accepted = $this->client->send($jobs, $this, $checkIds);
            } catch (QueueFullException) {
                $accepted = 0; // the engine is out of memory
            } catch (PayloadTooLargeException $tooLarge) { // the engine does not accept the first job
                $id = array_shift($jobs)->id;
                $this->input->fail($tooLarge->forInput($this->pending[$id][1] ?? null));
                $this->forget([$id]);
                $this->onChange();

                continue;
            } catch (\Throwable $failure) {
                $this->forget(array_column($jobs, 'id'));

                throw $failure;
            } finally {
                $this->sending = [];
            }
            if (!$this->wantsOutcome()) { // the foreach loop ended or was cancelled during the submission
                $this->forget(array_column(\array_slice($jobs, $accepted), 'id'));
                $this->client->cancel(array_column($jobs, 'id'));
                foreach ($this->abortReason === null ? $jobs : [] as $job) {
                    $this->client->shared()?->removeWaiters($job->id);
                }
                $this->onChange();

                return;
            }
            $jobs = \array_slice($jobs, $accepted);
            if ($jobs !== []) {
                (new Condition())->waitFor(self::FULL_QUEUE_PAUSE_SECONDS);
            }
        }
        $this->forget(array_column($jobs, 'id'));
        if ($this->isAbandoned) {
            $this->onChange();
        }
    }

    /** @param array<string> $ids jobs that will have no outcome */
    private function forget(array $ids): void
    {
        $this->pending = array_diff_key($this->pending, array_flip($ids));
    }

    /** Stops reading the input, drops the outcomes here and in the engine, and cancels the pending jobs. */
    private function abandon(): void
    {
        if ($this->isAbandoned) {
            return;
        }
        $this->isAbandoned = true;
        $this->input->stop();
        $streamed = $this->streams->end($this->abortReason ?? ExecutorClosedException::abandoned(), $this);
        $this->pending += array_fill_keys($streamed, [0, null, 0]); // the map waits until their tasks have ended
        // Jobs that have ended are cancelled too, so that the engine drops the items that generator tasks have stored.
        $ids = [...array_keys($this->pending), ...$this->arrived->clear()];
        if ($ids !== []) {
            $this->client->cancelLater($ids);
        }
    }

    /** Stops waiting for unanswered submissions and cancellations, because the engine may never answer. */
    private function giveUp(): void
    {
        $this->forget(array_column($this->sending, 'id'));
        $cancellations = $this->client->shared()?->cancellations;
        if ($cancellations !== null) {
            $this->forget(array_filter(array_keys($this->pending), $cancellations->isPending(...)));
        }
        $this->onChange();
    }
}
