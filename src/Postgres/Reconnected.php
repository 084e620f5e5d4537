<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost and reopened. Notifications may be missing, so reload the data that they are about. */
final readonly class Reconnected
{
    /**
     * @param \DateTimeImmutable $since time by this machine's clock. Notifications sent after this time may be lost.
     *     The time is up to about 1 s before the last bytes arrived from the server. It is earlier if the event loop
     *     was blocked, the clock was changed, or your loop was so slow that notifications waited at the server
     * @param \Throwable $reason why the connection was lost
     */
    public function __construct(public \DateTimeImmutable $since, public \Throwable $reason) {}
}
