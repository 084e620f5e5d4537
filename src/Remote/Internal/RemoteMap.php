<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\Clock;
use Spindle\Internal\Fibers;
use Spindle\Internal\OneWayGenerator;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\QueueFullException;
use Spindle\Worker\PortableTask;

/**
 * One call of map() or mapUnordered() on a queue. A callback of the loop pulls the input, and outcomes are kept until
 * the caller's loop takes them. At most MAX_WINDOW_TASKS tasks are pulled and not taken. When their bytes exceed
 * MAX_BYTES, no more input is pulled, and further outcomes go to a file.
 */
final class RemoteMap implements OutcomeReceiver
{
    private const MAX_WINDOW_TASKS = 4096;
    private const MAX_BATCH_TASKS = 512;
    private const MAX_BYTES = 16 << 20;

    /** Seconds after which an incomplete batch is sent. */
    private const GATHER_SECONDS = 0.001;

    /** Seconds until a full queue is retried. */
    private const FULL_QUEUE_PAUSE_SECONDS = 0.1;

    /** @var array<string, array{int, mixed, int}> number, key and bytes of jobs without an outcome, by id */
    private array $open = [];

    /**
     * @var array<int, array{string|array{int, int}|\Generator<mixed, mixed, mixed, mixed>|null, mixed, string}> outcome
     *     or its place in the file, key and id, by number, or in order of arrival
     */
    private array $done = [];

    /** @var list<\Spindle\Remote\Job> pulled from the input and not sent */
    private array $gathered = [];

    /** @var list<\Spindle\Remote\Job> sent and not confirmed by the engine */
    private array $sending = [];

    private ?string $givesUp = null;

    private int $bytes = 0;

    /** Bytes of outcomes in memory. */
    private int $held = 0;

    private readonly OutcomeFile $spill;
    private int $pulled = 0;
    private int $next = 0;
    private int $came = 0;
    private bool $pulling = false;
    private bool $exhausted = false;
    private bool $left = false;
    private ?\Throwable $failure = null;

    private ?BrokerRefusedException $refused = null;

    /** Reason of an abort. It is thrown when all open jobs have ended; no further outcomes are delivered. */
    private ?\Throwable $aborted = null;

    /** @var Suspension<null>|null */
    private ?Suspension $consumer = null;

    /** @var \Generator<int, mixed, mixed, void>|null */
    private ?\Generator $items;

    private readonly string $head;

    /** @param iterable<mixed, mixed> $input */
    public function __construct(
        private readonly JobFactory $sender,
        iterable $input,
        string $code,
        private readonly bool $inOrder,
    ) {
        $this->spill = new OutcomeFile();
        $this->head = $sender->head($code);
        $this->items = (static function () use ($input): \Generator {
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
            if ($this->left) {
                return;
            }
            $this->aborted = $cancelled;
            $this->leave();
            $this->wake();
            $this->givesUp = $this->sender->afterPatience($this, static fn(self $map) => $map->giveUp());
        });
        try {
            $this->pullSoon();
            while (($done = $this->shift()) !== null) {
                [$outcome, $key, $id] = $done;
                $done = null;
                if ($outcome instanceof \Generator) {
                    yield from self::once($key, $outcome);
                    yield from OneWayGenerator::release(); // without a reader, the task of the yielded stream ends now
                } else {
                    yield $key => $this->sender->result(
                        $id,
                        $outcome ?? throw $this->refused ?? JobLostException::unknown($id, $this->sender->queue),
                        $key,
                    );
                }
                $cancellation?->throwIfRequested();
            }
        } finally {
            if ($cancellation !== null && $subscription !== null) {
                $cancellation->unsubscribe($subscription);
            }
            if ($this->givesUp !== null) {
                EventLoop::cancel($this->givesUp);
            }
            $this->leave();
            array_map($this->sender->forget(...), array_keys($this->open));
        }
    }

    /**
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     *
     * @param-out null $items
     *
     * @return \Generator<mixed, mixed>
     */
    private static function once(mixed $key, ?\Generator &$items): \Generator
    {
        [$only, $items] = [$items, null];
        yield $key => $only;
    }

    public function wantsOutcome(): bool
    {
        return !$this->left;
    }

    public function outcome(string $id, string $frame): void
    {
        $this->settle($id, $frame);
    }

    public function unknown(string $id): void
    {
        $this->settle($id, null);
    }

    public function refused(string $id, BrokerRefusedException $refused): void
    {
        $this->refused ??= $refused;
        $this->settle($id, null);
    }

    public function items(string $id): void
    {
        $stream = new ItemStream($this->sender, $id, $this->open[$id][1] ?? null);
        $this->sender->waitAs($id, $this, $stream->waiter());
        $this->settle($id, $stream->items());
    }

    public function report(string $id, string $frame): void
    {
        $this->sender->report($id, $frame);
    }

    /** @param string|\Generator<mixed, mixed, mixed, mixed>|null $outcome a frame, items, or null if lost */
    private function settle(string $id, string|\Generator|null $outcome): void
    {
        [$number, $key, $bytes] = $this->open[$id] ?? [-1, null, 0];
        if ($number === -1) {
            return;
        }
        unset($this->open[$id]);
        $this->bytes -= $bytes;
        if (!$this->left) {
            $size = \is_string($outcome) ? \strlen($outcome) : 0;
            if (\is_string($outcome) && $this->held > 0 && $this->held + $size > self::MAX_BYTES) {
                $outcome = $this->spill->write($outcome) ?? $outcome;
            }
            $this->done[$this->inOrder ? $number : $this->came++] = [$outcome, $key, $id];
            $this->held += \is_string($outcome) ? $size : 0;
            $this->bytes += $size;
        }
        if ($this->left || isset($this->done[$this->next])) {
            $this->wake();
        }
    }

