<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\CommitUnknownException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Tests the end of one or all of the server's processes, normally or not. */
final class ServerDeathTest extends TidyTestCase
{
    use ComesToRest;

    private static ?TemporaryPostgres $cluster = null;

    public static function setUpBeforeClass(): void
    {
        self::$cluster = Cluster::start(['max_connections' => 30, 'fsync' => false]);
    }

    public static function tearDownAfterClass(): void
    {
        self::$cluster?->stop();
        self::$cluster = null;
    }

    protected function setUp(): void
    {
        self::restartWhereItIsDown();
    }

    public function testAConnectionThatWasLostInATransactionSaysSoAtTheNextOne(): void
    {
        $link = PostgresConnection::connect(self::cluster()->dsn());
        $die = static fn(Transaction $transaction): mixed
            => $transaction->query('SELECT pg_terminate_backend(pg_backend_pid())');
        $stream = static fn(): array => iterator_to_array($link->stream('SELECT 1'));
        foreach ([
            static fn(): mixed => $link->transaction($die),
            static fn(): mixed => $link->transaction($die),
            $stream,
        ] as $work) {
            $lost = Outcome::of($work);
            self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
        }
    }

    public function testAnotherServerInItsPlaceHasTypesOfItsOwn(): void
    {
        [$first, $second] = [Cluster::start(['fsync' => false]), Cluster::start(['fsync' => false])];
        $oids = [];
        foreach ([[$first, 'bytea'], [$second, 'text']] as [$cluster, $type]) {
            $connection = PostgresConnection::connect($cluster->dsn());
            $connection->executeScript(
                "CREATE DOMAIN d AS {$type}; CREATE TABLE t (a d[]); INSERT INTO t VALUES ('{\"\\\\x4142\"}')",
            );
            $oids[] = $connection->query("SELECT 'd[]'::regtype::oid")->value();
        }
        self::assertSame($oids[0], $oids[1], 'one number of two types');

        $options = PostgresOptions::fromDsn($first->dsn())->with(
            [
                'hosts' => [
                    new PostgresHost($first->host, $first->port),
                    new PostgresHost($second->host, $second->port),
                ],
            ],
        );
        $pool = new PostgresPool($options, maxConnections: 1, poolOptions: new PostgresPoolOptions(validateAfter: 0.0));
        self::assertSame(['AB'], $pool->query('SELECT a FROM t')->value());
        $first->stop();
        self::assertSame(['\x4142'], $pool->query('SELECT a FROM t')->value());
    }

    /**
     * @return iterable<string, array{\Closure(int): mixed, list<string|null>}> what ends a backend, and the possible
     *     SQLSTATEs
     */
    public static function ends(): iterable
    {
        yield 'pg_terminate_backend()' => [static function (int $pid): void {
            self::assertSame([['done' => 't']], self::ask("SELECT pg_terminate_backend({$pid}) AS done"));
        }, ['57P01']];
        // The postmaster then ends all others too.
        yield 'SIGKILL' => [static fn(int $pid): bool => posix_kill($pid, \SIGKILL), [null]];
        yield 'SIGKILL of another backend' => [static function (int $pid): void {
            $other = self::link(PostgresConnection::connect(...));
            posix_kill($other->backendPid(), \SIGKILL);
            Eventually::holds($other->isClosed(...), 'it is lost');
        }, [null]];
        yield 'SIGKILL of the postmaster and of the backend' => [static function (int $pid): void {
            self::cluster()->kill();
            posix_kill($pid, \SIGKILL);
        }, [null, '57P01']]; // the backend may have noticed and report it
        yield 'a restart of the server' => [static fn(int $pid) => self::cluster()->restart(), ['57P01']];
    }

    /**
     * @param \Closure(int): mixed $end
     * @param list<string|null>    $sqlStates
     */
    #[DataProvider('ends')]
    public function testAConnectionThatIsLostWhileItIsIdleSaysSoAtTheNextStatementWhichWasNotSent(
        \Closure $end,
        array $sqlStates,
    ): void {
        $connection = self::link(PostgresConnection::connect(...));
        $connection->query('SELECT 1');
        $end($connection->backendPid());
        Eventually::holds($connection->isClosed(...), 'the loss is noticed without a query');

        $lost = Outcome::of(static fn(): mixed => $connection->query('SELECT 2'));
        self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
        self::assertStringStartsWith(
            'Nothing was sent: The connection to PostgreSQL was lost: the server ',
            $lost->getMessage(),
        );
        self::assertContains($lost->sqlState, $sqlStates);
        self::restartWhereItIsDown();
    }

