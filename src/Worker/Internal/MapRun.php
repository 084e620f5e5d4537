<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Worker\PoolClosedException;
use Spindle\Worker\UnserializableException;

/**
 * One call of map() or mapUnordered(): pulls the input in batches, keeps results until the caller's loop takes them.
 *
 * Between the two are never more tasks than the window, nor more bytes than the room, so that memory does not grow with
 * their number.
 */
final class MapRun implements Source
{
    private static int $last = 0;

    /** Tasks that may be between the input and the caller's loop, at least; and batches for each worker. */
    private const WINDOW = 1024;
    private const BATCHES_AHEAD = 4;

    /** Bytes that may be; and in one batch. */
    private const ROOM = 16 << 20;
    private const BATCH_ROOM = 1 << 18;

    /** An input may take this long for a batch, in nanoseconds, before what there is of it is sent. */
    private const PATIENCE = 1_000_000;

    /** The loop turns at least this often while there are results, in nanoseconds. */
    private const TURN = 500_000;

    private readonly int $id;
    private readonly Pace $pace;

    /** @var \Generator<int, null, mixed, void> pulls, and pauses whenever there is a batch */
    private readonly \Generator $puller;

    /** @var list<bool|int|float|string|null|Encoded> pulled and not in a batch yet */
    private array $tasks = [];

    /** @var list<mixed> */
    private array $keys = [];
    private bool $packed = false;
    private bool $integers = true;
    private int $bytes = 0;

    /** Batches that nobody has taken yet: one, so that it is there when a worker gets free. */
    private ?Batch $ready = null;

    /**
     * @var array<int, array{int, list<mixed>, bool|\Throwable|\Generator<mixed, mixed, mixed, mixed>, string, int, float}> what the
     *      caller's loop has not taken: count, keys, what it is, results, attempt, bytes of the arguments; by the number of the first task, or as it came
     */
    private array $done = [];
    private int $doneBytes = 0;

    /** Bytes of arguments whose outcomes the caller's loop has not taken. */
    private float $aheadBytes = 0.0;
    private int $next = 0;
    private int $came = 0;

    private int $pulled = 0;
    private int $settled = 0;
    private int $delivered = 0;

    private bool $pulling = false;
    private bool $suspended = false;
    private bool $exhausted = false;
    private bool $left = false;
    private bool $ended = false;

    /** What is thrown when all results have been taken. */
    private ?\Throwable $inputFailure = null;

    /** What is thrown at once. */
    private ?\Throwable $aborted = null;

    /** @var Suspension<null>|null of the caller's loop */
    private ?Suspension $consumer = null;
    private int $turned = 0;

    /**
     * @param iterable<mixed, mixed> $input
     */
    public function __construct(
        private readonly Dispatcher $dispatcher,
        private readonly iterable $input,
        private readonly string $code,
        private readonly bool $inOrder,
    ) {
        $this->id = ++self::$last;
        $this->pace = new Pace();
        $this->puller = $this->batches();
    }

    /**
     * @param object $owner lives for as long as somebody iterates
     *
     * @return \Generator<mixed, mixed>
     */
    public function results(?Cancellation $cancellation, object $owner): \Generator
    {
        $cancellation?->throwIfRequested();
        $this->dispatcher->mustBeOpen();
        $subscription = $cancellation?->subscribe(function (CancelledException $exception): void {
            $this->aborted ??= $exception;
            $this->leave(0.0);
        });
        $this->dispatcher->open($this);
        try {
            $this->pullSoon();
            while (($chunk = $this->chunk()) !== null) {
                [$count, $keys, $what, $results, $attempt, $bytes] = $chunk;
                $chunk = null;
                if ($what === false) {
                    foreach (Packing::values($results) as $i => $value) {
                        yield $keys[$i] => $value;
                    }
                } elseif ($what === true) {
                    [$kinds, $values] = Packing::split($results);
                    $results = '';
                    foreach ($values as $i => $value) {
                        yield $keys[$i] => Outcome::value(\ord($kinds[$i]), $value, $attempt, $keys[$i]);
                    }
                } elseif ($what instanceof \Generator) {
                    $items = $what;
                    $what = null;
                    yield $keys[0] => $items;
                    $items = null;
                } else {
                    throw $what;
                }
                $this->delivered += $count;
                $this->aheadBytes -= $bytes;
                $this->pullSoon();
            }
            $this->left = $this->ended = true; // whatever still yields items is its reader's
        } finally {
            if ($cancellation !== null && $subscription !== null) {
                $cancellation->unsubscribe($subscription);
            }
            $this->leave(Dispatcher::LEAVING);
            $this->dispatcher->forget($this);
        }
    }

