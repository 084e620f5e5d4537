<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost and reopened. Notifications may be missing, so reload the data that they are about. */
final readonly class Reconnected
{
    /**
     * @param \DateTimeImmutable $since notifications sent after this time may be lost. This is up to about 1 s before
     *     the last bytes arrived from the server, by this machine's clock; or earlier if the event loop was blocked, or
     *     if a slow loop had let notifications wait at the server
     * @param \Throwable $reason why the connection was lost
     */
    public function __construct(public \DateTimeImmutable $since, public \Throwable $reason) {}
}
