<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The loop was too slow, and notifications were dropped. Reload the data that they are about. */
final readonly class NotificationsDropped
{
    /**
     * @param int $count number of dropped notifications. More may be missing if the connection was lost since then
     * @param \DateTimeImmutable $since by this machine's clock; no notification that arrived at this machine before
     *     that time is missing. If the event loop was blocked, this can be long before the loop got the first one
     */
    public function __construct(public int $count, public \DateTimeImmutable $since) {}
}
