<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\DeferredFuture;
use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Tests that an exception of user code reaches its caller, and that everything works afterwards. */
final class UserCodeFaultsTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    private string $table;

    protected function setUp(): void
    {
        $this->table = 'user_code_' . bin2hex(random_bytes(4));
        Cluster::ask("CREATE TABLE {$this->table} (a int)");
    }

    protected function tearDown(): void
    {
        Cluster::ask("DROP TABLE {$this->table}");
    }

    /**
     * @return iterable<string, array{\Closure(PostgresLink, string): mixed}> each throws a DomainException and must
     *     leave the table empty
     */
    public static function work(): iterable
    {
        $throw = static fn(): never => throw new \DomainException('of the user');
        foreach ([0, 1, 49, 50, 51, 700] as $at) {
            yield "in the loop over a stream, at {$at}" => [
                static function (PostgresLink $link, string $table) use ($throw, $at): void {
                    foreach ($link->stream(
                        "SELECT i, repeat('x', 100) FROM generate_series(1, 5000) AS i",
                    ) as $index => $_) {
                        $index === $at && $throw();
                    }
                },
            ];
            yield "in the loop over a copy, at {$at}" => [
                static function (PostgresLink $link, string $table) use ($throw, $at): void {
                    foreach ($link->copyTo(
                        "COPY (SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS i) TO STDOUT",
                    ) as $index => $_) {
                        $index === $at && $throw();
                    }
                },
            ];
            yield "in the source of a copy, at {$at}" => [
                static fn(PostgresLink $link, string $table): int
                    => $link->copyFrom("COPY {$table} FROM STDIN", (static function () use ($throw, $at): \Generator {
                        for ($i = 0; ; ++$i) {
                            $i === $at && $throw();
                            yield str_repeat("1\n", 300);
                        }
                    })()),
            ];
            yield "in the source of a copy of rows, at {$at}" => [
                static fn(PostgresLink $link, string $table): int
                    => $link->copyFrom("COPY {$table} FROM STDIN", (static function () use ($throw, $at): \Generator {
                        for ($i = 0; ; ++$i) {
                            $i === $at && $throw();
                            yield [$i];
                        }
                    })()),
            ];
        }
        yield 'in a transaction' => [
            static fn(PostgresLink $link, string $table): mixed
                => $link->transaction(static function (Transaction $transaction) use ($throw, $table): void {
                    $transaction->execute("INSERT INTO {$table} VALUES (1)");
                    $throw();
                }),
        ];
        yield 'in a transaction before it has sent anything' => [
            static fn(PostgresLink $link, string $table): mixed => $link->transaction($throw),
        ];
        yield 'in a transaction in a transaction' => [
            static fn(PostgresLink $link, string $table): mixed
                => $link->transaction(static function (Transaction $outer) use ($throw, $table): void {
                    $outer->execute("INSERT INTO {$table} VALUES (1)");
                    $outer->transaction(static function (Transaction $transaction) use ($throw, $table): void {
                        $transaction->execute("INSERT INTO {$table} VALUES (2)");
                        $throw();
                    });
                }),
        ];
        yield 'in the loop over a stream in a transaction' => [
            static fn(PostgresLink $link, string $table)
                => $link->transaction(static function (Transaction $transaction) use ($throw, $table): void {
                    foreach ($transaction->stream(
                        "INSERT INTO {$table} SELECT i FROM generate_series(1, 5000) AS i RETURNING a",
                    ) as $_) {
                        $throw();
                    }
                }),
        ];
        yield 'in the source of a copy in a transaction' => [
            static fn(PostgresLink $link, string $table): mixed => $link->transaction(
                static fn(Transaction $transaction): int
                    => $transaction->copyFrom("COPY {$table} FROM STDIN", (static function () use ($throw): \Generator {
                        yield "1\n";
                        $throw();
                    })()),
            ),
        ];
        yield 'in a fiber of a transaction, while others of it work' => [
            static fn(PostgresLink $link, string $table): mixed
                => $link->transaction(static function (Transaction $transaction) use ($throw, $table): void {
                    $running = Async::run(
                        static fn(): mixed
                            => Outcome::of(
                                static fn(): mixed
                                    => $transaction->query("INSERT INTO {$table} SELECT 1 FROM pg_sleep(0.05)"),
                            ),
                    );
                    delay(0);
                    $throw();
                }),
        ];
        yield 'in an error handler' => [static function (PostgresLink $link, string $table) use ($throw): void {
            try {
                $link->query('SELECT 1 / 0');
            } finally {
                $throw();
            }
        }];
        yield 'thrown into the stream' => [static function (PostgresLink $link, string $table): void {
            $stream = $link->stream('SELECT i FROM generate_series(1, 5000) AS i');
            $stream->current();
            $stream->throw(new \DomainException('of the user'));
        }];
        yield 'thrown into the copy' => [static function (PostgresLink $link, string $table): void {
            $copy = $link->copyTo('COPY (SELECT i FROM generate_series(1, 5000) AS i) TO STDOUT');
            $copy->current();
            $copy->throw(new \DomainException('of the user'));
        }];
        yield 'in the loop over what is heard' => [
            static function (PostgresLink $link, string $table) use ($throw): void {
                \assert($link instanceof PostgresConnection || $link instanceof PostgresPool);
                $timer = EventLoop::repeat(0.05, static function () use ($table): void {
                    Cluster::ask("NOTIFY {$table}, 'x'");
                });
                try {
                    foreach ($link->listen($table) as $_) {
                        $throw();
                    }
                } finally {
                    EventLoop::cancel($timer);
                }
            },
        ];
    }

    /** @param \Closure(PostgresLink, string): mixed $work */
    #[DataProvider('work')]
    public function testExceptionsOfUserCodeReachTheCallerAndLeaveEverythingUsable(\Closure $work): void
    {
        foreach ([
            PostgresConnection::connect(Cluster::shared()->dsn()),
            new PostgresPool(
                Cluster::shared()->dsn(),
                1,
                new PostgresPoolOptions(onWarning: static fn(string $warning) => self::fail($warning)),
            ),
        ] as $link) {
            for ($i = 0; $i < 3; ++$i) {
                $outcome = Outcome::of(fn(): mixed => $work($link, $this->table));
                self::assertInstanceOf(\DomainException::class, $outcome, Outcome::describe($outcome));
                self::assertSame(0, $link->query("SELECT count(*) FROM {$this->table}")->value());
                self::assertSame(
                    1,
                    $link->transaction(
                        static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1')->value(),
                    ),
                );
            }
            self::assertSame(
                [],
                Cluster::ask(
                    "SELECT pid FROM pg_locks WHERE relation = '{$this->table}'::regclass AND pid <> pg_backend_pid()",
                ),
            );
            if ($link instanceof PostgresPool) {
                self::assertSame(
                    [1, 0],
                    [$link->statistics()['opened_total'], $link->statistics()['lost_total']],
                    'no connection is worse for it',
                );
            }
            $link->close();
        }
        unset($link);
    }

    #[RequiresPhpExtension('pcntl')]
    public function testACallWhereFibersCanNotBeSwitchedIsRefusedBeforeItHasAnEffect(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1);
        $full = new PostgresPool(Cluster::shared()->dsn(), 1);
        $connection = PostgresConnection::connect(Cluster::shared()->dsn());
        $held = $full->acquire();
        $insert = "INSERT INTO {$this->table} VALUES (1)";
        foreach ([$pool, $held, $connection] as $link) {
            $link->execute($insert); // prepares the statement, so that the next execution is sent immediately
            $link->execute("TRUNCATE {$this->table}");
            foreach ([
                'a query' => static fn(): mixed => $link->query($insert),
                'a script' => static fn() => $link->executeScript("{$insert}; SELECT 2"),
                'a stream' => static fn(): array => iterator_to_array($link->stream($insert)),
                'a copy' => fn(): int => $link->copyFrom("COPY {$this->table} FROM STDIN", [[1]]),
                'a transaction' => static fn(): mixed
                    => $link->transaction(static fn(Transaction $transaction): mixed => $transaction->query($insert)),
                'a connection that is in use' => static fn(): mixed => $full->acquire(),
            ] as $name => $wait) {
                $thrown = Async::inSignalHandler($wait);

                self::assertInstanceOf(CannotWaitException::class, $thrown, $name);
                self::assertStringEndsWith('was refused before it had an effect', $thrown->getMessage());
                self::assertSame(0, $link->query("SELECT count(*) FROM {$this->table}")->value(), $name);
            }
        }
        $held->release();
        $connection->close();
        $full->close();
        $pool->close();
    }

    public function testAStatementWhoseValueSuspendsIsNotSentIntoTheTransactionOfAnotherFiber(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1);
        $sql = "INSERT INTO {$this->table} SELECT (\$1::jsonb ->> 'a')::int";
        for ($i = 0; $i < 2; ++$i) {
            $pool->execute($sql, [['a' => 0]]);
            $pool->query('SELECT 1');
        }
        /** @var DeferredFuture<null> $encoding */
        $encoding = new DeferredFuture();
        $value = self::suspending($encoding->getFuture());
        $insert = Async::run(static fn(): int => $pool->execute($sql, [$value]));
        $isIn = false;
        $work = static function (Transaction $transaction) use ($insert, &$isIn): never {
            $transaction->query('SELECT 1');
            $isIn = true;
            $insert->await();
            throw new \DomainException('of the user');
        };
        $transaction = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $pool->transaction($work)));
        Eventually::holds(static function () use ($pool, &$isIn): bool {
            return $isIn || $pool->statistics()['waiting'] === 1;
        }, 'the transaction has the connection, or waits for it');
        $encoding->complete();

        self::assertSame(1, $insert->await());
        self::assertInstanceOf(\DomainException::class, $transaction->await());
        self::assertSame(1, $pool->query("SELECT count(*) FROM {$this->table} WHERE a = 1")->value());
        $pool->close();
    }

    /**
     * @return iterable<string, array{\Closure(PooledConnection, string, \JsonSerializable): mixed, int}> calls that
     *     suspend before they insert a row, and the number of rows that stay after the release of the connection
     */
    public static function suspendingCalls(): iterable
    {
        $insert = static fn(string $table): string => "INSERT INTO {$table} SELECT (\$1::jsonb ->> 'a')::int";
        yield 'a query' => [
            static fn(PooledConnection $connection, string $table, \JsonSerializable $value): int
                => $connection->execute($insert($table), [$value]),
            1,
        ];
        yield 'a stream, which is part of a transaction' => [
            static fn(PooledConnection $connection, string $table, \JsonSerializable $value): array
                => iterator_to_array($connection->stream("{$insert($table)} RETURNING a", [$value])),
            0,
        ];
        yield 'a copy' => [
            static fn(PooledConnection $connection, string $table, \JsonSerializable $value): int
                => $connection->copyFrom("COPY {$table} FROM STDIN", (static function () use ($value): \Generator {
                    $value->jsonSerialize();
                    yield "1\n";
                })()),
            1,
        ];
    }

    /** @param \Closure(PooledConnection, string, \JsonSerializable): mixed $call */
    #[DataProvider('suspendingCalls')]
    public function testAConnectionIsGivenBackOnceACallIsDoneThatSuspends(\Closure $call, int $rows): void
    {
        $options = new PostgresPoolOptions(onWarning: static fn(string $_) => null);
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1, $options);
        $connection = $pool->acquire();
        /** @var DeferredFuture<null> $encoding */
        $encoding = new DeferredFuture();
        $value = self::suspending($encoding->getFuture());
        $insert = Async::run(fn(): mixed => Outcome::of(fn(): mixed => $call($connection, $this->table, $value)));
        EventLoop::queue($connection->release(...));
        $encode = static function () use ($encoding): void {
            if (!$encoding->isComplete()) {
                $encoding->complete();
            }
        };
        $work = static function (Transaction $transaction) use ($encode, $insert, $rows): bool {
            $transaction->query('SELECT 1');
            $encode();
            $insert->await();

            return $rows === 1 ? throw new \DomainException('of the user') : true;
        };
        $next = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $pool->transaction($work)));
        Eventually::holds(
            static fn(): bool => $encoding->isComplete() || $pool->statistics()['waiting'] === 1,
            'the next has the connection, or waits for it',
        );
        $encode();
        $outcome = $insert->await();
        $next->await();

        self::assertSame($rows, $outcome instanceof \LogicException ? 0 : 1, Outcome::describe($outcome));
        self::assertSame($rows, $pool->query("SELECT count(*) FROM {$this->table}")->value());
        $pool->close();
    }

    public function testATransactionWaitsForAStreamWhoseValueSuspends(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1);
        /** @var DeferredFuture<null> $encoding */
        $encoding = new DeferredFuture();
        $parameters = [self::suspending($encoding->getFuture())];
        $sql = "INSERT INTO {$this->table} SELECT (\$1::jsonb ->> 'a')::int RETURNING a";
        $transaction = Async::run(static fn(): mixed => Outcome::of(
            static fn(): mixed => $pool->transaction(static function (Transaction $transaction) use (
                $sql,
                $parameters,
                $encoding,
            ): never {
                $transaction->query('SELECT 1');
                Async::run(static fn(): array => iterator_to_array($transaction->stream($sql, $parameters)))->ignore();
                EventLoop::delay(0.05, static fn() => $encoding->complete());
                delay(0);
                throw new \DomainException('of the user');
            }),
        ));

        self::assertInstanceOf(\DomainException::class, $transaction->await());
        self::assertTrue($encoding->isComplete());
        self::assertSame(0, $pool->query("SELECT count(*) FROM {$this->table}")->value());
        $pool->close();
    }

    /** @param Future<null> $wait */
    private static function suspending(Future $wait): \JsonSerializable
    {
        return new class ($wait) implements \JsonSerializable {
            /** @param Future<null> $wait */
            public function __construct(private Future $wait) {}

            /** @return array<string, int> */
            public function jsonSerialize(): array
            {
                $this->wait->await();

                return ['a' => 1];
            }
        };
    }

    public function testALoopThatIsLeftEarlyEndsItsTransactionAndWhatItWroteStays(): void
    {
        foreach ([
            PostgresConnection::connect(Cluster::shared()->dsn()),
            new PostgresPool(Cluster::shared()->dsn(), 1),
        ] as $link) {
            foreach ($link->stream(
                "INSERT INTO {$this->table} SELECT i FROM generate_series(1, 200) AS i RETURNING a",
            ) as $_) {
                break;
            }
            self::assertSame(
                200,
                $link->query("SELECT count(*) FROM {$this->table}")->value(),
                'committed when the rows are left',
            );
            $link->execute("TRUNCATE {$this->table}");
            foreach ($link->copyTo('COPY (SELECT i FROM generate_series(1, 100000) AS i) TO STDOUT') as $_) {
                break;
            }
            self::assertSame(1, $link->query('SELECT 1')->value());
            $link->close();
        }
        unset($link);
    }

    public function testALoopOverAStreamOfATransactionThatIsLeftFailsNothing(): void
    {
        foreach ([
            PostgresConnection::connect(Cluster::shared()->dsn()),
            new PostgresPool(Cluster::shared()->dsn(), 1),
        ] as $link) {
            foreach ([0, 1, 20, 49] as $i) {
                self::assertSame(7, $link->transaction(static function (Transaction $transaction) use ($i): mixed {
                    // The next rows are being fetched, which takes some time.
                    foreach ($transaction->stream(
                        'SELECT i, pg_sleep(CASE WHEN i > 55 THEN 0.001 ELSE 0 END) FROM generate_series(1, 100) AS i',
                    ) as $index => $_) {
                        if ($index === $i) {
                            break;
                        }
                    }

                    return $transaction->query('SELECT 7')->value();
                }));
            }
            $link->close();
        }
        unset($link);
    }
}
