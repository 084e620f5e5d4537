<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Spindle\Postgres\Notification;
use Spindle\Postgres\NotificationsDropped;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\Reconnected;

/** Passes the notifications of one session to any number of foreach loops. The session is open during these loops. */
final class SharedListening
{
    private ?ListeningGroup $group = null;

    /** @param DeferredCancellation $ending as in {@see Listening::to()} */
    public function __construct(
        private readonly PostgresOptions $options,
        private readonly DeferredCancellation $ending,
    ) {}

    /**
     * @param list<string> $channels
     *
     * @return \Generator<int, Notification|Reconnected|NotificationsDropped>
     */
    public function listen(array $channels, ?Cancellation $cancellation): \Generator
    {
        $channels = array_values(array_unique($channels));
        Channels::check($channels);
        $cancellation?->throwIfRequested();
        if ($this->group === null || $this->group->hasEnded()) {
            $this->group = new ListeningGroup(new SessionFactory($this->options), $this->ending);
        }
        $group = $this->group;
        $reader = new NotificationReader($channels);
        $group->add($reader);
        try {
            while (($events = $reader->take($cancellation)) !== []) {
                foreach ($events as $event) {
                    yield $event;
                }
            }
        } finally {
            $group->remove($reader);
        }
    }
}
