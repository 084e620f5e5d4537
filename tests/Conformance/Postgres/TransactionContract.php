<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Amp\DeferredFuture;
use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\TransactionAbortedException;
use Spindle\Tests\Async;

/** Tests of a transaction as a link. */
abstract class TransactionContract extends LinkContract
{
    /** @var list<DeferredFuture<null>> one for each transaction, whose function waits for it */
    private array $ends = [];

    /** @var list<Future<null>> */
    private array $transactions = [];

    #[After(5)]
    protected function endTransactions(): void
    {
        foreach ($this->ends as $end) {
            $end->complete();
        }
        foreach ($this->transactions as $transaction) {
            try {
                $transaction->await();
            } catch (TransactionAbortedException) {
                // the test leaves a failed transaction
            }
        }
        $this->ends = $this->transactions = [];
    }

    protected function link(): PostgresLink
    {
        $connection = $this->connect();
        /** @var DeferredFuture<Transaction> $begun */
        $begun = new DeferredFuture();
        /** @var DeferredFuture<null> $end */
        $end = new DeferredFuture();
        $this->ends[] = $end;
        $this->transactions[] = Async::run(
            static fn(): mixed
                => $connection->transaction(static function (Transaction $transaction) use ($begun, $end): mixed {
                    $begun->complete($transaction);

                    return $end->getFuture()->await();
                }),
        );

        return $begun->getFuture()->await();
    }
}
