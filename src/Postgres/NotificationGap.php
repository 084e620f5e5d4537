<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost and reopened. Notifications may be missing, so reload the state that they announce. */
final readonly class NotificationGap
{
    /**
     * @param \DateTimeImmutable $since last sign of life before the loss, by this machine's clock
     * @param \Throwable $reason why the connection was lost
     */
    public function __construct(public \DateTimeImmutable $since, public \Throwable $reason) {}
}
