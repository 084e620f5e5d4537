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
 * What is announced, for any number of followers in this process. They share one connection, which listens as long as there
 * is one of them.
 */
final class ChangeFeed
{
    /** @var array<int, Follower> */
    private array $followers = [];

    private ?DeferredCancellation $listening = null;

    public function __construct(private readonly PostgresPool $database) {}

    /**
     * Each change as it is told of, without end; null wherever some may have been missed.
     *
     * @return \Generator<int, Announced|null>
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
            foreach ($this->database->listen(Announcements::CHANNEL, $cancellation) as $told) {
                $announced = $told instanceof Notification ? Announced::all($told->payload) : [null];
                foreach ($this->followers as $follower) {
                    $follower->tell($announced);
                }
            }
        } catch (CancelledException) {
            // Nobody follows any more.
        } catch (\Throwable $failure) {
            if ($cancellation->isRequested()) {
                return; // whoever follows now has another listener
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
