<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost and is there again: what was told meanwhile did not arrive, so look for yourself. */
final readonly class NotificationGap
{
    /**
     * @param \DateTimeImmutable $since when the connection was known to be there last, by this machine's clock: from then on something may
     *                                   have been missed
     * @param \Throwable         $reason why
     */
    public function __construct(public \DateTimeImmutable $since, public \Throwable $reason) {}
}
