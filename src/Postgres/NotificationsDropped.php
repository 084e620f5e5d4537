<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The loop over listenShared() was too slow, so notifications were dropped. Reload the data that they are about. */
final readonly class NotificationsDropped
{
    /**
     * @param int $count number of dropped notifications. More may be missing if the connection was lost after `$since`
     * @param \DateTimeImmutable $since time by this machine's clock. No notification that arrived at this machine
     *     earlier is missing. If the event loop was blocked, the first missing notification may have arrived much later
     */
    public function __construct(public int $count, public \DateTimeImmutable $since) {}
}
