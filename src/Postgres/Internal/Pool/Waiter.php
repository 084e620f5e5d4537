<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Revolt\EventLoop\Suspension;

/** Somebody who waits for a session. */
final class Waiter
{
    /** What he got, though he may not know it yet. */
    public ?Member $given = null;

    /** What ends its waiting in time. */
    public string $timer = '';

    /** @param Suspension<Member> $suspension */
    public function __construct(public readonly Suspension $suspension, public readonly bool $alone, public readonly int $since) {}
}
