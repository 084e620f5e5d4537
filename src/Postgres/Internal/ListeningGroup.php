<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\DeferredCancellation;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Postgres\Notification;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Reconnected;

use function Amp\async;

/** Readers that share the session of one {@see Listening}. When no reader is left, the session is closed. */
final class ListeningGroup
{
    /** Maximum number of events that are passed on before the fibers of the readers run. */
    private const MAX_AT_ONCE = 100;

    /** Maximum number of readers that end in one turn of the event loop: {@see FiberQueue::MAX_RESUMED_AT_ONCE}. */
    private const MAX_ENDED_AT_ONCE = 64;

    /** @var array<int, NotificationReader> by object id */
    private array $readers = [];

    /** @var array<array-key, array<int, NotificationReader>> by channel and object id */
    private array $readersByChannel = [];

    private readonly Channels $channels;

    private readonly DeferredCancellation $end;

    private readonly int $ownerPid;

    private bool $hasStarted = false;

    /** @param DeferredCancellation $ending as in {@see Listening::to()} */
    public function __construct(
        private readonly SessionFactory $sessionFactory,
        private readonly DeferredCancellation $ending,
    ) {
        $this->channels = new Channels();
        $this->end = new DeferredCancellation();
        $this->ownerPid = (int) getmypid();
        $weak = \WeakReference::create($this);
        $this->channels->onRefused = static fn(string $channel, QueryException $failure)
            => $weak->get()?->refuse($channel, $failure);
    }

    /** Returns whether no further reader can join. A fork can't use the session of its parent process. */
    public function hasEnded(): bool
    {
        return $this->end->isCancelled() || $this->ownerPid !== getmypid();
    }

    public function add(NotificationReader $reader): void
    {
        $id = spl_object_id($reader);
        $this->readers[$id] = $reader;
        foreach ($reader->channels as $channel) {
            $this->readersByChannel[$channel][$id] = $reader;
        }
        $this->channels->add($reader->channels);
        if (!$this->hasStarted) {
            $this->hasStarted = true;
            async($this->run(...))->ignore();
        }
    }

    public function remove(NotificationReader $reader): void
    {
        $id = spl_object_id($reader);
        if (!isset($this->readers[$id])) {
            return;
        }
        unset($this->readers[$id]);
        foreach ($reader->channels as $channel) {
            unset($this->readersByChannel[$channel][$id]);
            if (($this->readersByChannel[$channel] ?? null) === []) {
                unset($this->readersByChannel[$channel]);
            }
        }
        if ($this->readers === []) {
            $this->channels->onChange = null;
            $this->end->cancel();
        }
        $this->channels->remove($reader->channels);
    }

    private function run(): void
    {
        $failure = null;
        try {
            $events = Listening::toChannels(
                $this->sessionFactory,
                $this->channels,
                $this->end->getCancellation(),
                $this->ending,
            );
            foreach ($events as $number => $event) {
                $this->passOn($event);
                if ($number % self::MAX_AT_ONCE === self::MAX_AT_ONCE - 1) {
                    (new Condition())->waitFor(0.0);
                }
            }
        } catch (\Throwable $failure) {
        }
        $this->end->cancel();
        foreach (array_chunk($this->readers, self::MAX_ENDED_AT_ONCE) as $readers) {
            foreach ($readers as $reader) {
                $reader->end($failure);
            }
            (new Condition())->waitFor(0.0);
        }
    }

    private function passOn(Notification|Reconnected $event): void
    {
        $readers = $event instanceof Notification ? $this->readersByChannel[$event->channel] ?? [] : $this->readers;
        foreach ($readers as $reader) {
            $reader->add($event, $this->channels->takenSince);
        }
    }

    private function refuse(string $channel, QueryException $failure): void
    {
        foreach ($this->readersByChannel[$channel] ?? [] as $reader) {
            $this->remove($reader);
            $reader->end($failure);
        }
    }
}
