<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\MeasuresGrowth;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\Future\await;

/** Statements, transactions and connections release their memory at their end, without PHP's garbage collector. */
final class PostgresLeakTest extends TidyTestCase
{
    use CatchesThrown;
    use MeasuresGrowth;
    use UsesCluster;

    private const ROUNDS = 100;

    /** Allowed bytes per round: one growth of PHP's own tables. The smallest statement needs more. */
    private const MAX_GROWTH = 200;

    private const SELECT = 'SELECT i FROM generate_series(1, $1::int) AS i';

    /** @return iterable<string, array{\Closure(PostgresPool): mixed}> */
    public static function work(): iterable
    {
        yield 'rows' => [static fn(PostgresPool $pool) => $pool->query(self::SELECT, [3])->all()];
        yield 'concurrent' => [static fn(PostgresPool $pool) => await(array_map(
            static fn(int $count) => Async::run(static fn() => $pool->query(self::SELECT, [$count])),
            range(1, 20),
        ))];
        yield 'error' => [self::failing(static fn(PostgresPool $pool) => $pool->query('SELECT 1 / 0'))];
        yield 'syntax error' => [self::failing(static fn(PostgresPool $pool) => $pool->query('SELEC'))];
        yield 'cancelled' => [self::failing(static fn(PostgresPool $pool) => $pool->query(
            'SELECT pg_sleep(25)',
            cancellation: new TimeoutCancellation(0.001),
        ))];
        yield 'transaction' => [static fn(PostgresPool $pool) => $pool->transaction(
            static fn(Transaction $outer) => $outer->transaction(
                static fn(Transaction $inner) => $inner->query(self::SELECT, [1])->all(),
            ),
        )];
        yield 'failed transaction' => [self::failing(static fn(PostgresPool $pool) => $pool->transaction(
            static fn(Transaction $transaction) => $transaction->query('SELECT 1 / 0'),
        ))];
        yield 'transaction that throws' => [self::failing(static fn(PostgresPool $pool) => $pool->transaction(
            static fn() => throw new \DomainException('rolled back'),
        ))];
        yield 'stream' => [static fn(PostgresPool $pool) => iterator_to_array($pool->stream(self::SELECT, [3]), false)];
        yield 'stream that is left' => [static function (PostgresPool $pool): void {
            foreach ($pool->stream(self::SELECT, [10_000]) as $_) {
                break;
            }
        }];
        yield 'copy' => [static fn(PostgresPool $pool) => $pool->copyFrom('COPY leaks FROM STDIN', [[1], [2]])];
        yield 'copy that throws' => [self::failing(static fn(PostgresPool $pool) => $pool->copyFrom(
            'COPY leaks FROM STDIN',
            (static function (): \Generator {
                yield [1];
                throw new \DomainException('no second row');
            })(),
        ))];
        yield 'acquired connection' => [static function (PostgresPool $pool): void {
            $connection = $pool->acquire();
            $connection->query(self::SELECT, [1])->all();
            $connection->release();
        }];
        yield 'script' => [static fn(PostgresPool $pool) => $pool->executeScript('SELECT 1; SELECT 2')];
        yield 'refused connection' => [self::failing(
            static fn() => PostgresConnection::connect('postgres://postgres@127.0.0.1:1/postgres'),
        )];
    }

    /** @param \Closure(PostgresPool): mixed $work */
    #[DataProvider('work')]
    public function testWorkLeavesNothingInMemory(\Closure $work): void
    {
        $dsn = Cluster::shared()->dsn();
        Cluster::ask('CREATE UNLOGGED TABLE IF NOT EXISTS leaks (i int)');
        $pool = new PostgresPool($dsn, 2);
        // Opens both connections, because one that is opened during the measurement would count as growth.
        foreach ([$pool->acquire(), $pool->acquire()] as $connection) {
            $connection->release();
        }

        self::assertNoGrowth(static fn() => $work($pool), self::ROUNDS, self::MAX_GROWTH);
        $pool->close();
    }

    public function testASharedLoopOverAnotherChannelLeavesNothingInMemory(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1);
        $stop = new DeferredCancellation();
        $stays = async(static fn() => iterator_to_array($pool->listenShared('stays', $stop->getCancellation()), false));
        $number = 0;
        self::assertNoGrowth(static function () use ($pool, &$number): void {
            $end = new DeferredCancellation();
            $loop = $pool->listenShared('channel' . ++$number, $end->getCancellation());
            $reading = async(static fn() => iterator_to_array($loop, false));
            $pool->query('SELECT 1');
            $end->cancel();
            self::thrown(CancelledException::class, $reading->await(...));
        }, self::ROUNDS, self::MAX_GROWTH);
        $stop->cancel();
        self::thrown(CancelledException::class, $stays->await(...));
    }

    public function testAPoolLeavesNothingInMemory(): void
    {
        $dsn = Cluster::shared()->dsn();
        self::assertNoGrowth(static function () use ($dsn): void {
            $pool = new PostgresPool($dsn, 2);
            $pool->query(self::SELECT, [1])->all();
            $pool->close();
        }, 30, self::MAX_GROWTH);
    }

    /**
     * @param \Closure(PostgresPool): mixed $work
     *
     * @return \Closure(PostgresPool): void
     */
    private static function failing(\Closure $work): \Closure
    {
        return static function (PostgresPool $pool) use ($work): void {
            try {
                $work($pool);
            } catch (\Throwable) {
                // The test is about what the failure leaves in memory.
            }
        };
    }
}
