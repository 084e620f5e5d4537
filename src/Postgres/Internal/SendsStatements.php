<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Postgres\Isolation;
use Spindle\Postgres\Result;

/** The methods of {@see \Spindle\Postgres\PostgresLink} that only pass a call on to a {@see ConnectionSession}. */
trait SendsStatements
{
    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        return $this->connectionSession()->query($sql, $parameters, $cancellation);
    }

    public function execute(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): int {
        return $this->connectionSession()->query($sql, $parameters, $cancellation)->affectedRows;
    }

    public function copyFrom(
        string $sql,
        #[\SensitiveParameter]
        iterable $data,
        ?Cancellation $cancellation = null,
    ): int {
        return $this->connectionSession()->copyFrom($sql, $data, $cancellation);
    }

    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator
    {
        yield from $this->connectionSession()->copyTo($sql, $cancellation);
    }

    public function executeScript(string $sql, ?Cancellation $cancellation = null): void
    {
        $this->connectionSession()->script($sql, $cancellation);
    }

    public function transaction(
        \Closure $work,
        ?Isolation $isolation = null,
        int $retries = 0,
        ?Cancellation $cancellation = null,
    ): mixed {
        return TransactionRun::run($this->connectionSession(), $work, $isolation, $retries, $cancellation);
    }

    abstract private function connectionSession(): ConnectionSession;
}
