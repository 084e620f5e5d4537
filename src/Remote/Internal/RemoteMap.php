<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Clock;
use Spindle\Internal\OneWayGenerator;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\QueueFullException;
use Spindle\Worker\PortableTask;

/**
 * One call of map() or mapUnordered() on a queue. A callback of the event loop pulls the input and submits the tasks.
 * Outcomes are kept until the caller's loop takes them.
 *
 * The window consists of the tasks that were pulled from the input and whose outcomes the caller has not taken. It has
 * at most MAX_WINDOW_TASKS tasks. While its jobs and outcomes have MAX_BYTES or more, no more input is pulled. Outcomes
 * beyond MAX_BYTES of memory are written to a file.
 */
final class RemoteMap implements OutcomeReceiver
{
    private const MAX_WINDOW_TASKS = 4096;
    private const MAX_BATCH_TASKS = 512;
    private const MAX_BYTES = 16 << 20;

    /** Longest time in seconds for which the input is pulled before the batch is sent. */
    private const GATHER_SECONDS = 0.001;

    private const FULL_QUEUE_PAUSE_SECONDS = 0.1;

    /** @var array<string, array{int, mixed, int}> number, key and bytes of jobs without an outcome, by id */
    private array $pending = [];

    /**
     * Outcomes that the caller has not taken, with key and id. Ordered maps number outcomes in the order of the input,
     * unordered maps in the order of arrival. An outcome is a frame, its range in the file, the items of a generator,
     * or null if it is lost or the engine refused to return it.
     *
     * @var array<int, array{string|array{int, int}|\Generator<mixed, mixed, mixed, mixed>|null, mixed, string}>
     */
    private array $arrived = [];

    /** @var list<\Spindle\Remote\Job> pulled from the input and not sent */
    private array $batch = [];

    /** @var list<\Spindle\Remote\Job> sent and not confirmed by the engine */
    private array $sending = [];

    private ?string $patienceTimer = null;

    /** Bytes of the pending jobs and of the outcomes that the caller has not taken. */
    private int $windowBytes = 0;

    /** Bytes of outcomes in memory. */
    private int $heldBytes = 0;

    private readonly OutcomeFile $file;
    private int $pulledCount = 0;

    /** Number of the outcome that the caller takes next. */
    private int $nextNumber = 0;
    private int $arrivedCount = 0;
    private bool $isPulling = false;
    private bool $isExhausted = false;
    private bool $isAbandoned = false;

    /** Failure of the input or of a submission. It is thrown after the outcomes of all submitted jobs. */
    private ?\Throwable $failure = null;

    /** First refusal of the engine to return an outcome. It is thrown for each outcome that is null. */
    private ?BrokerRefusedException $refused = null;

    /** The cancellation. It is thrown when all pending jobs have ended; no further outcomes are delivered. */
    private ?\Throwable $abortReason = null;

    /** Suspends the caller's loop. */
    private readonly Condition $changed;

    /** @var \Generator<int, mixed, mixed, void>|null pairs of key and value */
    private ?\Generator $input;

    private readonly string $head;

    /** @param iterable<mixed, mixed> $input */
    public function __construct(
        private readonly QueueClient $client,
        iterable $input,
        string $code,
        private readonly bool $inOrder,
    ) {
        $this->file = new OutcomeFile();
        $this->changed = new Condition();
        $this->head = $client->head($code);
        $this->input = (static function () use ($input): \Generator {
            foreach ($input as $key => $value) {
                yield [$key, $value];
            }
        })();
    }

    /** @return \Generator<mixed, mixed> */
    public function results(?Cancellation $cancellation): \Generator
    {
        $cancellation?->throwIfRequested();
        $subscription = $cancellation?->subscribe(function (CancelledException $cancelled): void {
            if ($this->isAbandoned) {
                return;
            }
            $this->abortReason = $cancelled;
            $this->abandon();
            $this->changed->notify();
            $this->patienceTimer = $this->client->afterPatience($this, static fn(self $map) => $map->giveUp());
        });
        try {
            $this->schedulePull();
            while (($arrived = $this->takeNext()) !== null) {
                [$outcome, $key, $id] = $arrived;
                $arrived = null;
                if ($outcome instanceof \Generator) {
                    yield from self::yieldOnce($key, $outcome);
                    yield from OneWayGenerator::release(); // ends the task now if the caller has dropped the generator
                } else {
                    yield $key => $this->client->result(
                        $id,
                        $outcome ?? throw $this->refused ?? JobLostException::unknown($id, $this->client->queue),
                        $key,
                    );
                }
                $cancellation?->throwIfRequested();
            }
        } finally {
            if ($cancellation !== null && $subscription !== null) {
                $cancellation->unsubscribe($subscription);
            }
            if ($this->patienceTimer !== null) {
                EventLoop::cancel($this->patienceTimer);
            }
            $this->abandon();
            array_map($this->client->removeWaiter(...), array_keys($this->pending));
        }
    }

