<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A notification that was sent with NOTIFY. */
final readonly class Notification
{
    /** @param int $pid process id of the sending server session */
    public function __construct(public string $channel, public string $payload, public int $pid) {}
}
