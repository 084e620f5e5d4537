<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\Native\Exchange;

/** A fiber that waits for a session, with the statement that it wants to run, if that can be sent for it. */
final class Waiter
{
    /** Its place among the {@see Waiters}. */
    public int $place = 0;

    /** Order of arrival among all waiters of the queue. */
    public int $number = 0;

    /** The session that it got. */
    public ?Member $member = null;

    /** Whether its statement was sent there. */
    public bool $isSent = false;

    /** Why it gets none. */
    public ?\Throwable $failure = null;

    /**
     * @param Exchange    $exchange   what it waits on: its answer if its statement is sent, otherwise the session
     * @param bool        $alone      whether it wants a session for itself
     * @param int         $cost       nanoseconds that its statement usually takes
     * @param int         $since      when it came: hrtime
     * @param string|null $sql        null when nothing can be sent for it
     * @param list<mixed> $parameters
     */
    public function __construct(
        public readonly Exchange $exchange,
        public readonly bool $alone,
        public readonly int $cost,
        public readonly int $since,
        public readonly ?string $sql = null,
        #[\SensitiveParameter]
        public readonly array $parameters = [],
    ) {}

    /** @return array<string, mixed> no values */
    public function __debugInfo(): array
    {
        return ['sql' => $this->sql];
    }
}
