<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Log\AbstractLogger;
use Spindle\Postgres\CommitUnknownException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\DeadlockException;
use Spindle\Postgres\ForeignKeyViolationException;
use Spindle\Postgres\Isolation;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\SerializationFailureException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Eventually;

/**
 * Tests transactions with concurrent ones.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait IsolatesTransactions
{
    /** @return iterable<string, array{\Closure(Transaction): mixed}> */
    public static function ends(): iterable
    {
        yield 'a rollback that begins again' => [
            static fn(Transaction $transaction): mixed => $transaction->query('ROLLBACK AND CHAIN'),
        ];
        yield 'a commit that begins again' => [
            static fn(Transaction $transaction): mixed
                => $transaction->execute('/* a */ commit work and /* b */ chain'),
        ];
        yield 'END' => [static fn(Transaction $transaction): mixed => $transaction->query('END AND CHAIN')];
        yield 'a stream' => [
            static fn(Transaction $transaction): mixed => iterator_to_array($transaction->stream('ABORT AND CHAIN')),
        ];
        yield 'a script' => [
            static fn(Transaction $transaction): mixed => self::scripted($transaction, 'rollback; begin'),
        ];
        yield 'a script that commits' => [
            static fn(Transaction $transaction): mixed
                => self::scripted($transaction, 'select 1; commit; start transaction; select 2'),
        ];
        yield 'a script that chains' => [
            static fn(Transaction $transaction): mixed
                => self::scripted($transaction, "rollback and chain; insert into nowhere values ('x')"),
        ];
        yield 'two statements' => [static function (Transaction $transaction): void {
            $transaction->query('ROLLBACK');
            $transaction->query('BEGIN');
        }];
        yield 'within a nested one' => [
            static fn(Transaction $transaction): mixed
                => $transaction->transaction(
                    static fn(Transaction $inner): mixed => self::scripted($inner, 'rollback; begin'),
                ),
        ];
    }

    /** @param \Closure(Transaction): mixed $end */
    #[DataProvider('ends')]
    public function testATransactionThatAStatementEndsAndBeginsAgainIsNotMistakenForTheSame(\Closure $end): void
    {
        $link = $this->connect();
        $table = self::table('i int');
        foreach ([false, true] as $isCaught) {
            self::refused(
                \LogicException::class,
                $link,
                static fn(PostgresLink $link): mixed
                    => $link->transaction(
                        static function (Transaction $transaction) use ($end, $table, $isCaught): int {
                            $transaction->execute("INSERT INTO {$table} VALUES (1)");
                            try {
                                $end($transaction);
                            } catch (\Throwable $failure) {
                                if (!$isCaught) {
                                    throw $failure instanceof QueryException
                                        ? new \LogicException($failure->getMessage())
                                        : $failure;
                                }
                            }

                            return $transaction->execute("INSERT INTO {$table} VALUES (2)");
                        },
                    ),
            );
        }

        self::assertSame(0, $link->query("SELECT count(*) FROM {$table} WHERE i = 2")->value());
    }

    private static function scripted(Transaction $transaction, string $sql): bool
    {
        $transaction->executeScript($sql);

        return true;
    }

    public function testSavepointsOfOnesOwnAreNoEnd(): void
    {
        $link = $this->connect();
        $table = self::table('i int');
        $link->transaction(static function (Transaction $transaction) use ($table): void {
            $transaction->query('SAVEPOINT chain');
            $transaction->execute("INSERT INTO {$table} VALUES (1)");
            $transaction->query('ROLLBACK TO SAVEPOINT chain');
            $transaction->executeScript(
                "INSERT INTO {$table} VALUES (2); ROLLBACK TO chain; INSERT INTO {$table} VALUES (3); RELEASE chain",
            );
        });

        self::assertSame([3], $link->query("SELECT i FROM {$table}")->column());
    }

    public function testANestedTransactionThatIsCancelledAtItsBeginningOrEndLeavesTheOuterOne(): void
    {
        foreach (['SAVEPOINT', 'RELEASE'] as $step) {
            $source = new DeferredCancellation();
            $logger = new class ($step, $source) extends AbstractLogger {
                public function __construct(private string $step, private DeferredCancellation $source) {}

                public function log(mixed $level, string|\Stringable $message, array $context = []): void
                {
                    $sql = $context['sql'] ?? '';
                    if (\is_string($sql) && str_starts_with($sql, $this->step)) {
                        $this->source->cancel();
                    }
                }
            };
            $connection = $this->connect(logger: $logger);
            $table = self::table('i int');
            $connection->transaction(static function (Transaction $transaction) use ($table, $source): void {
                try {
                    $transaction->transaction(
                        static fn(Transaction $inner): int => $inner->execute("INSERT INTO {$table} VALUES (1)"),
                        cancellation: $source->getCancellation(),
                    );
                } catch (CancelledException) {
                    // Not thrown for steps at which the cancellation comes too late.
                }
                $transaction->execute("INSERT INTO {$table} VALUES (2)");
            });

            self::assertSame(
                $step === 'SAVEPOINT' ? [2] : [1, 2],
                $connection->query("SELECT i FROM {$table} ORDER BY i")->column(),
                $step,
            );
            $connection->close();
        }
    }

    public function testATransactionHasTheLevelThatItIsGiven(): void
    {
        $connection = $this->connect();
        foreach ([null, ...Isolation::cases()] as $isolation) {
            $level = $connection->transaction(
                static fn(Transaction $transaction): mixed
                    => $transaction->query('SHOW transaction_isolation')->value(),
                $isolation,
            );
            self::assertSame(strtolower($isolation->value ?? 'read committed'), $level);
        }
        self::assertSame('read committed', $connection->query('SHOW transaction_isolation')->value());
    }

    public function testWhatBelongsToTheOutermostTransactionIsRefusedWithin(): void
    {
        $this->connect()->transaction(static function (Transaction $transaction): void {
            self::thrown(
                \LogicException::class,
                static fn() => $transaction->transaction(static fn(): bool => true, Isolation::Serializable),
            );
            self::thrown(
                \LogicException::class,
                static fn() => $transaction->transaction(static fn(): bool => true, retries: 1),
            );
            self::assertUsable($transaction);
        });
        self::thrown(\ValueError::class, fn() => $this->connect()->transaction(static fn(): bool => true, retries: -1));
    }

    public function testASerializationFailureIsReportedWithoutRetries(): void
    {
        [$connection, $table] = [$this->connect(), self::table('i int')];
        $attempts = 0;
        $thrown = self::thrown(
            SerializationFailureException::class,
            function () use ($connection, $table, &$attempts): void {
                $connection->transaction($this->conflicting($table, $attempts, 1), Isolation::RepeatableRead);
            },
        );

        self::assertSame(['40001', 1], [$thrown->sqlState, $attempts]);
        self::assertUsable($connection);
    }

    public function testASerializationFailureIsTriedAgain(): void
    {
        [$connection, $table] = [$this->connect(), self::table('i int')];
        $attempts = 0;
        $result = $connection->transaction($this->conflicting($table, $attempts, 2), Isolation::RepeatableRead, 3);

        self::assertSame(['done', 3], [$result, $attempts]);
        self::assertSame('(3)', self::committed($table), 'each attempt but the last was undone');
    }

    public function testRetriesEndAfterTheNumberGiven(): void
    {
        [$connection, $table] = [$this->connect(), self::table('i int')];
        $attempts = 0;
        self::thrown(SerializationFailureException::class, function () use ($connection, $table, &$attempts): void {
            $connection->transaction($this->conflicting($table, $attempts, 9), Isolation::RepeatableRead, 2);
        });

        self::assertSame(3, $attempts);
    }

    public function testOtherFailuresAreNotTriedAgain(): void
    {
        $connection = $this->connect();
        $attempts = 0;
        $work = static function (Transaction $transaction) use (&$attempts): void {
            ++$attempts;
            $transaction->query('SELECT 1 / 0');
        };
        self::thrown(QueryException::class, static fn() => $connection->transaction($work, retries: 5));

        self::assertSame(1, $attempts);
    }

    public function testADeadlockIsReportedAndRetried(): void
    {
        $table = self::table('i int PRIMARY KEY, n int');
        Observer::ask("INSERT INTO {$table} VALUES (1, 0), (2, 0)");
        foreach ([0, 5] as $retries) {
            $both = new DeferredFuture();
            $ready = 0;
            $work = static function (
                Transaction $transaction,
                int $first,
                int $second,
            ) use ($table, $both, &$ready): int {
                $transaction->execute("SET LOCAL deadlock_timeout = '20ms'");
                $transaction->execute("UPDATE {$table} SET n = n + 1 WHERE i = \$1", [$first]);
                if (++$ready === 2) {
                    $both->complete();
                }
                $both->getFuture()->await();

                return $transaction->execute("UPDATE {$table} SET n = n + 1 WHERE i = \$1", [$second]);
            };
            $futures = [
                Async::run(
                    fn(): mixed => $this->connect()->transaction(
                        static fn(Transaction $transaction): mixed => $work($transaction, 1, 2),
                        null,
                        $retries,
                    ),
                ),
                Async::run(
                    fn(): mixed => $this->connect()->transaction(
                        static fn(Transaction $transaction): mixed => $work($transaction, 2, 1),
                        null,
                        $retries,
                    ),
                ),
            ];
            $thrown = [];
            foreach ($futures as $future) {
                try {
                    $future->await();
                } catch (DeadlockException $deadlock) {
                    $thrown[] = $deadlock->sqlState;
                }
            }
            self::assertSame($retries === 0 ? ['40P01'] : [], $thrown);
        }
        self::assertSame('(1,3) (2,3)', self::committed($table));
    }

    public function testADeferredConstraintIsReportedAtTheCommit(): void
    {
        $connection = $this->connect();
        $parent = self::table('id int PRIMARY KEY');
        $table = self::table("parent int REFERENCES {$parent} DEFERRABLE INITIALLY DEFERRED");
        $thrown = self::thrown(
            ForeignKeyViolationException::class,
            static fn() => $connection->transaction(
                static fn(Transaction $transaction): int => $transaction->execute("INSERT INTO {$table} VALUES (1)"),
            ),
        );

        self::assertSame("{$table}_parent_fkey", $thrown->constraint);
        self::assertSame('', self::committed($table));
        self::assertUsable($connection);
    }

    public function testAConnectionThatIsLostWithinATransactionIsReported(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        $thrown = self::thrown(
            ConnectionLostException::class,
            static fn()
                => $connection->transaction(static function (Transaction $transaction) use ($connection, $table): void {
                    $transaction->execute("INSERT INTO {$table} VALUES (1)");
                    self::terminate($connection->backendPid());
                    $transaction->execute("INSERT INTO {$table} VALUES (2)");
                }),
        );

        self::assertNotInstanceOf(CommitUnknownException::class, $thrown);
        self::assertTrue($connection->isClosed());
        self::assertSame('', self::committed($table));
    }

    public function testAConnectionThatIsLostWhileItCommitsLeavesThatUnknown(): void
    {
        $connection = $this->connect();
        $gate = new Gate();
        $table = self::table('i int');
        $function = "f_{$table}";
        Observer::ask(
            "CREATE FUNCTION {$function}() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN "
                . "PERFORM ({$gate->statement()}); RETURN NULL; END \$\$",
        );
        Observer::ask(
            "CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON {$table} DEFERRABLE INITIALLY DEFERRED "
                . "FOR EACH ROW EXECUTE FUNCTION {$function}()",
        );
        $future = Async::run(
            static fn(): mixed => $connection->transaction(
                static fn(Transaction $transaction): int => $transaction->execute("INSERT INTO {$table} VALUES (1)"),
            ),
        );
        $gate->awaitStatements(1);
        self::terminate($connection->backendPid());
        $thrown = self::thrown(CommitUnknownException::class, $future->await(...));

        self::assertStringContainsString('unknown whether the transaction was committed', $thrown->getMessage());
        self::assertSame('57P01', $thrown->sqlState);
        self::assertTrue($connection->isClosed());
    }

    public function testACommitIsNotCancelled(): void
    {
        $connection = $this->connect();
        $gate = new Gate();
        $table = self::table('i int');
        Observer::ask(
            "CREATE FUNCTION f_{$table}() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN "
                . "PERFORM ({$gate->statement()}); RETURN NULL; END \$\$",
        );
        Observer::ask(
            "CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON {$table} DEFERRABLE INITIALLY DEFERRED "
                . "FOR EACH ROW EXECUTE FUNCTION f_{$table}()",
        );
        $source = new DeferredCancellation();
        $future = Async::run(
            static fn(): mixed => $connection->transaction(
                static fn(Transaction $transaction): int => $transaction->execute("INSERT INTO {$table} VALUES (1)"),
                cancellation: $source->getCancellation(),
            ),
        );
        $gate->awaitStatements(1);
        $source->cancel();
        self::meanwhile();
        $gate->open();

        self::assertSame(1, $future->await());
        self::assertSame('(1)', self::committed($table));
    }

    public function testAFiberThatIsCancelledInATransactionLeavesNothingOfIt(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        foreach (range(0, 20) as $moment) {
            $source = new DeferredCancellation();
            \Revolt\EventLoop::delay($moment / 5_000, static fn() => $source->cancel());
            self::thrown(
                CancelledException::class,
                static fn()
                    => $connection->transaction(static function (Transaction $transaction) use ($table, $source): void {
                        for ($i = 0; $i < 1_000_000; ++$i) {
                            $transaction->execute("INSERT INTO {$table} VALUES (1)", [], $source->getCancellation());
                        }
                    }),
            );
            self::assertUsable($connection);
        }
        self::assertSame('', self::committed($table));
    }

    public function testInnerTransactionsOfTwoFibersDoNotMix(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        $connection->transaction(static function (Transaction $transaction) use ($table): void {
            $first = Async::run(
                static fn(): mixed
                    => $transaction->transaction(static function (Transaction $inner) use ($table): never {
                        $inner->execute("INSERT INTO {$table} VALUES (1)");
                        $inner->query('SELECT pg_sleep(0.02)');
                        throw new \DomainException();
                    }),
            );
            $second = Async::run(
                static fn(): mixed => $transaction->transaction(
                    static fn(Transaction $inner): int => $inner->execute("INSERT INTO {$table} VALUES (2)"),
                ),
            );
            self::thrown(\DomainException::class, $first->await(...));
            self::assertSame(1, $second->await());
        });

        self::assertSame('(2)', self::committed($table));
    }

    public function testATransactionThatIsLeftBehindIsRolledBackByTheServer(): void
    {
        $table = self::table('i int');
        $connection = $this->connect();
        $connection->query('BEGIN');
        $connection->execute("INSERT INTO {$table} VALUES (1)");
        unset($connection);
        Eventually::holds(fn(): bool => $this->backends() === [], 'the connection is closed');

        self::assertSame('', self::committed($table));
    }

    /**
     * Returns work with which another transaction interferes $conflicts times.
     *
     * @return \Closure(Transaction): string
     */
    private function conflicting(string $table, int &$attempts, int $conflicts): \Closure
    {
        $counter = self::table('n int');
        Observer::ask("INSERT INTO {$counter} VALUES (0)");

        return static function (Transaction $transaction) use ($table, $counter, &$attempts, $conflicts): string {
            $transaction->execute("INSERT INTO {$table} VALUES (\$1)", [++$attempts]);
            $transaction->query("SELECT * FROM {$counter}");
            if ($attempts <= $conflicts) {
                Observer::ask("UPDATE {$counter} SET n = n + 1");
            }
            $transaction->execute("UPDATE {$counter} SET n = n + 1");

            return 'done';
        };
    }
}