    public function pace(): Pace
    {
        return $this->pace;
    }

    public function code(): string
    {
        return $this->code;
    }

    public function id(): int
    {
        return $this->id;
    }

    public function demand(): int
    {
        if ($this->left) {
            return 0;
        }
        $ready = $this->ready === null ? 0 : 1;
        if ($this->exhausted || !$this->hasRoom()) {
            return $ready + ($this->tasks === [] ? 0 : 1);
        }

        return \is_array($this->input) || $this->input instanceof \Countable
            ? $ready + max(0, \count($this->input) - $this->pulled)
            : \PHP_INT_MAX;
    }

    public function take(int $most, int $workers): ?Batch
    {
        if ($this->ready === null && ($this->suspended || !$this->pulling)) {
            $this->seal(); // what there is, for the input takes its time
        }
        $batch = $this->ready;
        $this->ready = null;
        if ($batch !== null && \count($batch->tasks) > $most) {
            $this->ready = $batch->slice($most, \count($batch->tasks));
            $batch = $batch->slice(0, $most);
        }
        if ($this->ready === null) {
            $this->pullSoon();
        }

        return $batch;
    }

    public function succeeded(Batch $batch, int $from, int $count, bool $packed, string $results): void
    {
        $this->settle($batch, $from, $count, $packed, $results);
    }

    public function failed(Batch $batch, int $index, \Throwable $failure): void
    {
        $this->settle($batch, $index, 1, $failure, '');
    }

    public function streams(Batch $batch, int $index, Stream $stream): void
    {
        $this->settle($batch, $index, 1, $stream->items(), '');
    }

    public function isLeft(): bool
    {
        return $this->left;
    }

    public function close(): void
    {
        if (!$this->exhausted) {
            $this->exhausted = true;
            $this->inputFailure = PoolClosedException::unread();
        }
        $this->wake();
    }

    public function abort(\Throwable $reason): void
    {
        $this->aborted ??= $reason;
        $this->ended = $this->left = true;
        $this->wake();
    }

    /** Whether all that was pulled has its outcome, and no more will be. */
    public function isSettled(): bool
    {
        return $this->left ? $this->ended : $this->exhausted && !$this->pulling && $this->tasks === [] && $this->settled === $this->pulled;
    }

    /** After it was left: none of its tasks is with a worker any more. */
    public function ended(): void
    {
        $this->ended = true;
        $this->wake();
    }

    private function leave(float $patience): void
    {
        if ($this->left) {
            return;
        }
        $this->left = true;
        $this->ready = null;
        $this->tasks = $this->keys = $this->done = [];
        $this->dispatcher->leave($this, $patience);
        $this->wake();
    }

    /**
     * Waits for what the caller's loop gets next.
     *
     * @return array{int, list<mixed>, bool|\Throwable|\Generator<mixed, mixed, mixed, mixed>, string, int, float}|null
     */
    private function chunk(): ?array
    {
        if ($this->turned !== 0 && hrtime(true) - $this->turned > self::TURN) {
            $this->turn();
        }
        while (true) {
            if ($this->aborted !== null) {
                if ($this->ended) {
                    throw $this->aborted;
                }
            } elseif (isset($this->done[$this->next])) {
                $chunk = $this->done[$this->next];
                unset($this->done[$this->next]);
                $this->doneBytes -= \strlen($chunk[3]);
                $this->next += $this->inOrder ? $chunk[0] : 1;

                return $chunk;
            } elseif ($this->isSettled()) {
                return $this->inputFailure === null ? null : throw $this->inputFailure;
            }
            $this->consumer = EventLoop::getSuspension();
            $this->consumer->suspend();
            $this->turned = hrtime(true);
        }
    }

    /** The caller's loop may take long over each result: workers are heard and fed all the same. */
    private function turn(): void
    {
        $suspension = EventLoop::getSuspension();
        EventLoop::defer(static fn() => $suspension->resume());
        $suspension->suspend();
        $this->turned = hrtime(true);
    }

    private function wake(): void
    {
        $consumer = $this->consumer;
        $this->consumer = null;
        $consumer?->resume();
    }

