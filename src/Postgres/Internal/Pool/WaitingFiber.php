<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Protocol\Exchange;

/** A fiber that waits for a session, and its statement if the pool can send the statement for the fiber. */
final class WaitingFiber
{
    /** Key of this waiter in {@see WaitingFibers}. */
    public int $index = 0;

    /** Order of arrival among all waiters of the queue. */
    public int $sequence = 0;

    /** The session that was lent to the waiter; null until then. */
    public ?PooledSession $pooled = null;

    /** Whether the pool has sent the statement on the session. */
    public bool $isSent = false;

    /** Why the waiter gets no session. */
    public ?\Throwable $failure = null;

    /**
     * @param Exchange $exchange resumes the fiber when the statement was answered or a session was lent
     * @param int $cost nanoseconds that the statement usually takes on the server
     * @param int $since time of arrival, by hrtime()
     * @param string|null $sql statement that the pool may send for the fiber; null when the fiber must send it
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

    /** @return array<string, mixed> the statement without its parameters */
    public function __debugInfo(): array
    {
        return ['sql' => $this->sql];
    }
}
