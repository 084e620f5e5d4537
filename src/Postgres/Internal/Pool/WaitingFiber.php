<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\Exchange;

/** A fiber that waits for a session, with its statement if that can be sent on its behalf. */
final class WaitingFiber
{
    /** Position among the {@see WaitingFibers}. */
    public int $index = 0;

    /** Order of arrival among all waiters of the queue. */
    public int $sequence = 0;

    public ?PooledSession $pooled = null;

    /** Whether the statement was sent on the session. */
    public bool $isSent = false;

    /** Why the waiter gets no session. */
    public ?\Throwable $failure = null;

    /**
     * @param Exchange    $exchange   wakes the fiber: with the answer if the statement is sent, else with the session
     * @param bool        $isExclusive      whether the waiter needs a session alone
     * @param int         $cost       nanoseconds that the statement usually takes
     * @param int         $since      time of arrival: hrtime
     * @param string|null $sql        statement to send on its behalf, if any
     * @param list<mixed> $parameters
     */
    public function __construct(
        public readonly Exchange $exchange,
        public readonly bool $isExclusive,
        public readonly int $cost,
        public readonly int $since,
        public readonly ?string $sql = null,
        #[\SensitiveParameter]
        public readonly array $parameters = [],
    ) {}

    /** @return array<string, mixed> without values of parameters */
    public function __debugInfo(): array
    {
        return ['sql' => $this->sql];
    }
}