    /**
     * @param \Closure(int): mixed $end
     * @param list<string|null>    $sqlStates
     */
    #[DataProvider('ends')]
    public function testAQueryThatTheEndInterruptsFailsAndAPoolGoesOn(\Closure $end, array $sqlStates): void
    {
        foreach ([PostgresConnection::connect(...), self::pool(...)] as $make) {
            $link = self::link($make);
            $query = Async::run(
                static fn(): mixed
                    => Outcome::of(static fn(): mixed => $link->query('SELECT pg_sleep(30), $1::text', ['a secret'])),
            );
            $end(self::busy());
            $lost = $query->await();

            self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
            self::assertNotInstanceOf(CommitUnknownException::class, $lost);
            self::assertStringStartsWith('The connection to PostgreSQL was lost: the server ', $lost->getMessage());
            self::assertContains($lost->sqlState, $sqlStates);
            self::restartWhereItIsDown();
            if ($link instanceof PostgresPool) {
                self::assertSame(1, $link->statistics()['lost_total']);
                self::assertAnswers($link);
                $link->close();
            }
        }
    }

    /**
     * @param \Closure(int): mixed $end
     * @param list<string|null>    $sqlStates
     */
    #[DataProvider('ends')]
    public function testATransactionThatTheEndInterruptsIsRolledBackAndItsCommitIsNotInQuestion(
        \Closure $end,
        array $sqlStates,
    ): void {
        foreach ([PostgresConnection::connect(...), self::pool(...)] as $make) {
            foreach (['in a query', 'between queries', 'between queries, and not noticed'] as $when) {
                $link = self::link($make);
                self::ask('DROP TABLE IF EXISTS death; CREATE TABLE death (a int)');
                $lost = self::interrupted($link, $end, $when);

                self::assertInstanceOf(ConnectionLostException::class, $lost, "{$when}: " . Outcome::describe($lost));
                if ($when !== 'between queries, and not noticed') {
                    // COMMIT was not sent. If the loss was unnoticed, it was sent, and the outcome is unknown.
                    self::assertNotInstanceOf(CommitUnknownException::class, $lost, $when);
                }
                self::restartWhereItIsDown();
                self::assertNothingStayed($when);
                if ($link instanceof PostgresPool) {
                    $insert = static fn(Transaction $transaction): int
                        => $transaction->execute('INSERT INTO death VALUES (2)');
                    Eventually::holds(
                        static fn(): bool => Outcome::of(static fn(): mixed => $link->transaction($insert)) === 1,
                        'a transaction is committed',
                        20,
                    );
                    $link->close();
                }
            }
        }
    }

    /**
     * @param \Closure(int): mixed $end
     * @param list<string|null>    $sqlStates
     */
    #[DataProvider('ends')]
    public function testACaughtLossWithinATransactionIsReportedAgain(\Closure $end, array $sqlStates): void
    {
        $connection = self::link(PostgresConnection::connect(...));
        $caught = [];
        $outcome = Outcome::of(
            static fn(): mixed => $connection->transaction(
                static function (Transaction $transaction) use ($end, $connection, &$caught): string {
                    $end($connection->backendPid());
                    Eventually::holds($connection->isClosed(...), 'the loss is noticed');
                    $caught[] = Outcome::of(static fn(): mixed => $transaction->query('SELECT 1'));
                    $caught[] = Outcome::of(static fn(): mixed => $transaction->transaction(static fn(): int => 1));
                    $caught[] = Outcome::of(static fn(): mixed => iterator_to_array($transaction->stream('SELECT 1')));
                    $caught[] = Outcome::of(
                        static fn(): mixed => iterator_to_array($transaction->copyTo('COPY (SELECT 1) TO STDOUT')),
                    );
                    $caught[] = Outcome::of(
                        static fn(): mixed => $transaction->copyFrom('COPY nothing FROM STDIN', ["1\n"]),
                    );
                    $caught[] = Outcome::of(static fn() => $transaction->executeScript('SELECT 1'));

                    return 'done';
                },
            ),
        );

        foreach ([...$caught, $outcome] as $lost) {
            self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
            self::assertNotInstanceOf(CommitUnknownException::class, $lost);
            self::assertContains($lost->sqlState, $sqlStates);
        }
        self::restartWhereItIsDown();
    }

