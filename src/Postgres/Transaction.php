<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\TransactionRun;

/**
 * A transaction that is open, on a connection of its own. It is of use until the function that got it returns.
 *
 * Several fibers may send statements through it; they are run in the order in which they were sent.
 */
final class Transaction implements PostgresLink
{
    /** @internal */
    public function __construct(private ?Session $session, private readonly int $depth) {}

    public function query(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): Result
    {
        return $this->session()->query($sql, $parameters, $cancellation);
    }

    public function execute(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): int
    {
        return $this->session()->query($sql, $parameters, $cancellation)->affected;
    }

    public function stream(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): \Generator
    {
        yield from $this->session()->stream($sql, $parameters, $cancellation);
    }

    public function copyFrom(string $sql, iterable $data, ?Cancellation $cancellation = null): int
    {
        return $this->session()->copyFrom($sql, $data, $cancellation);
    }

    public function copyTo(string $sql, ?Cancellation $cancellation = null): \Generator
    {
        yield from $this->session()->copyTo($sql, $cancellation);
    }

    public function executeScript(string $sql, ?Cancellation $cancellation = null): void
    {
        $this->session()->script($sql, $cancellation);
    }

    public function transaction(\Closure $work, ?Isolation $isolation = null, int $retries = 0, ?Cancellation $cancellation = null): mixed
    {
        if ($isolation !== null || $retries !== 0) {
            throw new \LogicException('An isolation level and retries belong to the outermost transaction');
        }

        return TransactionRun::nested($this->session(), $this->depth + 1, $work, $cancellation);
    }

    /** @internal the transaction is over */
    public function end(): void
    {
        $this->session = null;
    }

    private function session(): Session
    {
        return $this->session ?? throw new \LogicException('The transaction is over: use what it gave after the function that got it returned');
    }
}
