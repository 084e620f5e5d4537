<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Spindle\Internal\NotCopyable;
use Spindle\Postgres\Internal\ConnectionSession;
use Spindle\Postgres\Internal\TransactionRun;

/**
 * An open transaction, which uses its connection exclusively. It ends when the function that received this object ends.
 *
 * Several fibers can send statements through a transaction. The statements run in the order in which they were sent.
 * While a nested transaction is open, statements of the outer transaction wait for its end.
 */
final class Transaction implements PostgresLink
{
    use NotCopyable;

    /** @internal */
    public function __construct(private readonly ConnectionSession $connectionSession, private readonly int $depth) {}

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        return $this->connectionSession->query($sql, $parameters, $cancellation);
    }

    public function execute(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): int {
        return $this->connectionSession->query($sql, $parameters, $cancellation)->affectedRows;
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): \Generator {
        yield from $this->connectionSession->stream($sql, $parameters, $cancellation);
    }

    public function copyFrom(
        string $sql,
        #[\SensitiveParameter]
        iterable $data,
        ?Cancellation $cancellation = null,
    ): int {
        return $this->connectionSession->copyFrom($sql, $data, $cancellation);
    }

    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator
    {
        yield from $this->connectionSession->copyTo($sql, $cancellation);
    }

    public function executeScript(string $sql, ?Cancellation $cancellation = null): void
    {
        $this->connectionSession->script($sql, $cancellation);
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
}