    /**
     * @param \Closure(int): mixed $end
     * @param list<string|null>    $sqlStates
     */
    #[DataProvider('ends')]
    public function testOnlyTheInterruptedCommitHasAnUnknownOutcome(\Closure $end, array $sqlStates): void
    {
        self::ask(<<<'SQL'
            DROP TABLE IF EXISTS death;
            CREATE TABLE death (a int);
            CREATE OR REPLACE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN PERFORM pg_sleep(30); RETURN NULL; END';
            CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON death DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION linger();
            SQL);
        foreach ([PostgresConnection::connect(...), self::pool(...)] as $make) {
            $link = self::link($make);
            $transaction = Async::run(
                static fn(): mixed => Outcome::of(
                    static fn(): mixed => $link->transaction(
                        static fn(Transaction $transaction): int
                            => $transaction->execute('INSERT INTO death VALUES (1)'),
                    ),
                ),
            );
            $pid = null;
            Eventually::holds(static function () use (&$pid): bool {
                $pid = (self::ask(
                    "SELECT pid FROM pg_stat_activity WHERE query = 'COMMIT' AND wait_event = 'PgSleep'",
                ) ?? [])[0]['pid']
                    ?? null;

                return $pid !== null;
            }, 'a backend commits');
            $end((int) $pid);
            $unknown = $transaction->await();

            self::assertInstanceOf(CommitUnknownException::class, $unknown, Outcome::describe($unknown));
            self::assertContains($unknown->sqlState, $sqlStates);
            self::restartWhereItIsDown();
            self::assertNothingStayed();
            if ($link instanceof PostgresPool) {
                self::assertAnswers($link);
                $link->close();
            }
        }
    }

    public function testATransactionThatWaitsForItsOwnStatementsBeforeItCommitsIsNotLeftWaiting(): void
    {
        foreach ([PostgresConnection::connect(...), self::pool(...)] as $make) {
            $link = self::link($make);
            $forgotten = null;
            $transaction = Async::run(static function () use ($link, &$forgotten): mixed {
                return Outcome::of(static function () use ($link, &$forgotten): mixed {
                    return $link->transaction(static function (Transaction $transaction) use (&$forgotten): string {
                        $transaction->query('SELECT 1');
                        $forgotten = Async::run(
                            static fn(): mixed
                                => Outcome::of(static fn(): mixed => $transaction->query('SELECT pg_sleep(30)')),
                        );
                        delay(0);

                        return 'done';
                    });
                });
            });
            self::ask('SELECT pg_terminate_backend(' . self::busy() . ')');
            $lost = $transaction->await();

            self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
            self::assertNotInstanceOf(CommitUnknownException::class, $lost);
            self::assertInstanceOf(ConnectionLostException::class, $forgotten?->await());
            $link->close();
        }
    }

    /** @return iterable<string, array{\Closure(PostgresLink): mixed}> */
    public static function transfers(): iterable
    {
        yield 'a stream' => [static function (PostgresLink $link): int {
            $rows = 0;
            foreach ($link->stream("SELECT i, repeat('x', 1000) FROM generate_series(1, 100000000) AS i") as $row) {
                self::assertSame(++$rows, $row['i']);
            }

            return $rows;
        }];
        yield 'a copy out' => [static function (PostgresLink $link): int {
            $rows = 0;
            foreach ($link->copyTo(
                "COPY (SELECT i, repeat('x', 1000) FROM generate_series(1, 100000000) AS i) TO STDOUT",
            ) as $line) {
                self::assertSame(++$rows . "\t" . str_repeat('x', 1000) . "\n", $line);
            }

            return $rows;
        }];
        yield 'a copy in' => [
            static fn(PostgresLink $link): int
                => $link->copyFrom('COPY death FROM STDIN', (static function (): \Generator {
                    for ($i = 0; ; ++$i) {
                        yield "{$i}\n";
                    }
                })()),
        ];
    }