    /** @return array{string|\Generator<mixed, mixed, mixed, mixed>|null, mixed, string}|null next result */
    private function shift(): ?array
    {
        while (true) {
            if ($this->aborted !== null) {
                if ($this->open === []) {
                    throw $this->aborted;
                }
            } elseif (isset($this->done[$this->next])) {
                $done = $this->done[$this->next];
                unset($this->done[$this->next]);
                ++$this->next;
                if (\is_array($done[0])) {
                    $done[0] = $this->spill->read($done[0]);
                } else {
                    $this->held -= \is_string($done[0]) ? \strlen($done[0]) : 0;
                }
                $this->bytes -= \is_string($done[0]) ? \strlen($done[0]) : 0;
                if (\count($this->open) + \count($this->done) <= self::MAX_WINDOW_TASKS - self::MAX_BATCH_TASKS) {
                    $this->pullSoon();
                }

                return $done;
            } elseif ($this->exhausted && $this->open === [] && !$this->pulling) {
                return $this->failure === null ? null : throw $this->failure;
            }
            $this->pullSoon();
            $this->consumer = EventLoop::getSuspension();
            try {
                Fibers::suspend($this->consumer);
            } finally {
                $this->consumer = null;
            }
        }
    }

    private function pullSoon(): void
    {
        if (!$this->pulling && $this->hasRoom()) {
            $this->pulling = true;
            EventLoop::queue($this->pull(...));
        }
    }

    private function pull(): void
    {
        try {
            while ($this->hasRoom()) {
                $this->gather();
                $this->flush();
            }
        } finally {
            $this->pulling = false;
            $this->wake();
        }
    }

    private function hasRoom(): bool
    {
        return !$this->left
            && !$this->exhausted
            && \count($this->open) + \count($this->done) < self::MAX_WINDOW_TASKS
            && $this->bytes < self::MAX_BYTES;
    }

    /** Pulls the input until a batch is complete or GATHER_SECONDS is over. */
    private function gather(): void
    {
        $late = Clock::now() + self::GATHER_SECONDS;
        try {
            while (
                \count($this->gathered) < self::MAX_BATCH_TASKS
                && $this->bytes < self::MAX_BYTES
                && Clock::now() < $late
            ) {
                if ($this->pulled > 0) {
                    $this->items?->next();
                }
                if ($this->items?->valid() !== true) {
                    $this->exhausted = true;
                    $this->items = null;

                    return;
                }
                /** @var array{mixed, mixed} $item */
                $item = $this->items->current();
                $this->add(...$item);
            }
        } catch (\Throwable $failure) {
            $this->exhausted = true;
            $this->failure = $failure;
            $this->items = null;
        }
    }

    private function add(mixed $key, mixed $value): void
    {
        $number = $this->pulled++;
        $job = $this->sender->job($this->head, PortableTask::encodeArgument($value, $key));
        $this->open[$job->id] = [$number, $key, \strlen($job->frame)];
        $this->bytes += \strlen($job->frame);
        if ($this->gathered === []) {
            EventLoop::queue($this->flush(...)); // in case the input suspends
        }
        $this->gathered[] = $job;
    }

    private function flush(): void
    {
        $jobs = $this->gathered;
        $this->gathered = [];
        try {
            $this->send($jobs);
        } catch (\Throwable $failure) {
            $this->exhausted = true;
            $this->failure ??= $failure;
            $this->wake();
        }
    }

    /**
     * Sends jobs, and retries those that a full queue did not accept.
     *
     * @param list<\Spindle\Remote\Job> $jobs
     */
    private function send(array $jobs): void
    {
        while ($jobs !== [] && !$this->left) {
            try {
                $this->sending = $jobs;
                $accepted = $this->sender->sendAll($jobs, $this);
            } catch (QueueFullException) {
                $accepted = 0; // the engine is out of memory
            } catch (\Throwable $failure) {
                foreach ($jobs as $job) {
                    unset($this->open[$job->id]);
                }

                throw $failure;
            } finally {
                $this->sending = [];
            }
            if ($this->isLeft()) { // left while waiting
                foreach (\array_slice($jobs, $accepted) as $refused) {
                    unset($this->open[$refused->id]);
                }
                $this->sender->withdraw(array_column($jobs, 'id'));
                if ($this->aborted === null) {
                    array_map($this->sender->forget(...), array_column($jobs, 'id'));
                }
                $this->wake();

                return;
            }
            $jobs = \array_slice($jobs, $accepted);
            if ($jobs !== []) {
                \Amp\delay(self::FULL_QUEUE_PAUSE_SECONDS);
            }
        }
        foreach ($jobs as $job) {
            unset($this->open[$job->id]);
        }
        if ($this->left) {
            $this->wake();
        }
    }

    private function isLeft(): bool
    {
        return $this->left;
    }

    private function leave(): void
    {
        if ($this->left) {
            return;
        }
        $this->left = true;
        $this->items = null;
        $this->done = [];
        if ($this->open !== []) {
            $ids = array_keys($this->open);
            EventLoop::queue(function () use ($ids): void {
                $this->sender->withdraw($ids);
            });
        }
    }

    /** Stops waiting for submissions and withdrawals without an answer: the engine may be away for ever. */
    private function giveUp(): void
    {
        foreach ([
            ...array_column($this->sending, 'id'),
            ...array_filter(array_keys($this->open), $this->sender->isUnsaid(...)),
        ] as $id) {
            unset($this->open[$id]);
        }
        $this->wake();
    }

    private function wake(): void
    {
        $consumer = $this->consumer;
        $this->consumer = null;
        $consumer?->resume();
    }
}
