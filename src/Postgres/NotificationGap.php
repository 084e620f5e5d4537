<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost and is there again: what was told meanwhile did not arrive, so look for yourself. */
final readonly class NotificationGap
{
    /**
     * @param \DateTimeImmutable $since when the connection was found lost
     * @param \Throwable         $reason why
     */
    public function __construct(public \DateTimeImmutable $since, public \Throwable $reason) {}
}
