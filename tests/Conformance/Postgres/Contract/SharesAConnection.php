<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Revolt\EventLoop;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;

/**
 * Tests several fibers on one connection of which one needs it exclusively, in any kind of caller.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait SharesAConnection
{
    public function testOthersWaitForTheEndOfATransaction(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        /** @var DeferredFuture<null> $end */
        $end = new DeferredFuture();
        /** @var \ArrayObject<int, string> $steps */
        $steps = new \ArrayObject();
        $transaction = Async::run(
            static fn(): int
                => $connection->transaction(static function (Transaction $transaction) use ($table, $end, $steps): int {
                    $transaction->execute("INSERT INTO {$table} VALUES (1)");
                    $end->getFuture()->await();
                    $steps[] = 'transaction';

                    return $transaction->execute("INSERT INTO {$table} VALUES (2)");
                }),
        );
        self::meanwhile();
        $others = [];
        foreach ([
            'query' => static fn(): mixed => $connection->query("SELECT count(*) FROM {$table}")->value(),
            'stream' => static fn(): mixed
                => iterator_to_array($connection->stream("SELECT count(*) AS n FROM {$table}"))[0]['n'],
            'copyFrom' => static fn(): mixed => $connection->copyFrom("COPY {$table} FROM STDIN", [[3], [4]]),
            'copyTo' => static fn(): int => \count(iterator_to_array(
                $connection->copyTo("COPY {$table} TO STDOUT"),
                false,
            )),
            'script' => static function () use ($connection, $table): mixed {
                $connection->executeScript("INSERT INTO {$table} VALUES (5)");

                return 'done';
            },
            'another transaction' => static fn(): mixed => $connection->transaction(
                static fn(Transaction $transaction): mixed
                    => $transaction->query("SELECT count(*) FROM {$table}")->value(),
            ),
        ] as $name => $verb) {
            $others[$name] = Async::run(static function () use ($verb, $name, $steps): mixed {
                $result = $verb();
                $steps[] = $name;

                return $result;
            });
        }
        self::meanwhile();
        self::assertCount(0, $steps);
        $end->complete();
        $transaction->await();

        self::assertSame(
            [
                'query' => 2,
                'stream' => 2,
                'copyFrom' => 2,
                'copyTo' => 4,
                'script' => 'done',
                'another transaction' => 5,
            ],
            array_map(static fn(Future $other): mixed => $other->await(), $others),
        );
        self::assertSame(['transaction', ...array_keys($others)], $steps->getArrayCopy());
    }

    public function testAFiberThatWouldWaitForItselfFails(): void
    {
        $connection = $this->connect();
        $attempts = [
            static fn() => $connection->query('SELECT 1'),
            static fn() => $connection->execute('SELECT 1'),
            static fn() => iterator_to_array($connection->stream('SELECT 1')),
            static fn() => $connection->copyFrom('COPY nowhere FROM STDIN', []),
            static fn() => iterator_to_array($connection->copyTo('COPY (SELECT 1) TO STDOUT')),
            static fn() => $connection->executeScript('SELECT 1'),
            static fn() => $connection->transaction(static fn(): bool => true),
        ];
        $try = static function () use ($attempts): void {
            foreach ($attempts as $attempt) {
                self::assertStringContainsString(
                    'would wait for itself',
                    self::thrown(\LogicException::class, $attempt)->getMessage(),
                );
            }
        };
        foreach (self::places() as $where) {
            $where(static fn() => $connection->transaction(static fn() => $try()));
            $where(static function () use ($connection, $try): void {
                foreach ($connection->stream('SELECT generate_series(1, 200) AS i') as $row) {
                    $row['i'] === 100 ? $try() : null;
                }
            });
            self::assertUsable($connection);
        }
    }

    public function testAStatementWithinTheInputOfACopyFails(): void
    {
        $connection = $this->connect();
        $connection->transaction(static function (Transaction $transaction): void {
            $rows = static function () use ($transaction): \Generator {
                yield "1\n";
                self::thrown(\LogicException::class, static fn() => $transaction->query('SELECT 1'));
                yield "2\n";
            };
            $transaction->execute('CREATE TEMPORARY TABLE copied (i int) ON COMMIT DROP');
            self::assertSame(2, $transaction->copyFrom('COPY copied FROM STDIN', $rows()));
        });
    }

    public function testOthersWaitForTheEndOfACopy(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        /** @var DeferredFuture<null> $end */
        $end = new DeferredFuture();
        $rows = static function () use ($end): \Generator {
            yield [1];
            $end->getFuture()->await();
            yield [2];
        };
        $copy = Async::run(static fn(): int => $connection->copyFrom("COPY {$table} FROM STDIN", $rows()));
        self::meanwhile();
        $others = [
            Async::run(static fn(): mixed => $connection->query("SELECT count(*) FROM {$table}")->value()),
            Async::run(static fn(): mixed => $connection->execute("SELECT * FROM {$table}")),
            Async::run(
                static fn(): mixed => $connection->transaction(
                    static fn(Transaction $transaction): mixed
                        => $transaction->query("SELECT sum(i)::int FROM {$table}")->value(),
                ),
            ),
        ];
        self::meanwhile();
        $end->complete();

        self::assertSame(2, $copy->await());
        self::assertSame([2, 2, 3], array_map(static fn(Future $other): mixed => $other->await(), $others));
    }

    public function testAWaitForATransactionMayBeCancelled(): void
    {
        $connection = $this->connect();
        $connection->transaction(static function () use ($connection): void {
            $source = new DeferredCancellation();
            $waiting = [
                Async::run(static fn(): mixed => $connection->query('SELECT 1', [], $source->getCancellation())),
                Async::run(
                    static fn(): mixed
                        => $connection->transaction(
                            static fn(): bool => true,
                            cancellation: $source->getCancellation(),
                        ),
                ),
                Async::run(
                    static fn(): mixed
                        => iterator_to_array($connection->stream('SELECT 1', [], $source->getCancellation())),
                ),
            ];
            $last = Async::run(static fn(): mixed => $connection->query('SELECT 7')->value());
            self::meanwhile();
            $source->cancel();
            foreach ($waiting as $future) {
                self::thrown(CancelledException::class, $future->await(...));
            }
            self::assertFalse($last->isComplete());
            $last->ignore();
        });
        self::assertUsable($connection);
    }

    public function testTransactionsOfManyFibersComeOneAfterAnother(): void
    {
        $connection = $this->connect();
        $table = self::table('n int');
        $connection->execute("INSERT INTO {$table} VALUES (0)");
        $futures = [];
        for ($i = 1; $i <= 20; ++$i) {
            $futures[$i] = Async::run(
                static fn(): int
                    => $connection->transaction(static function (Transaction $transaction) use ($table): int {
                        $n = self::integer($transaction->query("SELECT n FROM {$table}")->value()) + 1;
                        $transaction->execute("UPDATE {$table} SET n = \$1", [$n]);

                        return $n;
                    }),
            );
        }
        self::assertSame(
            array_combine(range(1, 20), range(1, 20)),
            array_map(static fn(Future $future): int => $future->await(), $futures),
        );
    }

    public function testTheSameCodeRunsAnywhere(): void
    {
        $table = self::table('i int');
        $work = function () use ($table): array {
            $connection = $this->connect();
            $connection->copyFrom("COPY {$table} FROM STDIN", [[1], [2], [3]]);

            return [
                $connection->query("SELECT count(*) FROM {$table}")->value(),
                array_column(iterator_to_array($connection->stream("SELECT i FROM {$table} ORDER BY i")), 'i'),
                $connection->transaction(
                    static fn(Transaction $transaction): int => $transaction->execute("DELETE FROM {$table}"),
                ),
            ];
        };
        $outcomes = ['in {main}' => $work(), 'in a fiber of the loop' => Async::run($work)->await()];
        $fiber = new \Fiber($work);
        $fiber->start();
        EventLoop::run();
        $outcomes['in a fiber of its own'] = $fiber->getReturn();
        EventLoop::queue(static function () use ($work, &$outcomes): void {
            $outcomes['in a callback of the loop'] = $work();
        });
        EventLoop::run();

        self::assertSame(array_fill_keys(array_keys($outcomes), [3, [1, 2, 3], 3]), $outcomes);
        self::assertCount(4, $outcomes);
    }

    public function testFibersThatAreNotTheLoopsShareAConnection(): void
    {
        $connection = $this->connect();
        $fibers = [];
        for ($i = 0; $i < 10; ++$i) {
            $fibers[$i] = new \Fiber(static fn(): mixed => $connection->query('SELECT $1::int', [$i])->value());
            $fibers[$i]->start();
        }
        EventLoop::run();

        self::assertSame(range(0, 9), array_map(static fn(\Fiber $fiber): mixed => $fiber->getReturn(), $fibers));
    }

    public function testRunningCallsKeepTheirConnectionAlive(): void
    {
        $future = Async::run(fn(): mixed => $this->connect()->query("SELECT 'done' FROM pg_sleep(0.01)")->value());
        $rows = $this->connect()->stream('SELECT generate_series(1, 200) AS i');
        gc_collect_cycles();

        self::assertSame('done', $future->await());
        self::assertCount(200, iterator_to_array($rows));
    }

    public function testAResultOutlivesItsConnection(): void
    {
        $result = (fn(PostgresConnection $connection) => $connection->query(
            "SELECT '{1,2}'::int[] AS a, NULL AS b FROM generate_series(1, 1000)",
        ))($this->connect());
        gc_collect_cycles();

        self::assertSame(array_fill(0, 1000, ['a' => [1, 2], 'b' => null]), $result->all());
    }

    /** @return list<\Closure(\Closure(): mixed): mixed> each calls a function: in {main}, or in a fiber */
    private static function places(): array
    {
        return [
            static fn(\Closure $work): mixed => $work(),
            self::inAFiber(...),
        ];
    }

    /** @param \Closure(): mixed $work */
    private static function inAFiber(\Closure $work): mixed
    {
        return Async::run($work)->await();
    }
}
