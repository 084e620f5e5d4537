<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** What somebody told by NOTIFY. */
final readonly class Notification
{
    /** @param int $pid of the server process that told */
    public function __construct(public string $channel, public string $payload, public int $pid) {}
}