    /** @param bool|\Throwable|\Generator<mixed, mixed, mixed, mixed> $what whether packed, or what it is instead of results */
    private function settle(Batch $batch, int $from, int $count, bool|\Throwable|\Generator $what, string $results): void
    {
        $this->settled += $count;
        if ($this->left) {
            return;
        }
        $keys = $count === \count($batch->keys) ? $batch->keys : \array_slice($batch->keys, $from, $count);
        $this->done[$this->inOrder ? $batch->first + $from : $this->came++] = [$count, $keys, $what, $results, $batch->attempt, $batch->bytesEach * $count];
        $this->doneBytes += \strlen($results);
        if ($this->consumer !== null && isset($this->done[$this->next])) {
            $this->wake();
        }
    }

    private function hasRoom(): bool
    {
        $window = max(self::WINDOW, self::BATCHES_AHEAD * $this->dispatcher->size() * $this->pace->size());

        return $this->pulled - $this->delivered < $window && $this->doneBytes + $this->aheadBytes < self::ROOM;
    }

    /** The input is pulled in a callback of the loop, for it may suspend. */
    private function pullSoon(): void
    {
        if ($this->pulling || $this->exhausted || $this->left || $this->ready !== null || $this->tasks !== [] || !$this->hasRoom()) {
            return;
        }
        $this->pulling = true;
        EventLoop::queue($this->pull(...));
    }

    private function pull(): void
    {
        if ($this->isLeft()) {
            return;
        }
        $turn = \is_array($this->input) ? null : EventLoop::unreference(EventLoop::defer(function (): void {
            $this->suspended = true; // still pulling at the loop's next turn
            $this->dispatcher->fill();
        }));
        try {
            $this->puller->next();
        } catch (\Throwable $failure) {
            $this->inputFailure ??= $failure;
        }
        if ($turn !== null) {
            EventLoop::cancel($turn);
        }
        $this->pulling = $this->suspended = false;
        if (!$this->puller->valid()) {
            $this->exhausted = true;
        }
        if ($this->isLeft()) {
            return;
        }
        $this->seal();
        $this->dispatcher->fill();
        if ($this->isSettled()) {
            $this->wake();
        }
    }

    /** Makes a batch of what was pulled. */
    private function seal(): void
    {
        if ($this->tasks === [] || $this->ready !== null || $this->left) {
            return;
        }
        $first = $this->pulled;
        $this->pulled += \count($this->tasks);
        $this->ready = new Batch($this, $first, $this->tasks, $this->keys, $this->packed, bytesEach: $this->bytes / \count($this->tasks), integers: $this->integers);
        $this->aheadBytes += $this->bytes;
        $this->tasks = $this->keys = [];
        $this->packed = false;
        $this->integers = true;
        $this->bytes = 0;
    }

    /** @return \Generator<int, null, mixed, void> */
    private function batches(): \Generator
    {
        yield; // so that the first pull is like the others
        $tasks = &$this->tasks;
        $keys = &$this->keys;
        $size = $this->pace->size();
        $until = hrtime(true) + self::PATIENCE;
        $n = 0;
        $look = min($size, 16); // at whether it is enough
        foreach ($this->input as $key => $value) {
            if (\is_int($value)) {
                $tasks[] = $value; // of the tiniest tasks there are the most
            } else {
                $this->integers = false;
                if ($value === null || \is_bool($value) || \is_float($value)) {
                    $tasks[] = $value;
                } elseif (\is_string($value) && \strlen($value) < Protocol::LONG) {
                    $tasks[] = $value;
                    $this->bytes += \strlen($value);
                } else {
                    $tasks[] = $encoded = self::encode($key, $value);
                    $this->bytes += \strlen($encoded->bytes);
                    $this->packed = true;
                }
                $look = $this->bytes < self::BATCH_ROOM ? $look : 0;
            }
            $keys[] = $key;
            if ($this->suspended) {
                if ($this->left) {
                    return;
                }
                $this->dispatcher->fill();
            }
            if (++$n < $look) {
                continue;
            }
            if ($n < $size && $this->bytes < self::BATCH_ROOM && hrtime(true) < $until) {
                $look = min($size, $n + 16);
                continue;
            }
            yield;
            if ($this->left) {
                return;
            }
            $size = $this->pace->size();
            $until = hrtime(true) + self::PATIENCE;
            $n = 0;
            $look = min($size, 16);
        }
    }

    /** @throws UnserializableException */
    private static function encode(mixed $key, mixed $value): Encoded
    {
        if (\is_string($value)) {
            return new Encoded($value, Protocol::STRING);
        }
        return new Encoded(Portable::serialize($value, 'The argument' . Portable::forKey($key)), Protocol::SERIALIZED);
    }
}