    /**
     * Yields the generator, and keeps no reference to it.
     *
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     *
     * @param-out null $items
     *
     * @return \Generator<mixed, mixed>
     */
    private static function yieldOnce(mixed $key, ?\Generator &$items): \Generator
    {
        [$onlyReference, $items] = [$items, null];
        yield $key => $onlyReference;
    }

    public function wantsOutcome(): bool
    {
        return !$this->isAbandoned;
    }

    public function onOutcome(string $id, string $frame): void
    {
        $this->addOutcome($id, $frame);
    }

    public function onUnknown(string $id): void
    {
        $this->addOutcome($id, null);
    }

    public function onRefused(string $id, BrokerRefusedException $refused): void
    {
        $this->refused ??= $refused;
        $this->addOutcome($id, null);
    }

    public function onItems(string $id): void
    {
        $stream = new StoredItems($this->client, $id, $this->pending[$id][1] ?? null);
        $this->client->replaceWaiter($id, $this, $stream->waiter());
        $this->addOutcome($id, $stream->items());
    }

    public function onReport(string $id, string $frame): void
    {
        $this->client->report($id, $frame);
    }

    /** @param string|\Generator<mixed, mixed, mixed, mixed>|null $outcome a frame, items, or null if there is none */
    private function addOutcome(string $id, string|\Generator|null $outcome): void
    {
        [$number, $key, $bytes] = $this->pending[$id] ?? [-1, null, 0];
        if ($number === -1) {
            return;
        }
        unset($this->pending[$id]);
        $this->windowBytes -= $bytes;
        if (!$this->isAbandoned) {
            $size = \is_string($outcome) ? \strlen($outcome) : 0;
            if (\is_string($outcome) && $this->heldBytes > 0 && $this->heldBytes + $size > self::MAX_BYTES) {
                $outcome = $this->file->write($outcome) ?? $outcome;
            }
            $this->arrived[$this->inOrder ? $number : $this->arrivedCount++] = [$outcome, $key, $id];
            $this->heldBytes += \is_string($outcome) ? $size : 0;
            $this->windowBytes += $size;
        }
        if ($this->isAbandoned || isset($this->arrived[$this->nextNumber])) {
            $this->changed->notify();
        }
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
            } elseif (isset($this->arrived[$this->nextNumber])) {
                $arrived = $this->arrived[$this->nextNumber];
                unset($this->arrived[$this->nextNumber]);
                ++$this->nextNumber;
                if (\is_array($arrived[0])) {
                    $arrived[0] = $this->file->read($arrived[0]);
                } else {
                    $this->heldBytes -= \is_string($arrived[0]) ? \strlen($arrived[0]) : 0;
                }
                $this->windowBytes -= \is_string($arrived[0]) ? \strlen($arrived[0]) : 0;
                if (\count($this->pending) + \count($this->arrived) <= self::MAX_WINDOW_TASKS - self::MAX_BATCH_TASKS) {
                    $this->schedulePull();
                }

                return $arrived;
            } elseif ($this->isExhausted && $this->pending === [] && !$this->isPulling) {
                return $this->failure === null ? null : throw $this->failure;
            }
            $this->schedulePull();
            $this->changed->wait();
        }
    }

    private function schedulePull(): void
    {
        if (!$this->isPulling && $this->canPull()) {
            $this->isPulling = true;
            EventLoop::queue($this->pull(...));
        }
    }

    private function pull(): void
    {
        try {
            while ($this->canPull()) {
                $this->fillBatch();
                $this->sendBatch();
            }
        } finally {
            $this->isPulling = false;
            $this->changed->notify();
        }
    }

    private function canPull(): bool
    {
        return !$this->isAbandoned
            && !$this->isExhausted
            && \count($this->pending) + \count($this->arrived) < self::MAX_WINDOW_TASKS
            && $this->windowBytes < self::MAX_BYTES;
    }

    /** Pulls the input until the batch or the window is full, the input ends, or GATHER_SECONDS are over. */
    private function fillBatch(): void
    {
        $deadline = Clock::now() + self::GATHER_SECONDS;
        try {
            while (
                $this->canPull()
                && \count($this->batch) < self::MAX_BATCH_TASKS
                && Clock::now() < $deadline
            ) {
                if ($this->pulledCount > 0) {
                    $this->input?->next();
                }
                if ($this->input?->valid() !== true) {
                    $this->isExhausted = true;
                    $this->input = null;

                    return;
                }
                /** @var array{mixed, mixed} $item */
                $item = $this->input->current();
                $this->add(...$item);
            }
        } catch (\Throwable $failure) {
            $this->isExhausted = true;
            $this->failure = $failure;
            $this->input = null;
        }
    }

    private function add(mixed $key, mixed $value): void
    {
        $number = $this->pulledCount++;
        $job = $this->client->job($this->head, PortableTask::encodeArgument($value, $key));
        $this->pending[$job->id] = [$number, $key, \strlen($job->frame)];
        $this->windowBytes += \strlen($job->frame);
        if ($this->batch === []) {
            EventLoop::queue($this->sendBatch(...)); // in case the input suspends
        }
        $this->batch[] = $job;
    }

    private function sendBatch(): void
    {
        $jobs = $this->batch;
        $this->batch = [];
        try {
            $this->send($jobs);
        } catch (\Throwable $failure) {
            $this->isExhausted = true;
            $this->failure ??= $failure;
            $this->changed->notify();
        }
    }

    /** @param list<\Spindle\Remote\Job> $jobs are sent again as long as a full queue does not accept them */
    private function send(array $jobs): void
    {
        while ($jobs !== [] && !$this->isAbandoned) {
            try {
                $this->sending = $jobs;
                $accepted = $this->client->sendAll($jobs, $this);
            } catch (QueueFullException) {
                $accepted = 0; // the engine is out of memory
            } catch (\Throwable $failure) {
                foreach ($jobs as $job) {
                    unset($this->pending[$job->id]);
                }

                throw $failure;
            } finally {
                $this->sending = [];
            }
            if ($this->isAbandoned()) { // the caller's loop ended during the submission
                foreach (\array_slice($jobs, $accepted) as $refused) {
                    unset($this->pending[$refused->id]);
                }
                $this->client->withdraw(array_column($jobs, 'id'));
                if ($this->abortReason === null) {
                    array_map($this->client->removeWaiter(...), array_column($jobs, 'id'));
                }
                $this->changed->notify();

                return;
            }
            $jobs = \array_slice($jobs, $accepted);
            if ($jobs !== []) {
                \Amp\delay(self::FULL_QUEUE_PAUSE_SECONDS);
            }
        }
        foreach ($jobs as $job) {
            unset($this->pending[$job->id]);
        }
        if ($this->isAbandoned) {
            $this->changed->notify();
        }
    }

    /** Returns the flag. Static analysis does not expect a property to change while a fiber waits. */
    private function isAbandoned(): bool
    {
        return $this->isAbandoned;
    }

    /** Drops the input and the outcomes, and withdraws the pending jobs. */
    private function abandon(): void
    {
        if ($this->isAbandoned) {
            return;
        }
        $this->isAbandoned = true;
        $this->input = null;
        $this->arrived = [];
        if ($this->pending !== []) {
            $ids = array_keys($this->pending);
            EventLoop::queue(function () use ($ids): void {
                $this->client->withdraw($ids);
            });
        }
    }

    /** Stops waiting for submissions and withdrawals without an answer, because the engine perhaps never answers. */
    private function giveUp(): void
    {
        foreach ([
            ...array_column($this->sending, 'id'),
            ...array_filter(array_keys($this->pending), $this->client->isWithdrawalPending(...)),
        ] as $id) {
            unset($this->pending[$id]);
        }
        $this->changed->notify();
    }
}
