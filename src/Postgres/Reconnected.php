<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost and reopened. Notifications may be missing, so reload the data that they are about. */
final readonly class Reconnected
{
    /**
     * @param \DateTimeImmutable $since notifications sent after this time may be lost. This is when the last bytes
     *     arrived from the server, by this machine's clock; or earlier if a slow loop had let notifications wait at the
     *     server
     * @param \Throwable $reason why the connection was lost
     */
    public function __construct(public \DateTimeImmutable $since, public \Throwable $reason) {}
}