    /** @param \Closure(PostgresLink): mixed $transfer */
    #[DataProvider('transfers')]
    public function testATransferThatTheEndInterruptsFailsAndHasNoRowThatIsNotWhole(\Closure $transfer): void
    {
        foreach (self::ends() as $how => [$end]) {
            self::ask('DROP TABLE IF EXISTS death; CREATE TABLE death (a int)');
            foreach ([PostgresConnection::connect(...), self::pool(...)] as $make) {
                $link = self::link($make);
                $transferring = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $transfer($link)));
                $end(self::busy());

                $lost = $transferring->await();
                self::assertInstanceOf(ConnectionLostException::class, $lost, "{$how}: " . Outcome::describe($lost));
                self::restartWhereItIsDown();
                self::assertNothingStayed();
                if ($link instanceof PostgresPool) {
                    self::assertAnswers($link);
                    $link->close();
                }
            }
        }
    }

    public function testAnEndBetweenCallsIsNotMistakenForTheEndOfATransfer(): void
    {
        self::ask('DROP TABLE IF EXISTS death; CREATE TABLE death (a int)');
        $end = static function (PostgresConnection $connection): void {
            self::ask("SELECT pg_terminate_backend({$connection->backendPid()})");
            Eventually::holds($connection->isClosed(...), 'the loss is noticed');
        };
        $transfers = [
            'a copy out' => static function (PostgresConnection $connection) use ($end): void {
                foreach ($connection->copyTo(
                    "COPY (SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS i) TO STDOUT",
                ) as $number => $_) {
                    if ($number === 5) {
                        $end($connection);
                    }
                }
            },
            'a stream' => static function (PostgresConnection $connection) use ($end): void {
                foreach ($connection->stream(
                    "SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS i",
                ) as $number => $_) {
                    if ($number === 5) {
                        $end($connection);
                    }
                }
            },
            'the commit of a stream' => static function (PostgresConnection $connection) use ($end): void {
                foreach ($connection->stream('SELECT 1') as $_) {
                    $end($connection);
                }
            },
            'the commit of a transaction' => static fn(PostgresConnection $connection): mixed
                => $connection->transaction(static function (Transaction $transaction) use ($connection, $end): bool {
                    $transaction->query('SELECT 1');
                    $end($connection);

                    return true;
                }),
            'the end of a savepoint' => static fn(PostgresConnection $connection): mixed
                => $connection->transaction(
                    static fn(Transaction $outer): mixed
                        => $outer->transaction(static function (Transaction $inner) use ($connection, $end): bool {
                            $inner->query('SELECT 1');
                            $end($connection);

                            return true;
                        }),
                ),
            'a copy in' => static fn(PostgresConnection $connection): int
                => $connection->copyFrom(
                    'COPY death FROM STDIN',
                    (static function () use ($connection, $end): \Generator {
                        yield "1\n";
                        $end($connection);
                        yield "2\n";
                    })(),
                ),
            'a large copy in' => static fn(PostgresConnection $connection): int
                => $connection->copyFrom(
                    'COPY death FROM STDIN',
                    (static function () use ($connection, $end): \Generator {
                        for ($i = 0; $i < 200_000; ++$i) {
                            if ($i === 100_000) {
                                $end($connection);
                            }
                            yield "{$i}\n";
                        }
                    })(),
                ),
            'the end of a copy in' => static fn(PostgresConnection $connection): int
                => $connection->copyFrom(
                    'COPY death FROM STDIN',
                    (static function () use ($connection, $end): \Generator {
                        yield "1\n";
                        $end($connection);
                    })(),
                ),
        ];
        foreach ($transfers as $name => $transfer) {
            $connection = self::link(PostgresConnection::connect(...));
            $lost = Outcome::of(static fn(): mixed => $transfer($connection));
            self::assertInstanceOf(ConnectionLostException::class, $lost, "{$name}: " . Outcome::describe($lost));
            self::assertStringStartsWith('The connection to PostgreSQL was lost: ', $lost->getMessage(), $name);
            self::assertNothingStayed($name);
        }
    }

    public function testEveryStatementOfAPipelineThatTheEndInterruptsFails(): void
    {
        $connection = self::link(PostgresConnection::connect(...));
        $connection->query('SELECT 1');
        $queries = [];
        for ($i = 0; $i < 50; ++$i) {
            $queries[] = Async::run(
                static fn(): mixed => Outcome::of(
                    static fn(): mixed
                        => $connection->query($i === 10 ? 'SELECT pg_sleep(30)' : "SELECT {$i}")->value(),
                ),
            );
        }
        self::ask('SELECT pg_terminate_backend(' . self::busy() . ')');
        foreach ($queries as $i => $query) {
            $outcome = $query->await();
            $i < 10
                ? self::assertSame($i, $outcome)
                : self::assertInstanceOf(ConnectionLostException::class, $outcome, Outcome::describe($outcome));
        }
    }

    /** @param \Closure(int): mixed $end */
    private static function interrupted(PostgresLink $link, \Closure $end, string $when): mixed
    {
        return Outcome::of(
            static fn(): mixed
                => $link->transaction(static function (Transaction $transaction) use ($end, $when): string {
                    $transaction->execute('INSERT INTO death VALUES (1)');
                    $pid = $transaction->query('SELECT pg_backend_pid()')->value();
                    \assert(\is_int($pid));
                    if ($when === 'in a query') {
                        $query = Async::run(static fn(): mixed => $transaction->query('SELECT pg_sleep(30)'));
                        $end(self::busy());
                        $query->await();
                    }
                    // Blocks, so that the client can't notice the end too early.
                    $end($pid);
                    Eventually::holdsByItself(
                        static fn(): bool => !Processes::isAlive($pid),
                        'the backend has ended',
                        20,
                    );
                    if ($when === 'between queries') {
                        Eventually::holds(
                            static fn(): bool
                                => Outcome::of(
                                    static fn(): mixed => $transaction->query('SELECT 1'),
                                ) instanceof ConnectionLostException,
                            'the loss is noticed',
                        );
                    }

                    return 'done';
                }),
        );
    }

    private static function pool(string $dsn): PostgresPool
    {
        return new PostgresPool($dsn, 3, new PostgresPoolOptions(acquireTimeout: 20));
    }

    /** Returns the backend that runs a client's statement, once it exists. */
    private static function busy(): int
    {
        $pid = null;
        Eventually::holds(static function () use (&$pid): bool {
            $pid = (self::ask(
                "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
                    . "AND backend_type = 'client backend' AND query !~ 'set_config'",
            ) ?? [])[0]['pid']
                ?? null;

            return $pid !== null;
        }, 'a backend is busy', 20.0); // a restarted server may have to recover first

        return (int) $pid;
    }

    /** Asserts that the pool answers. A server that only now notices a killed process ends the new connection too. */
    private static function assertAnswers(PostgresPool $pool): void
    {
        Eventually::holds(
            static fn(): bool => Outcome::of(static fn(): mixed => $pool->query('SELECT 4')->value()) === 4,
            'the pool answers',
            20,
        );
    }

    /** Asserts that nothing is left. A server may answer once more before it notices a killed process. */
    private static function assertNothingStayed(string $when = ''): void
    {
        Eventually::holds(
            static fn(): bool => self::ask('SELECT a FROM death') === [],
            "the table is empty {$when}",
            20,
        );
    }

    /**
     * Returns a link. Retries while the server recovers: it notices some time after the end of a backend that this was
     * a crash.
     *
     * @template T of PostgresLink
     *
     * @param \Closure(string): T $make
     *
     * @return T
     */
    private static function link(\Closure $make): PostgresLink
    {
        $link = null;
        Eventually::holds(static function () use ($make, &$link): bool {
            try {
                $link = $make(self::cluster()->dsn());
                $link->query('SELECT 1');
            } catch (ConnectionFailedException|ConnectionLostException) {
                $link = null;
            }

            return $link !== null;
        }, 'the server accepts a connection', 20);

        return $link ?? self::fail('There is no connection');
    }

    private static function restartWhereItIsDown(): void
    {
        if (self::cluster()->postmasterPid() === null) {
            self::cluster()->restart();
        }
        Eventually::holds(static fn(): bool => self::ask('SELECT 1') !== null, 'the server answers', 20);
    }

    /** @return list<array<array-key, string|null>>|null null while the server does not answer */
    private static function ask(string $sql): ?array
    {
        set_error_handler(static fn(): bool => true);
        try {
            // Otherwise libpq writes a backend's messages about a crash to standard error.
            return Cluster::ask($sql, self::cluster()->dsn(options: '-c client_min_messages=error'));
        } catch (\RuntimeException) {
            return null;
        } finally {
            restore_error_handler();
        }
    }

    private static function cluster(): TemporaryPostgres
    {
        return self::$cluster ?? throw new \LogicException('There is no cluster');
    }
}
