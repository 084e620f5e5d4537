<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\CallerTrace;
use Spindle\Postgres\Internal\Protocol\Exchange;

/** A fiber that waits for a session. If `$sql` is set, the pool sends this statement when it lends the session. */
final class WaitingFiber
{
    /** Key of this waiter in {@see WaitingFibers}. */
    public int $index = 0;

    public ?PooledSession $pooled = null;

    public bool $isSent = false;

    public ?\Throwable $failure = null;

    /**
     * @param Exchange $exchange resumes the fiber after the answer to `$sql`, or after the lending if nothing was sent
     * @param int $cost nanoseconds that the statement usually takes on the server
     * @param int $since when the fiber asked for a session, by hrtime(); the fiber may have pinged sessions since then
     * @param string|null $sql statement for the pool to send on the lent session; null if the fiber itself sends one
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

    /** @throws \Throwable the reason why no session was lent, such as a timeout. Call session() only after the wait */
    public function session(): PooledSession
    {
        if ($this->failure !== null) {
            throw CallerTrace::of($this->failure);
        }

        return $this->pooled ?? throw new \LogicException('A fiber that waits for a session was woken without one');
    }

    /** @return array<string, mixed> the statement without its parameters */
    public function __debugInfo(): array
    {
        return ['sql' => $this->sql];
    }
}
