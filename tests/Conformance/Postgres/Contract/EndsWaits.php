<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;

use function Amp\async;
use function Amp\delay;

/**
 * Tests that the end of a connection ends the calls that wait until another fiber no longer uses the connection.
 *
 * @phpstan-require-extends PoolContract
 */
trait EndsWaits
{
    /** @return iterable<string, array{bool, int, string}> whether there is a pool, depth of the transaction, end */
    public static function waysToEnd(): iterable
    {
        foreach (['kill', 'cancelled close', 'death of the server process'] as $end) {
            foreach ([false, true] as $isPooled) {
                foreach (['a connection', 'a transaction', 'a nested transaction'] as $depth => $link) {
                    yield ($isPooled ? 'pool, ' : '') . "{$link}, {$end}" => [$isPooled, $depth, $end];
                }
            }
        }
    }

    #[DataProvider('waysToEnd')]
    public function testTheEndOfAConnectionEndsTheCallsThatWaitForIt(bool $isPooled, int $depth, string $end): void
    {
        [$owner, $link, $pid] = $this->ownerAndLink($isPooled);
        $class = $end === 'death of the server process'
            ? ConnectionLostException::class
            : ConnectionClosedException::class;
        $test = static function (PostgresLink $link) use ($owner, $pid, $end, $class): void {
            $leave = new DeferredFuture();
            $holder = self::holder($link, $leave->getFuture());
            $calls = array_map(async(...), [
                static fn() => $link->query('SELECT 1'),
                static fn() => $link->executeScript('SELECT 1'),
                static fn() => $link->transaction(static fn(): bool => true),
                static fn() => iterator_to_array($link->stream('SELECT 1')),
                static fn() => iterator_to_array($link->copyTo('COPY (SELECT 1) TO STDOUT')),
            ]);
            delay(0);
            self::end($owner, $pid, $end);
            foreach ($calls as $call) {
                Eventually::holds($call->isComplete(...), 'the call has ended');
                self::thrown($class, $call->await(...));
            }
            // A call that begins to wait after the end fails as well.
            self::thrown(PostgresException::class, static fn(): mixed => $link->query('SELECT 1'));
            $leave->complete();
            self::thrown(PostgresException::class, $holder->await(...));
        };
        $depth === 0
            ? $test($link)
            : self::thrown(PostgresException::class, static fn() => self::nested($link, $depth, $test));
        unset($link, $test);
        $owner->kill();
    }

    #[DataProvider('waysToEnd')]
    public function testTheEndOfAConnectionEndsTransactionsThatWaitForNestedOnes(
        bool $isPooled,
        int $depth,
        string $end,
    ): void {
        [$owner, $link, $pid] = $this->ownerAndLink($isPooled);
        $leave = new DeferredFuture();
        $held = new DeferredFuture();
        $transaction = Async::run(static fn() => self::nested(
            $link,
            $depth + 1,
            static function (PostgresLink $link) use ($leave, $held): void {
                $held->complete([self::holder($link, $leave->getFuture())]);
            },
        ));
        /** @var array{Future<mixed>} $holder */
        $holder = $held->getFuture()->await();
        self::end($owner, $pid, $end);
        Eventually::holds($transaction->isComplete(...), 'the transaction has ended');
        self::thrown(
            $end === 'death of the server process' ? ConnectionLostException::class : ConnectionClosedException::class,
            $transaction->await(...),
        );
        $leave->complete();
        self::thrown(PostgresException::class, $holder[0]->await(...));
        unset($link);
        $owner->kill();
    }

    /** @return array{PostgresConnection|PostgresPool, PostgresLink, int} link and the process id of its connection */
    private function ownerAndLink(bool $isPooled): array
    {
        $owner = $isPooled ? $this->pool(1) : $this->connect();
        $link = $owner instanceof PostgresPool ? $owner->acquire() : $owner;

        return [$owner, $link, $link->backendPid()];
    }

    /**
     * Calls `$work` with a transaction of this depth, or with the link for 0.
     *
     * @param \Closure(PostgresLink): void $work
     */
    private static function nested(PostgresLink $link, int $depth, \Closure $work): void
    {
        $depth === 0
            ? $work($link)
            : $link->transaction(static fn(Transaction $inner) => self::nested($inner, $depth - 1, $work));
    }

    /**
     * Returns the outcome of a transaction that ends together with the future. The transaction has begun.
     *
     * @param Future<mixed> $end
     *
     * @return Future<mixed>
     */
    private static function holder(PostgresLink $link, Future $end): Future
    {
        $begun = new DeferredFuture();
        $holder = Async::run(static fn() => $link->transaction(
            static function (Transaction $transaction) use ($begun, $end): void {
                $transaction->query('SELECT 1');
                $begun->complete();
                $end->await();
            },
        ));
        $begun->getFuture()->await();

        return $holder;
    }

    private static function end(PostgresConnection|PostgresPool $owner, int $pid, string $end): void
    {
        if ($end === 'kill') {
            $owner->kill();
        } elseif ($end === 'cancelled close') {
            $source = new DeferredCancellation();
            $closing = Async::run(static fn() => $owner->close($source->getCancellation()));
            delay(0);
            $source->cancel();
            self::thrown(CancelledException::class, $closing->await(...));
        } else {
            self::terminate($pid);
        }
    }
}
