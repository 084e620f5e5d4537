<?php

declare(strict_types=1);

namespace Spindle\Internal\Async;

use Revolt\EventLoop;
use Spindle\Internal\Clock;

/**
 * Reads values of an iterable while its consumer has room for more. The values are read in callbacks of the event loop,
 * because code of the iterable may suspend the fiber that reads. All code of the iterable runs in the same fiber.
 */
final class InputPump
{
    /** Time after which a callback of the event loop stops reading, in seconds. */
    private const SLICE_SECONDS = 0.001;

    private const VALUES_PER_CLOCK_CHECK = 16;

    /** Strings are passed on when they have this many bytes together, because the consumer may limit its memory. */
    private const MAX_STRING_BYTES = 1 << 16;

    /** Exception of the input or its consumer, or the reason of {@see close()} or {@see fail()}. */
    public ?\Throwable $failure = null;

    /** @var \Generator<int, null, mixed, void>|null reads the values, and yields at the end of each callback */
    private ?\Generator $reading;

    /** Runs the code of the input in one fiber; null if the input is an array, which has no code. */
    private ?Coroutine $coroutine;

    /** Number of values of an array that were not yet passed to the consumer; negative for any other iterable. */
    private int $unreadCount;

    /** @var list<mixed> values that were read but not yet passed to the consumer */
    private array $values = [];

    /** @var list<mixed> keys of $values */
    private array $keys = [];

    /** When $values has this many values, the pump checks again whether to pass them on; 0 for the next value. */
    private int $nextCheck = 0;

    /** Set when the input has ended, has failed or was closed, so that nothing more is read. */
    public bool $isOver = false;

    /** Set while a read is queued or running. The last read may still run when {@see $isOver} is set. */
    public bool $isReading = false;

    /** Whether the running read has suspended its fiber for a turn of the event loop. */
    public bool $isSuspended = false;

    /** Time of {@see Clock::now()} at which the current callback stops reading. */
    private float $sliceEnd = 0.0;

    /**
     * @param InputConsumer|null $consumer set to null after {@see release()}. Otherwise, the consumer and this object
     *     would refer to each other until PHP's next garbage collection
     * @param iterable<mixed, mixed> $input
     */
    public function __construct(private ?InputConsumer $consumer, iterable $input)
    {
        $this->coroutine = \is_array($input) ? null : new Coroutine();
        $this->unreadCount = \is_array($input) ? \count($input) : -1;
        $this->reading = $this->read($input);
    }

    /** Starts to read values in a callback of the loop, if the consumer has room. */
    public function pullSoon(): void
    {
        if (!$this->isReading && !$this->isOver && $this->consumer?->room() > 0) {
            $this->isReading = true;
            $this->coroutine === null ? EventLoop::queue($this->pull(...)) : $this->coroutine->queue($this->pull(...));
        }
    }

    /**
     * Stops reading. Does not wait for a running read, because code of the input may have called this method. The value
     * of that read is dropped.
     *
     * @param \Throwable $reason becomes the failure, unless all values of an array were passed on. The end of any other
     *     iterable is known only after one more read, so $reason becomes the failure even after the last value
     */
    public function close(\Throwable $reason): void
    {
        if (!$this->isOver) {
            $this->passOn();
            $this->stop();
            $this->failure ??= $this->unreadCount === 0 ? null : $reason;
        }
    }

    /** Stops reading. The value of a running read is dropped. */
    public function stop(): void
    {
        $this->isOver = true;
        $this->nextCheck = 0;
    }

    /** Stops reading. The reason becomes the failure, unless the input has failed before. */
    public function fail(\Throwable $reason): void
    {
        $this->stop();
        $this->failure ??= $reason;
    }

    /**
     * Releases the input, and throws the reason why the caller's loop over the results can't begin.
     *
     * @throws \Throwable $refusal, or an exception that the release of the input throws, with $refusal as the previous
     */
    public function refuse(\Throwable $refusal): never
    {
        try {
            throw $refusal;
        } finally {
            $this->release();
        }
    }

