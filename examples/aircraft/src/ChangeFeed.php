<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresPool;

/**
 * Announced changes for any number of followers in this process.
 *
 * All followers share one connection, which listens while there is at least one follower.
 */
final class ChangeFeed
{
    /** @var array<int, Follower> */
    private array $followers = [];

    private ?DeferredCancellation $listening = null;

    public function __construct(private readonly PostgresPool $database) {}

    /**
     * Yields changes as they are announced, without end; null where changes may have been missed.
     *
     * @return \Generator<int, AnnouncedChange|null>
     */
    public function follow(?Cancellation $cancellation = null): \Generator
    {
        $follower = new Follower();
        $this->followers[spl_object_id($follower)] = $follower;
        if ($this->listening === null) {
            $this->listening = new DeferredCancellation();
            EventLoop::queue($this->listen(...), $this->listening->getCancellation());
        }
        try {
            while (true) {
                yield from $follower->take($cancellation);
            }
        } finally {
            unset($this->followers[spl_object_id($follower)]);
            if ($this->followers === []) {
                $this->stop();
            }
        }
    }

    private function listen(Cancellation $cancellation): void
    {
        try {
            foreach ($this->database->listen(Announcements::CHANNEL, $cancellation) as $notification) {
                $announced = $notification instanceof Notification
                    ? AnnouncedChange::all($notification->payload)
                    : [null];
                foreach ($this->followers as $follower) {
                    $follower->add($announced);
                }
            }
        } catch (CancelledException) {
            // The last follower has left.
        } catch (\Throwable $failure) {
            if ($cancellation->isRequested()) {
                return; // new followers have another listener
            }
            $this->stop();
            foreach ($this->followers as $follower) {
                $follower->fail($failure);
            }
        }
    }

    private function stop(): void
    {
        $listening = $this->listening;
        $this->listening = null;
        $listening?->cancel();
    }
}
