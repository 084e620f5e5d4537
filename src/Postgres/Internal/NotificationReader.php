<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Internal\Async\Condition;
use Spindle\Postgres\Notification;
use Spindle\Postgres\NotificationsDropped;
use Spindle\Postgres\Reconnected;

/** The events that one foreach loop over {@see SharedListening::listen()} has not read yet. */
final class NotificationReader
{
    /** Number of unread events at which further events are dropped until {@see take()} is called. */
    private const MAX_UNREAD = 1_000;

    /** @var list<Notification|Reconnected> */
    private array $unread = [];

    /** Time by microtime(). All notifications that arrived at this machine before this time have been read. */
    private float $unreadSince = 0.0;

    private int $droppedCount = 0;

    private bool $hasDroppedReconnected = false;

    private bool $hasEnded = false;

    private ?\Throwable $failure = null;

    private readonly Condition $changed;

    /** @param list<string> $channels */
    public function __construct(public readonly array $channels)
    {
        $this->changed = new Condition();
    }

    /** @param float $since time by microtime(), as in {@see Channels::$takenSince} */
    public function add(Notification|Reconnected $event, float $since): void
    {
        if ($this->unread === []) {
            $this->unreadSince = $since;
        }
        if (\count($this->unread) < self::MAX_UNREAD) {
            $this->unread[] = $event;
            $this->changed->notify();
        } elseif ($event instanceof Notification) {
            ++$this->droppedCount;
        } else {
            $this->hasDroppedReconnected = true;
            $this->unreadSince = min($this->unreadSince, (float) $event->since->format('U.u'));
        }
    }

    public function end(?\Throwable $failure): void
    {
        $this->hasEnded = true;
        $this->failure ??= $failure;
        $this->changed->notify();
    }

    /**
     * Suspends until events are available, and returns them.
     *
     * @return list<Notification|Reconnected|NotificationsDropped> empty if end() had no failure and no event is left
     */
    public function take(?Cancellation $cancellation): array
    {
        if ($this->unread === [] && !$this->hasEnded) {
            $this->changed->wait($cancellation);
        }
        if ($this->unread === [] && $this->failure !== null) {
            throw CallerTrace::of($this->failure);
        }
        $taken = $this->unread;
        if ($this->droppedCount > 0 || $this->hasDroppedReconnected) {
            $since = new \DateTimeImmutable(\sprintf('@%.6F', $this->unreadSince));
            $taken[] = new NotificationsDropped($this->droppedCount, $since);
        }
        $this->unread = [];
        $this->droppedCount = 0;
        $this->hasDroppedReconnected = false;

        return $taken;
    }
}
