<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\Internal\Message\PositionedStream;
use Spindle\Http\ServerSentEvent;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\Coroutine;

/**
 * A response body of server-sent events. The iterator of the events runs in a separate fiber, and produces an event
 * only after the previous event was read. Without an event for `$heartbeat` seconds, the reader gets a comment.
 *
 * When the stream is closed, a suspended reader resumes and finds the end of the stream.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
final class EventStream implements StreamInterface
{
    use PositionedStream;

    private const COMMENT = ":\n\n";

    /** @var \Generator<mixed, ServerSentEvent|string>|null null after the end of the generator, to free it */
    private ?\Generator $events;

    private readonly Coroutine $producer;

    private bool $started = false;

    /** Whether a fiber is running the iterator, or is suspended in the iterator. That fiber will resume the reader. */
    public bool $isRunning = false;

    private bool $closed = false;

    private ?\Throwable $failure = null;

    /** Unread bytes. A comment before the first event shows the client immediately that the stream is open. */
    private string $unread = self::COMMENT;

    /**
     * Conditions on which readers wait, by stream. If a property held the condition, a dump of a response would contain
     * the reader's fiber, and through this fiber the data of other connections.
     *
     * @var \WeakMap<self, Condition>|null
     */
    private static ?\WeakMap $readers = null;

    /**
     * @param iterable<ServerSentEvent|string> $events
     * @param float $heartbeat seconds between comments while there are no events; INF for no comments
     */
    public function __construct(iterable $events, private readonly float $heartbeat)
    {
        $this->events = $events instanceof \Generator ? $events : (static fn(): \Generator => yield from $events)();
        $this->producer = new Coroutine();
    }

    /** @throws \Throwable exception of the iterator */
    public function read(int $length): string
    {
        if ($this->unread === '' && $this->failure === null && !$this->eof()) {
            $this->start();
            $this->suspend($this->heartbeat, $this->sendHeartbeat(...));
        }
        if ($this->unread === '' && $this->failure !== null) {
            throw $this->failure;
        }
        $bytes = substr($this->unread, 0, $length);
        $this->unread = substr($this->unread, \strlen($bytes));
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->closed || $this->unread === '' && $this->events === null && $this->failure === null;
    }

    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        [$this->unread, $this->failure] = ['', null];
        $this->start();
        $this->wake();
    }

    /** Waits up to $timeout seconds for the end of a closed stream's iterator, whose `finally` blocks may suspend. */
    public function awaitEnd(float $timeout): void
    {
        if ($this->isRunning) {
            $this->suspend($timeout, $this->wake(...));
        }
    }

    /** @param \Closure(): void $onTimeout must end the wait with {@see wake()} */
    private function suspend(float $timeout, \Closure $onTimeout): void
    {
        $reader = new Condition();
        $readers = self::$readers ??= new \WeakMap();
        $readers[$this] = $reader;
        $timer = $timeout === \INF ? null : EventLoop::delay($timeout, $onTimeout);
        try {
            $reader->wait();
        } finally {
            unset($readers[$this]);
            $timer === null ? null : EventLoop::cancel($timer);
        }
    }

    /** Makes the event loop run the iterator up to its next event, or end the iterator if the stream is closed. */
    private function start(): void
    {
        if (!$this->isRunning && $this->events !== null) {
            $this->isRunning = true;
            $this->producer->queue($this->advance(...));
        }
    }

    /** Runs the iterator to its next event, or ends it if the stream is closed. Returns whether events may follow. */
    private function advance(): bool
    {
        try {
            $this->closed ? null : $this->next();
        } catch (\Throwable $failure) {
            $this->fail($failure);
        }
        if ($this->closed || $this->failure !== null) {
            $this->endGenerator($this->failure ?? ClientDisconnectedException::closed());
        }
        $this->isRunning = false;
        $this->wake();

        return $this->events !== null;
    }

    private function next(): void
    {
        $this->started ? $this->events?->next() : $this->started = true;
        if ($this->events?->valid() !== true) {
            $this->events = null;
        } elseif (!$this->closed) {
            $event = $this->events->current();
            $this->unread .= $event instanceof ServerSentEvent ? $event : new ServerSentEvent($event);
        }
    }

    private function fail(\Throwable $failure): void
    {
        if (!$this->closed) {
            $this->failure = $failure;
        }
    }

    /** Ends the generator with throw(). If PHP destroyed the generator, its `finally` blocks could not suspend. */
    private function endGenerator(\Throwable $why): void
    {
        try {
            try {
                $this->started && $this->events?->valid() === true ? $this->events->throw($why) : null;
            } finally {
                $this->events = null;
            }
        } catch (\Throwable) { // drops $why, which the generator throws again, or the exception of a `finally` block
        }
    }

    private function sendHeartbeat(): void
    {
        $this->unread .= self::COMMENT;
        $this->wake();
    }

    private function wake(): void
    {
        (self::$readers[$this] ?? null)?->notify();
    }
}
