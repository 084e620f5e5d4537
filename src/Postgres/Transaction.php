<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Spindle\Internal\NotCopyable;
use Spindle\Postgres\Internal\ConnectionSession;
use Spindle\Postgres\Internal\SendsStatements;
use Spindle\Postgres\Internal\TransactionRun;

/**
 * An open transaction with exclusive use of its connection. It ends when the function that got it returns or throws.
 *
 * Several fibers can send statements through a transaction. The statements run in the order in which they were sent.
 * While a nested transaction is open, statements of the outer transaction wait for the end of the nested one.
 */
final class Transaction implements PostgresLink
{
    use NotCopyable;
    use SendsStatements;

    /** @internal */
    public function __construct(private readonly ConnectionSession $connectionSession, private readonly int $depth) {}

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): \Generator {
        yield from $this->connectionSession->stream($sql, $parameters, $cancellation);
    }

    public function transaction(
        \Closure $work,
        ?Isolation $isolation = null,
        int $retries = 0,
        ?Cancellation $cancellation = null,
    ): mixed {
        if ($isolation !== null || $retries !== 0) {
            throw new \LogicException('Only the outermost transaction can have an isolation level and retries');
        }

        return TransactionRun::nest($this->connectionSession, $this->depth + 1, $work, $cancellation);
    }

    private function connectionSession(): ConnectionSession
    {
        return $this->connectionSession;
    }
}