    /** Stops reading. Releases the input now and the consumer when no read is running, so that PHP can destroy both. */
    public function release(): void
    {
        $this->stop();
        try {
            $this->reading = null; // a `finally` block of the input may throw
        } finally {
            if (!$this->isReading) {
                // Destroys the coroutine's fiber now, so that the caller can catch exceptions of the fiber. If PHP
                // destroyed the fiber while another exception is thrown, no `catch` block could catch them.
                $this->consumer = $this->coroutine = null;
            }
        }
    }

    /** Reads values in one callback of the event loop. Returns whether the input may have more values. */
    private function pull(): bool
    {
        $turn = $this->coroutine === null ? null : EventLoop::defer($this->suspended(...));
        $this->sliceEnd = Clock::now() + self::SLICE_SECONDS;
        try {
            if (!$this->isOver && $this->consumer?->room() > 0) {
                $this->reading?->next();
            }
        } catch (\Throwable $failure) {
            $this->fail($failure);
        }
        $this->passOnRest();
        if ($turn !== null) {
            EventLoop::cancel($turn);
        }
        $this->isSuspended = false;
        $this->isOver = $this->isOver || $this->reading?->valid() !== true;
        try {
            $this->consumer?->onPaused();
        } finally {
            $this->isReading = false;
            $this->consumer = $this->reading === null ? null : $this->consumer;
        }
        if (Clock::now() < $this->sliceEnd) {
            $this->pullSoon();
        } elseif (!$this->isOver) {
            EventLoop::defer($this->pullSoon(...)); // other events are handled first
        }

        return !$this->isOver;
    }

    /**
     * @param iterable<mixed, mixed> $input
     *
     * @return \Generator<int, null, mixed, void>
     */
    private function read(iterable $input): \Generator
    {
        yield; // for next() in pull(): the first next() of a generator continues after its first yield
        $values = &$this->values;
        $keys = &$this->keys;
        $room = (int) $this->consumer?->room();
        $count = $bytes = 0;
        foreach ($input as $key => $value) {
            // PHP runs signal handlers only at jumps and calls. So no handler can throw between the next two lines, and
            // both lists always have the same length.
            $values[] = $value;
            $keys[] = $key;
            if (\is_int($value) || (\is_string($value) && ($bytes += \strlen($value)) < self::MAX_STRING_BYTES)) {
                if (++$count < $this->nextCheck) {
                    continue;
                }
                $mayWait = $count < $room && !$this->isSuspended && !$this->isOver;
                if ($mayWait && Clock::now() < $this->sliceEnd) {
                    $this->nextCheck = min($room, $count + self::VALUES_PER_CLOCK_CHECK);
                    continue;
                }
            }
            if ($this->isOver) {
                array_pop($values);
                array_pop($keys);

                return;
            }
            $this->passOn();
            if ($this->isSuspended) {
                $this->consumer?->onSuspended();
            }
            $room = (int) $this->consumer?->room();
            if ($room < 1 || Clock::now() > $this->sliceEnd) {
                yield;
                $room = (int) $this->consumer?->room();
            }
            $count = $bytes = 0;
        }
    }

    private function passOn(): void
    {
        [$keys, $values] = [$this->keys, $this->values];
        if ($keys !== [] && $values !== []) {
            $this->keys = $this->values = [];
            $this->nextCheck = 0;
            $this->consumer?->onValues($keys, $values);
            $this->unreadCount -= \count($values);
        }
    }

    private function passOnRest(): void
    {
        try {
            $this->passOn();
        } catch (\Throwable $failure) {
            $this->fail($failure);
        }
    }

    private function suspended(): void
    {
        $this->isSuspended = true;
        $this->passOnRest();
        $this->consumer?->onSuspended();
    }
}
