<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\TransactionAbortedException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\LinkContract;

use function Amp\delay;

/**
 * Tests transactions. Nested ones are savepoints.
 *
 * @phpstan-require-extends LinkContract
 */
trait RunsTransactions
{
    public function testATransactionStaysWhenItsFunctionReturns(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $result = $link->transaction(static function (Transaction $transaction) use ($table): array {
            $transaction->execute("INSERT INTO {$table} VALUES (1)");

            return [$transaction->query("SELECT i FROM {$table}")->value(), 'a result'];
        });

        self::assertSame([1, 'a result'], $result);
        self::assertSame(1, $link->query("SELECT count(*) FROM {$table}")->value());
        if (!$link instanceof Transaction) {
            self::assertSame('(1)', self::committed($table));
        }
    }

    public function testNothingOfATransactionStaysWhenItsFunctionThrows(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $mine = new \DomainException('mine');
        $thrown = self::thrown(
            \DomainException::class,
            static fn() => $link->transaction(static function (Transaction $transaction) use ($table, $mine): never {
                $transaction->execute("INSERT INTO {$table} VALUES (1)");
                $transaction->copyFrom("COPY {$table} FROM STDIN", [[2]]);
                $transaction->executeScript("INSERT INTO {$table} VALUES (3); INSERT INTO {$table} VALUES (4)");
                throw $mine;
            }),
        );

        self::assertSame($mine, $thrown);
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testATransactionMayBeginWithAnything(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $firsts = [
            static fn(Transaction $transaction): int => $transaction->execute("INSERT INTO {$table} VALUES (1)"),
            static fn(Transaction $transaction): int
                => $transaction->execute("INSERT INTO {$table} SELECT 1 WHERE \$1 = 'x'", ['x']),
            static fn(Transaction $transaction): array
                => iterator_to_array($transaction->stream("INSERT INTO {$table} VALUES (1) RETURNING i")),
            static fn(Transaction $transaction): int => $transaction->copyFrom("COPY {$table} FROM STDIN", ["1\n"]),
            static fn(Transaction $transaction): int => $transaction->copyFrom("COPY {$table} FROM STDIN", [[1]]),
            static fn(Transaction $transaction)
                => $transaction->executeScript("INSERT INTO {$table} VALUES (1); SELECT 1"),
            static fn(Transaction $transaction): int => $transaction->transaction(
                static fn(Transaction $inner): int => $inner->execute("INSERT INTO {$table} VALUES (1)"),
            ),
            static fn(Transaction $transaction): array => [
                iterator_to_array($transaction->copyTo('COPY (SELECT 1) TO STDOUT')),
                $transaction->execute("INSERT INTO {$table} VALUES (1)"),
            ],
        ];
        foreach ($firsts as $number => $first) {
            $link->transaction(static function (Transaction $transaction) use ($first): void {
                $first($transaction);
                self::assertUsable($transaction);
            });
            self::assertSame([1], $link->query("SELECT i FROM {$table}")->column(), "no. {$number} is committed");
            self::thrown(
                \DomainException::class,
                static fn() => $link->transaction(static function (Transaction $transaction) use ($first): never {
                    $first($transaction);
                    throw new \DomainException();
                }),
            );
            self::assertSame(
                [1],
                $link->query("DELETE FROM {$table} RETURNING i")->column(),
                "no. {$number} is undone",
            );
        }
        self::assertSame(
            [null, 1],
            array_map(static fn(?int $value): mixed => $link->transaction(static fn(): ?int => $value), [null, 1]),
        );
        self::thrown(
            \DomainException::class,
            static fn() => $link->transaction(static fn() => throw new \DomainException()),
        );
        self::assertUsable($link);
    }

    public function testATransactionWhoseFirstStatementFailsIsUndone(): void
    {
        $link = $this->link();
        foreach ([
            static fn(Transaction $transaction) => $transaction->query('SELEC 1'),
            static fn(Transaction $transaction) => $transaction->query('SELECT 1 / $1::int', [0]),
            static fn(Transaction $transaction) => $transaction->query('SELECT $1::text::int', ['x']),
            static fn(Transaction $transaction) => $transaction->copyFrom('COPY nowhere FROM STDIN', ["1\n"]),
            static fn(Transaction $transaction) => $transaction->executeScript('SELECT 1; SELECT 1 / 0'),
            static fn(Transaction $transaction) => iterator_to_array($transaction->stream('SELECT 1 / 0')),
        ] as $work) {
            self::refused(QueryException::class, $link, static fn(PostgresLink $link) => $link->transaction($work));
            self::refused(
                TransactionAbortedException::class,
                $link,
                static fn(PostgresLink $link) => $link->transaction(
                    static fn(Transaction $transaction)
                        => self::thrown(QueryException::class, static fn() => $work($transaction)),
                ),
            );
        }
    }

    public function testAnInnerTransactionIsUndoneAlone(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $link->transaction(static function (Transaction $outer) use ($table): void {
            $outer->execute("INSERT INTO {$table} VALUES (1)");
            self::thrown(
                \DomainException::class,
                static fn() => $outer->transaction(static function (Transaction $inner) use ($table): never {
                    $inner->execute("INSERT INTO {$table} VALUES (2)");
                    $inner->transaction(
                        static fn(Transaction $innermost) => $innermost->execute("INSERT INTO {$table} VALUES (3)"),
                    );
                    throw new \DomainException();
                }),
            );
            $outer->transaction(static function (Transaction $inner) use ($table): void {
                $inner->execute("INSERT INTO {$table} VALUES (4)");
                self::thrown(
                    QueryException::class,
                    static fn()
                        => $inner->transaction(static fn(Transaction $innermost) => $innermost->query('SELECT 1 / 0')),
                );
                $inner->execute("INSERT INTO {$table} VALUES (5)");
            });
        });

        self::assertSame([1, 4, 5], $link->query("SELECT i FROM {$table} ORDER BY i")->column());
    }

    public function testACaughtErrorIsReportedAtTheCommit(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $swallow = static function (Transaction $transaction) use ($table): string {
            $transaction->execute("INSERT INTO {$table} VALUES (1)");
            self::thrown(QueryException::class, static fn() => $transaction->query('SELECT 1 / 0'));
            foreach (['SELECT 1', 'SELECT 2'] as $sql) {
                $later = self::thrown(QueryException::class, static fn() => $transaction->query($sql));
                self::assertSame('25P02', $later->sqlState);
                self::assertStringContainsString(
                    'because an earlier statement failed with SQLSTATE 22012. If a statement may fail, run it within a '
                        . 'savepoint, such as a nested transaction (',
                    $later->getMessage(),
                );
            }

            return 'as if nothing had happened';
        };
        self::refused(
            TransactionAbortedException::class,
            $link,
            static fn(PostgresLink $link) => $link->transaction($swallow),
        );
        $link->transaction(static function (Transaction $outer) use ($swallow, $table): void {
            self::thrown(TransactionAbortedException::class, static fn() => $outer->transaction($swallow));
            $outer->execute("INSERT INTO {$table} VALUES (2)");
        });

        self::assertSame([2], $link->query("SELECT i FROM {$table}")->column());
    }

    public function testTheLastErrorIsThrownNotItsCause(): void
    {
        $link = $this->link();
        $mine = new \DomainException('mine');
        $thrown = self::refused(
            \DomainException::class,
            $link,
            static fn(PostgresLink $link)
                => $link->transaction(static function (Transaction $transaction) use ($mine): never {
                    self::thrown(QueryException::class, static fn() => $transaction->query('SELECT 1 / 0'));
                    throw $mine;
                }),
        );

        self::assertSame($mine, $thrown);
    }

    public function testATransactionIsOfNoUseAfterItsEnd(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        foreach ([false, true] as $throws) {
            foreach ([false, true] as $nested) {
                $kept = null;
                $keep = static function (Transaction $transaction) use (&$kept, $throws): Transaction {
                    $kept = $transaction;

                    return $throws ? throw new \DomainException() : $transaction;
                };
                $work = static fn(): Transaction => $link->transaction(
                    $nested ? static fn(Transaction $outer): Transaction => $outer->transaction($keep) : $keep,
                );
                $throws ? self::thrown(\DomainException::class, $work) : self::assertSame($work(), $kept);
                \assert($kept instanceof Transaction);
                self::assertOver($kept, $table);
            }
        }
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testFibersShareATransaction(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $link->transaction(static function (Transaction $transaction) use ($table): void {
            $futures = [];
            for ($i = 1; $i <= 20; ++$i) {
                $futures[$i] = Async::run(
                    static fn(): mixed
                        => $transaction->query("INSERT INTO {$table} VALUES (\$1) RETURNING i", [$i])->value(),
                );
            }
            foreach ($futures as $i => $future) {
                self::assertSame($i, $future->await());
            }
        });

        self::assertSame(range(1, 20), $link->query("SELECT i FROM {$table} ORDER BY ctid")->column());
    }

    public function testWhatAFiberHasSentBeforeTheEndIsPartOfIt(): void
    {
        $link = $this->link();
        $table = self::table('i int, id text DEFAULT pg_current_xact_id()');
        [$id, $sent] = $link->transaction(static function (Transaction $transaction) use ($table): array {
            $id = $transaction->query('SELECT pg_current_xact_id()::text')->value();
            $sent = [
                Async::run(
                    static fn(): int => $transaction->execute("INSERT INTO {$table} SELECT 1 FROM pg_sleep(0.01)"),
                ),
                Async::run(
                    static fn(): int => $transaction->execute("INSERT INTO {$table} SELECT 2 WHERE \$1 = 'x'", ['x']),
                ),
                Async::run(static fn(): int => $transaction->copyFrom("COPY {$table} (i) FROM STDIN", [[3]])),
                Async::run(
                    static fn(): int => $transaction->transaction(
                        static fn(Transaction $inner): int => $inner->execute("INSERT INTO {$table} (i) VALUES (4)"),
                    ),
                ),
            ];
            delay(0);

            return [$id, $sent];
        });

        self::assertSame([1, 1, 1, 1], array_map(static fn(Future $future): int => $future->await(), $sent));
        self::assertSame(
            [1, 2, 3, 4],
            $link->query("SELECT i FROM {$table} WHERE id = \$1 ORDER BY i", [$id])->column(),
        );
    }

    public function testWhatAFiberHasSentBeforeAFailureIsUndone(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        /** @var \ArrayObject<int, Future<mixed>> $sent */
        $sent = new \ArrayObject();
        self::thrown(
            \DomainException::class,
            static fn() => $link->transaction(static function (Transaction $transaction) use ($table, $sent): never {
                $transaction->execute("INSERT INTO {$table} VALUES (0)");
                foreach ([
                    static fn(): int => $transaction->execute("INSERT INTO {$table} SELECT 1 FROM pg_sleep(0.01)"),
                    static fn(): int => $transaction->execute("INSERT INTO {$table} SELECT 2 WHERE \$1 = 'x'", ['x']),
                    static fn(): int => $transaction->copyFrom("COPY {$table} (i) FROM STDIN", [[3]]),
                    static fn(): int => $transaction->transaction(
                        static fn(Transaction $inner): int => $inner->execute("INSERT INTO {$table} VALUES (4)"),
                    ),
                    static fn() => $transaction->executeScript("INSERT INTO {$table} VALUES (5)"),
                ] as $verb) {
                    $sent[] = Async::run(static function () use ($verb): mixed {
                        try {
                            return $verb();
                        } catch (PostgresException|\LogicException $refused) {
                            return $refused; // or it was done and undone
                        }
                    });
                }
                delay(0);
                throw new \DomainException();
            }),
        );
        foreach ($sent as $future) {
            $future->await();
        }

        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testATransactionThatWasCancelledBeforehandIsNotBegun(): void
    {
        $link = $this->link();
        $cancellation = new DeferredCancellation();
        $cancellation->cancel(new \DomainException('enough'));
        $thrown = self::refused(CancelledException::class, $link, static fn(PostgresLink $link) => $link->transaction(
            static fn() => self::fail('It is begun'),
            cancellation: $cancellation->getCancellation(),
        ));

        self::assertSame('enough', $thrown->getPrevious()?->getMessage());
    }

    public function testATransactionThatIsCancelledIsUndone(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $cancellation = new DeferredCancellation();
        self::refused(
            CancelledException::class,
            $link,
            static fn(PostgresLink $link)
                => $link->transaction(static function (Transaction $transaction) use ($table, $cancellation): string {
                    $transaction->execute("INSERT INTO {$table} VALUES (1)");
                    $cancellation->cancel();

                    return 'as if nothing had happened';
                }, cancellation: $cancellation->getCancellation()),
        );

        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAStatementThatIsCancelledInATransactionUndoesIt(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $cancellation = new DeferredCancellation();
        self::refused(
            CancelledException::class,
            $link,
            static fn(PostgresLink $link)
                => $link->transaction(static function (Transaction $transaction) use ($table, $cancellation): void {
                    $transaction->execute("INSERT INTO {$table} VALUES (1)");
                    $other = Async::run(static function () use ($cancellation): void {
                        delay(0.002);
                        $cancellation->cancel();
                    });
                    try {
                        $transaction->query('SELECT pg_sleep(1000)', [], $cancellation->getCancellation());
                    } finally {
                        $other->await();
                    }
                }),
        );

        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    private static function assertOver(Transaction $transaction, string $table): void
    {
        foreach ([
            static fn() => $transaction->query("INSERT INTO {$table} VALUES (1)"),
            static fn() => $transaction->execute("INSERT INTO {$table} VALUES (1)"),
            static fn() => iterator_to_array($transaction->stream("INSERT INTO {$table} VALUES (1)")),
            static fn() => $transaction->copyFrom("COPY {$table} FROM STDIN", [[1]]),
            static fn() => iterator_to_array($transaction->copyTo("COPY {$table} TO STDOUT")),
            static fn() => $transaction->executeScript("INSERT INTO {$table} VALUES (1)"),
            static fn() => $transaction->transaction(static fn(): bool => true),
        ] as $verb) {
            self::assertStringContainsString('has ended', self::thrown(\LogicException::class, $verb)->getMessage());
        }
    }
}
