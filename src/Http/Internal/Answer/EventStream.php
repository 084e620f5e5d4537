<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\Internal\Message\ReadOnlyStream;
use Spindle\Http\ServerSentEvent;
use Spindle\Internal\Async\Condition;

/**
 * A response body of server-sent events. The iterator runs in other fibers than the reader. It is resumed for the next
 * event only after the previous event was read. A reader that waits longer than the heartbeat gets a comment.
 *
 * Closing the stream resumes a suspended reader. The stream is then at its end.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
final class EventStream implements StreamInterface
{
    use ReadOnlyStream;

    private const COMMENT = ":\n\n";

    /** @var \Generator<mixed, ServerSentEvent|string>|null the only reference to the generator; null after its end */
    private ?\Generator $events;

    private bool $started = false;

    /** Whether a fiber is running the iterator, or is suspended in it. That fiber will resume the reader. */
    private bool $running = false;

    private bool $closed = false;

    private ?\Throwable $failure = null;

    /** Unread bytes. A comment comes first, which shows the client immediately that the stream is open. */
    private string $unread = self::COMMENT;

    private int $position = 0;

    /**
     * Conditions on which readers wait, by stream. If they were in properties, a dump of a response would contain the
     * reader's fiber, and through it the data of other connections.
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
        $this->events = (static fn(): \Generator => yield from $events)();
    }

    /** @throws \Throwable exception of the iterator */
    public function read(int $length): string
    {
        if ($this->unread === '' && $this->failure === null && !$this->eof()) {
            $this->await();
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

    public function tell(): int
    {
        return $this->position;
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

    /** Waits up to $timeout seconds until a closed stream's iterator has ended: its `finally` blocks may suspend. */
    public function awaitEnd(float $timeout): void
    {
        if ($this->running) {
            $this->suspend($timeout, $this->wake(...));
        }
    }

    /** Suspends until an event, the end, or the next heartbeat. */
    private function await(): void
    {
        $this->start();
        $this->suspend($this->heartbeat, $this->sendHeartbeat(...));
    }

    /** @param \Closure(): void $onTimeout has to call {@see wake()} */
    private function suspend(float $timeout, \Closure $onTimeout): void
    {
        $reader = new Condition();
        self::readers()[$this] = $reader;
        $timer = $timeout === \INF ? null : EventLoop::delay($timeout, $onTimeout);
        try {
            $reader->wait();
        } finally {
            self::readers()->offsetUnset($this);
            $timer === null ? null : EventLoop::cancel($timer);
        }
    }

    /** Makes the event loop run the iterator up to its next event. */
    private function start(): void
    {
        if (!$this->running && $this->events !== null) {
            $this->running = true;
            EventLoop::queue($this->advance(...));
        }
    }

    private function advance(): void
    {
        try {
            $this->closed ? null : $this->next();
        } catch (\Throwable $failure) {
            $this->fail($failure);
        }
        if ($this->closed || $this->failure !== null) {
            $this->endGenerator($this->failure ?? ClientDisconnectedException::closed());
        }
        $this->running = false;
        $this->wake();
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

    /** Ends the generator by an exception, so that its `finally` blocks can suspend. Their exceptions are dropped. */
    private function endGenerator(\Throwable $why): void
    {
        try {
            try {
                $this->started && $this->events?->valid() === true ? $this->events->throw($why) : null;
            } finally {
                $this->events = null;
            }
        } catch (\Throwable) {
        }
    }

    private function sendHeartbeat(): void
    {
        $this->unread .= self::COMMENT;
        $this->wake();
    }

    private function wake(): void
    {
        $reader = self::readers()[$this] ?? null;
        self::readers()->offsetUnset($this);
        $reader?->notify();
    }

    /** @return \WeakMap<self, Condition> */
    private static function readers(): \WeakMap
    {
        return self::$readers ??= new \WeakMap();
    }
}
