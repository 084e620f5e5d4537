<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\LoopTurn;
use Spindle\Internal\OneWayGenerator;
use Spindle\Worker\PoolClosedException;

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

    /** Bytes that may be. */
    private const ROOM = 16 << 20;

    /** The loop turns at least this often while there are results, in nanoseconds. */
    private const TURN = 500_000;

    private readonly int $id;
    private readonly Pace $pace;

    private readonly MapInput $input;

    /**
     * @var array<int, array{int, list<mixed>, string|array{string, list<string>}|\Throwable|\Generator<mixed, mixed, mixed, mixed>, int, int, float}> what the
     *      caller's loop has not taken: count, keys, results, their size, attempt, bytes of the arguments; by the number of the first task, or as it came
     */
    private array $done = [];
    private int $doneBytes = 0;

    private int $next = 0;
    private int $came = 0;

    /** Tasks that have their outcomes; and those that the caller's loop has taken, with the bytes of their arguments. */
    private int $settled = 0;
    private int $delivered = 0;
    private float $deliveredBytes = 0.0;

    private bool $left = false;
    private bool $ended = false;

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
        iterable $input,
        private readonly string $code,
        private readonly bool $inOrder,
    ) {
        $this->id = ++self::$last;
        $this->pace = new Pace();
        $this->input = new MapInput($dispatcher, $this, $this->pace, $input);
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
        $subscription = $cancellation?->subscribe($this->cancelled(...));
        $this->dispatcher->open($this);
        try {
            $this->input->pullSoon();
            while (($chunk = $this->chunk()) !== null) {
                [$count, $keys, $what, , $attempt, $bytes] = $chunk;
                $chunk = null;
                if (\is_string($what)) {
                    foreach (Packing::values($what) as $i => $value) {
                        yield $keys[$i] => $value;
                        if ($cancellation !== null && $this->isCancelled($cancellation)) {
                            break;
                        }
                    }
                } elseif (\is_array($what)) {
                    [$kinds, $values] = $what;
                    $what = null; // of values that may be large, none is held for longer than needed
                    foreach ($values as $i => $value) {
                        yield $keys[$i] => Outcome::value(\ord($kinds[$i]), $value, $attempt, $keys[$i]);
                        if ($cancellation !== null && $this->isCancelled($cancellation)) {
                            break;
                        }
                    }
                } elseif ($what instanceof \Generator) {
                    yield from self::once($keys[0], $what);
                    yield from OneWayGenerator::release();
                } else {
                    throw $what;
                }
                $this->delivered += $count;
                $this->deliveredBytes += $bytes;
                $this->input->pullSoon();
            }
            $this->left = $this->ended = true; // whatever still yields items is its reader's
        } finally {
            if ($cancellation !== null && $subscription !== null) {
                $cancellation->unsubscribe($subscription);
            }
            $this->leave(Dispatcher::LEAVING);
            $this->dispatcher->forget($this);
            $this->input->release();
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
        return $this->input->demand();
    }

    public function take(int $most, int $workers): ?Batch
    {
        return $this->input->take($most);
    }

    /** Whether more of the input may be pulled. */
    public function hasRoom(): bool
    {
        $window = max(self::WINDOW, self::BATCHES_AHEAD * $this->dispatcher->size() * $this->pace->size());

        return $this->input->pulled - $this->delivered < $window
            && $this->doneBytes + $this->input->bytes - $this->deliveredBytes < self::ROOM;
    }

    /** More of the input was, or it has ended. */
    public function pulled(): void
    {
        if ($this->isSettled()) {
            $this->wake();
        }
    }

    public function succeeded(Batch $batch, int $from, int $count, string|array $results, int $size): void
    {
        $this->settle($batch, $from, $count, $results, $size);
    }

    public function failed(Batch $batch, int $index, \Throwable $failure): void
    {
        $this->settle($batch, $index, 1, $failure, 0);
    }

    public function streams(Batch $batch, int $index, Stream $stream): void
    {
        $this->settle($batch, $index, 1, $stream->items(), 0);
    }

    public function isLeft(): bool
    {
        return $this->left;
    }

    public function close(): void
    {
        $this->input->close(PoolClosedException::unread());
        $this->wake();
    }

    public function abort(\Throwable $reason): void
    {
        $this->aborted ??= $reason;
        $this->ended = $this->left = true;
        $this->input->drop();
        $this->wake();
    }

    /** Whether all that was pulled has its outcome, and no more will be. */
    public function isSettled(): bool
    {
        return $this->left ? $this->ended : $this->input->isOver() && $this->settled === $this->input->pulled;
    }

    /** After it was left: none of its tasks is with a worker any more. */
    public function ended(): void
    {
        $this->ended = true;
        $this->wake();
    }

    /**
     * A generator holds what it has yielded until it yields again. What this one has yielded is let go when it ends and
     * the one that delegates goes on to another, empty one: a stream that nobody reads does not hold up its worker then.
     *
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

    private function cancelled(CancelledException $exception): void
    {
        $this->aborted ??= $exception;
        $this->leave(0.0);
    }

    /** Whether it is now, of which a callback of the loop would tell later. */
    private function isCancelled(Cancellation $cancellation): bool
    {
        try {
            $cancellation->throwIfRequested();

            return false;
        } catch (CancelledException $exception) {
            $this->cancelled($exception);

            return true;
        }
    }

    private function leave(float $patience): void
    {
        if ($this->left) {
            return;
        }
        $this->left = true;
        $this->input->drop();
        $this->done = [];
        $this->dispatcher->leave($this, $patience);
        $this->wake();
    }

    /**
     * Waits for what the caller's loop gets next.
     *
     * @return array{int, list<mixed>, string|array{string, list<string>}|\Throwable|\Generator<mixed, mixed, mixed, mixed>, int, int, float}|null
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
                $this->doneBytes -= $chunk[3];
                $this->next += $this->inOrder ? $chunk[0] : 1;

                return $chunk;
            } elseif ($this->isSettled()) {
                return $this->input->failure === null ? null : throw $this->input->failure;
            }
            $this->consumer = EventLoop::getSuspension();
            try {
                $this->consumer->suspend();
            } catch (\FiberError $blocked) {
                $this->consumer = null;

                throw CannotWaitException::because($blocked);
            }
            $this->turned = hrtime(true);
        }
    }

    /** The caller's loop may take long over each result: workers are heard and fed all the same. */
    private function turn(): void
    {
        LoopTurn::await();
        $this->turned = hrtime(true);
    }

    private function wake(): void
    {
        $consumer = $this->consumer;
        $this->consumer = null;
        $consumer?->resume();
    }

    /** @param string|array{string, list<string>}|\Throwable|\Generator<mixed, mixed, mixed, mixed> $what results, or what there is instead */
    private function settle(Batch $batch, int $from, int $count, string|array|\Throwable|\Generator $what, int $size): void
    {
        $this->settled += $count;
        if ($this->left) {
            return;
        }
        $keys = $count === \count($batch->keys) ? $batch->keys : \array_slice($batch->keys, $from, $count);
        $this->done[$this->inOrder ? $batch->first + $from : $this->came++] = [$count, $keys, $what, $size, $batch->attempt, $batch->bytesEach * $count];
        $this->doneBytes += $size;
        if ($this->consumer !== null && isset($this->done[$this->next])) {
            $this->wake();
        }
    }
}
