<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Worker\UnserializableException;

/**
 * The input of a {@see MapRun}, made into batches: pulled in callbacks of the loop, for it may suspend, and one batch ahead,
 * so that it is there when a worker gets free.
 */
final class MapInput
{
    /** Bytes of arguments in one batch. */
    private const ROOM = 1 << 18;

    /** An input may take this long for a batch, in nanoseconds, before what there is of it is sent. */
    private const PATIENCE = 1_000_000;

    /** Tasks until the clock is read again. */
    private const LOOK = 16;

    /** Tasks in batches so far, and bytes of their arguments. */
    public int $pulled = 0;
    public float $bytes = 0.0;

    /** What is thrown when all results have been taken. */
    public ?\Throwable $failure = null;

    /** How many there are in all, as far as can be known before. */
    private readonly int $count;

    /** @var \Generator<int, null, mixed, void>|null pulls, and pauses whenever there is a batch */
    private ?\Generator $puller;

    /** @var list<bool|int|float|string|null|Encoded> pulled and not in a batch yet */
    private array $tasks = [];

    /** @var list<mixed> */
    private array $keys = [];
    private bool $packed = false;
    private bool $integers = true;
    private int $size = 0;

    /** The batch that nobody has taken yet. */
    private ?Batch $ready = null;

    private bool $pulling = false;
    private bool $suspended = false;
    private bool $exhausted = false;
    private bool $dropped = false;

    /**
     * @param iterable<mixed, mixed> $input
     */
    public function __construct(
        private readonly Dispatcher $dispatcher,
        private readonly MapRun $run,
        private readonly Pace $pace,
        private iterable $input,
    ) {
        $this->count = self::count($input);
        $this->puller = $this->batches();
    }

    /** Pulls a batch at the loop's next turn, unless there is one, or no room for it. */
    public function pullSoon(): void
    {
        if ($this->pulling || $this->exhausted || $this->dropped || $this->ready !== null || $this->tasks !== [] || !$this->run->hasRoom()) {
            return;
        }
        $this->pulling = true;
        EventLoop::queue($this->pull(...));
    }

    /** How many workers could have a batch of it now. */
    public function demand(): int
    {
        if ($this->dropped) {
            return 0;
        }
        $ready = $this->ready === null ? 0 : 1;

        return $this->exhausted || !$this->run->hasRoom()
            ? $ready + ($this->tasks === [] ? 0 : 1)
            : $ready + max(0, $this->count - $this->pulled);
    }

    /** The next batch that is there, of no more tasks than this. */
    public function take(int $most): ?Batch
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

    /**
     * Pulls no more, and throws this in the end; unless all of it has been pulled. A pull that is under way is not waited
     * for, because the input may be what closes the pool. A value that it still gives is dropped.
     */
    public function close(\Throwable $failure): void
    {
        if (!$this->exhausted) {
            $this->exhausted = true;
            $this->suspended = $this->pulling;
            $this->failure = $failure;
        }
    }

    /** Forgets what was pulled and not taken, and pulls no more. */
    public function drop(): void
    {
        $this->dropped = true;
        $this->ready = null;
        $this->tasks = $this->keys = [];
    }

    /** Lets go of the caller's input: nothing more is wanted of it. */
    public function release(): void
    {
        $this->drop();
        $this->puller = null;
        $this->input = [];
    }

    /** Whether no more batches will come of it than the one that may be there. */
    public function isOver(): bool
    {
        return $this->exhausted && $this->tasks === [];
    }

    private function pull(): void
    {
        if ($this->isDropped()) {
            return;
        }
        $turn = \is_array($this->input) ? null : EventLoop::unreference(EventLoop::defer(function (): void {
            $this->suspended = true; // still pulling at the loop's next turn
            $this->dispatcher->fill();
        }));
        try {
            $this->puller?->next();
        } catch (\Throwable $failure) {
            $this->failure ??= $failure;
        }
        if ($turn !== null) {
            EventLoop::cancel($turn);
        }
        $this->pulling = $this->suspended = false;
        if ($this->puller?->valid() !== true) {
            $this->exhausted = true;
        }
        $this->dispatcher->followUser();
        if ($this->isDropped()) {
            return;
        }
        $this->seal();
        $this->dispatcher->fill(true);
        $this->run->pulled();
    }

    /** Which it may have become meanwhile. */
    private function isDropped(): bool
    {
        return $this->dropped;
    }

    /** Makes a batch of what was pulled. */
    private function seal(): void
    {
        if ($this->tasks === [] || $this->ready !== null || $this->dropped) {
            return;
        }
        $count = \count($this->tasks);
        $this->ready = new Batch($this->run, $this->pulled, $this->tasks, $this->keys, $this->packed, bytesEach: $this->size / $count, integers: $this->integers);
        $this->pulled += $count;
        $this->bytes += $this->size;
        $this->tasks = $this->keys = [];
        $this->packed = false;
        $this->integers = true;
        $this->size = 0;
    }

    /** @return \Generator<int, null, mixed, void> */
    private function batches(): \Generator
    {
        yield; // so that the first pull is like the others
        $tasks = &$this->tasks;
        $keys = &$this->keys;
        $most = $this->pace->size();
        $until = hrtime(true) + self::PATIENCE;
        $n = 0;
        $look = min($most, self::LOOK); // at whether it is enough
        foreach ($this->input as $key => $value) {
            if (\is_int($value)) {
                $tasks[] = $value; // of the tiniest tasks there are the most
            } else {
                $this->add($key, $value);
                $look = $this->size < self::ROOM ? $look : 0;
            }
            $keys[] = $key;
            if ($this->suspended) {
                if ($this->exhausted) {
                    array_pop($tasks);
                    array_pop($keys);

                    return;
                }
                $this->dispatcher->followUser();
                if ($this->dropped) {
                    return;
                }
                $this->dispatcher->fill(true);
            }
            if (++$n < $look) {
                continue;
            }
            if ($n < $most && $this->size < self::ROOM && hrtime(true) < $until) {
                $look = min($most, $n + self::LOOK);
                continue;
            }
            yield;
            $most = $this->pace->size();
            $until = hrtime(true) + self::PATIENCE;
            $n = 0;
            $look = min($most, self::LOOK);
        }
    }

    /** @throws UnserializableException */
    private function add(mixed $key, mixed $value): void
    {
        $this->integers = false;
        if ($value === null || \is_bool($value) || \is_float($value)) {
            $this->tasks[] = $value;
        } elseif (\is_string($value) && \strlen($value) < Protocol::LONG) {
            $this->tasks[] = $value;
            $this->size += \strlen($value);
        } else {
            $encoded = self::encode($key, $value);
            $this->tasks[] = $encoded;
            $this->size += \strlen($encoded->bytes);
            $this->packed = true;
        }
    }

    /** @throws UnserializableException */
    private static function encode(mixed $key, mixed $value): Encoded
    {
        return \is_string($value)
            ? new Encoded($value, Protocol::STRING)
            : new Encoded(Portable::serialize($value, 'The argument' . Portable::forKey($key)), Protocol::SERIALIZED);
    }

    /** @param iterable<mixed, mixed> $input */
    private static function count(iterable $input): int
    {
        try {
            return \is_array($input) || $input instanceof \Countable ? \count($input) : \PHP_INT_MAX;
        } catch (\Throwable) {
            return \PHP_INT_MAX; // it is only asked for how many workers to start
        }
    }
}
