<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Async;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Tests many concurrent statements on one connection, of which some fail. */
final class PipelineFaultsTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    private PostgresConnection $connection;

    private string $table;

    protected function setUp(): void
    {
        mt_srand(Scale::seed());
        $this->table = 'numbers_' . bin2hex(random_bytes(4));
        Cluster::ask("CREATE TABLE {$this->table} (id int PRIMARY KEY); INSERT INTO {$this->table} VALUES (1)");
        $this->connection = PostgresConnection::connect(Cluster::shared()->dsn());
    }

    protected function tearDown(): void
    {
        $this->connection->close();
        unset($this->connection);
        Cluster::ask("DROP TABLE {$this->table}");
    }

    /** @return iterable<string, array{\Closure(string): PostgresLink}> */
    public static function links(): iterable
    {
        yield 'a connection' => [static fn(string $dsn): PostgresLink => PostgresConnection::connect($dsn)];
        yield 'a pool of one' => [static fn(string $dsn): PostgresLink => new PostgresPool($dsn, 1)];
        yield 'a pool' => [static fn(string $dsn): PostgresLink => new PostgresPool($dsn, 5)];
        yield 'a borrowed connection' => [
            static fn(string $dsn): PostgresLink
                => (new PostgresPool($dsn, 1, new PostgresPoolOptions(onWarning: static fn() => null)))->acquire(),
        ];
    }

    public function testAnErrorAmongAHundredStatementsAffectsNoOther(): void
    {
        for ($round = 0; $round < 3; ++$round) {
            $outcomes = Outcome::ofAll(array_map(
                fn(int $i): \Closure
                    => fn(): mixed => $this->connection->query($i === 50 ? 'SELECT 1 / 0' : "SELECT {$i}")->value(),
                range(0, 99),
            ));
            self::assertInstanceOf(QueryException::class, $outcomes[50]);
            self::assertSame('22012', $outcomes[50]->sqlState);
            $outcomes[50] = 50;
            self::assertSame(range(0, 99), $outcomes);
        }
    }

    public function testErrorsAnywhereAmongAHundredStatementsAffectNoOther(): void
    {
        $table = $this->table;
        $errors = [
            [
                static fn(PostgresConnection $connection): mixed => $connection->query('SELECT 1 / 0'),
                QueryException::class,
                '22012',
            ],
            [
                static fn(PostgresConnection $connection): mixed => $connection->query('SELECT $1::int / 0', [1]),
                QueryException::class,
                '22012',
            ],
            [
                static fn(PostgresConnection $connection): mixed => $connection->query('no statement'),
                QueryException::class,
                '42601',
            ],
            [
                static fn(PostgresConnection $connection): mixed
                    => $connection->query('SELECT FROM nowhere WHERE a = $1', ['x']),
                QueryException::class,
                '42P01',
            ],
            [
                static fn(PostgresConnection $connection): mixed => $connection->query('SELECT $1::int', ['no number']),
                \Throwable::class,
                null,
            ],
            [
                static fn(PostgresConnection $connection): mixed => $connection->query('SELECT $1::int, $2::int', [1]),
                \Throwable::class,
                null,
            ],
            [
                static fn(PostgresConnection $connection): mixed
                    => $connection->query('SELECT $1::int', [static fn(): int => 1]),
                InvalidParameterException::class,
                null,
            ],
            [
                static fn(PostgresConnection $connection): mixed => $connection->query('SELECT 1; SELECT 2'),
                MultipleStatementsException::class,
                null,
            ],
            [
                static fn(PostgresConnection $connection): mixed
                    => $connection->execute('INSERT INTO ' . $table . ' VALUES ($1)', [1]),
                UniqueViolationException::class,
                '23505',
            ],
            [
                static fn(PostgresConnection $connection): mixed
                    => $connection->query('SELECT i / (500 - i) FROM generate_series(1, 1000) AS i'),
                QueryException::class,
                '22012',
            ],
            [
                static fn(PostgresConnection $connection): mixed => $connection->query("COPY {$table} FROM STDIN"),
                \LogicException::class,
                null,
            ],
            [
                static fn(PostgresConnection $connection): mixed => $connection->query("COPY {$table} TO STDOUT"),
                \LogicException::class,
                null,
            ],
            [
                static fn(PostgresConnection $connection)
                    => $connection->executeScript('SELECT 1; SELECT 1 / 0; SELECT 2'),
                QueryException::class,
                '22012',
            ],
            [
                static fn(PostgresConnection $connection): mixed
                    => $connection->query("DO $$ BEGIN RAISE EXCEPTION 'told' USING ERRCODE = 'ZZZZZ'; END $$"),
                QueryException::class,
                'ZZZZZ',
            ],
        ];
        foreach (Scale::rounds(0.5, 10) as $_) {
            $works = $expected = [];
            for ($i = 0; $i < 100; ++$i) {
                if (mt_rand(0, 4) === 0) {
                    [$work, $class, $sqlState] = $errors[mt_rand(0, \count($errors) - 1)];
                    $works[$i] = fn(): mixed => $work($this->connection);
                    $expected[$i] = [$class, $sqlState];
                } else {
                    $works[$i] = fn(): mixed => $this->connection->query(
                        mt_rand(0, 1) === 0 ? 'SELECT $1::int' : 'SELECT $1::text::int',
                        [mt_rand(0, 1) === 0 ? (string) $i : $i],
                    )->value();
                }
            }
            foreach (Outcome::ofAll($works) as $i => $outcome) {
                if (isset($expected[$i])) {
                    self::assertInstanceOf($expected[$i][0], $outcome, Outcome::describe($outcome));
                    if ($outcome instanceof QueryException) {
                        self::assertSame($expected[$i][1] ?? $outcome->sqlState, $outcome->sqlState);
                    }
                } else {
                    self::assertSame($i, $outcome, Outcome::describe($outcome));
                }
            }
        }
    }

    public function testAnErrorOfOneFiberInATransactionOfSeveralFailsWhatComesAfterItAndTheTransaction(): void
    {
        /** @var \ArrayObject<int, mixed> $outcomes */
        $outcomes = new \ArrayObject();
        $outcome = Outcome::of(
            fn(): mixed
                => $this->connection->transaction(static function (Transaction $transaction) use ($outcomes): string {
                    $outcomes->exchangeArray(Outcome::ofAll(array_map(
                        static fn(int $i): \Closure
                            => static fn(): mixed
                                => $transaction->query($i === 5 ? 'SELECT 1 / 0' : "SELECT {$i}")->value(),
                        range(0, 9),
                    )));

                    return 'done';
                }),
        );

        foreach ($outcomes as $i => $one) {
            if ($i < 5) {
                self::assertSame($i, $one);

                continue;
            }
            self::assertInstanceOf(QueryException::class, $one, Outcome::describe($one));
            self::assertSame($i > 5 ? '25P02' : '22012', $one->sqlState);
        }
        self::assertStringContainsString('was rolled back instead of committed', Outcome::describe($outcome));
        self::assertSame(1, $this->connection->query('SELECT 1')->value());
    }

    /** @param \Closure(string): PostgresLink $make */
    #[DataProvider('links')]
    public function testAStatementIsNeverCaughtInTheTransactionOfAnotherFiber(\Closure $make): void
    {
        $link = $make(Cluster::shared()->dsn());
        $table = $this->table;
        // Statements of several steps: their types are asked first, they are sent again, or they wait for a COPY.
        $statements = [
            static fn(int $i): int
                => $link->execute("INSERT INTO {$table} SELECT length(\$1) /* {$i} */", [str_repeat('x', $i)]),
            static fn(int $i): int
                => $link->execute(
                    "INSERT INTO {$table} SELECT \$1::text::int FROM pg_sleep(0.01) /* {$i} */",
                    [(string) $i],
                ),
            static fn(int $i): int => $link->execute("INSERT INTO {$table} VALUES ({$i})"),
            static fn(int $i): int => $link->copyFrom("COPY {$table} FROM STDIN", [[$i]]),
            static function (int $i) use ($link, $table): int {
                $link->executeScript("INSERT INTO {$table} VALUES ({$i})");

                return 1;
            },
            static function (int $i) use ($link, $table): int {
                iterator_to_array($link->copyTo('COPY (SELECT 1) TO STDOUT'));

                return $link->execute("INSERT INTO {$table} VALUES ({$i})");
            },
        ];
        $rollBack = static fn(): mixed
            => Outcome::of(static fn(): mixed => $link->transaction(static function (Transaction $transaction): never {
                $transaction->query('SELECT 1');
                delay(0.001);

                throw new \DomainException('to roll back');
            }));
        $fail = static fn(): mixed => Outcome::of(
            static fn(): mixed
                => $link->transaction(
                    static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1 / 0'),
                ),
        );
        foreach (Scale::rounds(0.25, 3) as $_) {
            $works = [];
            foreach (range(2, 40) as $i) {
                $statement = $statements[mt_rand(0, \count($statements) - 1)];
                $works[$i] = match (mt_rand(0, 3)) {
                    0 => $rollBack,
                    1 => $fail,
                    default => static function () use ($statement, $i): mixed {
                        if (mt_rand(0, 1) === 0) {
                            delay(0);
                        }

                        return $statement($i);
                    },
                };
            }
            $outcomes = Outcome::ofAll($works);
            $done = array_keys(array_filter($outcomes, static fn(mixed $outcome): bool => $outcome === 1));
            self::assertSame(
                [],
                array_filter(
                    array_map(Outcome::describe(...), $outcomes),
                    static fn(string $outcome): bool
                        => preg_match('/^(1|DomainException.*|.*division by zero.*)$/', $outcome) === 0,
                ),
                'nobody else has failed',
            );
            self::assertSame(
                [1, ...$done],
                $link->query("SELECT id FROM {$table} ORDER BY id")->column(),
                'what was told to be done is there',
            );
            $link->execute("DELETE FROM {$table} WHERE id > 1");
        }
    }

    /** @param \Closure(string): PostgresLink $make */
    #[DataProvider('links')]
    public function testNoFiberHearsOfAnothersWork(\Closure $make): void
    {
        $link = $make(Cluster::shared()->dsn());
        $table = $this->table;
        $kinds = [
            static fn(int $i): mixed => $link->query('SELECT $1::int', [$i])->value(),
            static fn(int $i): mixed => $link->transaction(static function (Transaction $transaction) use ($i): mixed {
                $transaction->query('SELECT set_config($1, $2, true)', ['spindle.fiber', (string) $i]);
                delay(0);

                return $transaction->query("SELECT current_setting('spindle.fiber')::int")->value();
            }),
            static function (int $i) use ($link): int {
                $sum = 0;
                foreach ($link->stream('SELECT $1::int AS i FROM generate_series(1, 200)', [$i]) as $row) {
                    self::assertSame($i, $row['i']);
                    if (++$sum === 100) {
                        delay(0);
                    }
                }

                return $i;
            },
            static function (int $i) use ($link): int {
                foreach ($link->copyTo("COPY (SELECT {$i} FROM generate_series(1, 200)) TO STDOUT") as $row) {
                    self::assertSame("{$i}\n", $row);
                }

                return $i;
            },
            static function (int $i) use ($link, $table): int {
                // A rollback, because all of them write the same row.
                Outcome::of(
                    static fn(): mixed
                        => $link->transaction(static function (Transaction $transaction) use ($table, $i): never {
                            self::assertSame(
                                3,
                                $transaction->copyFrom(
                                    "COPY {$table} FROM STDIN",
                                    [(10 * $i + 10) . "\n", (10 * $i + 11) . "\n", (10 * $i + 12) . "\n"],
                                ),
                            );

                            throw new \DomainException('to roll back');
                        }),
                );

                return $i;
            },
            static function (int $i) use ($link): int {
                $link->executeScript("SELECT {$i}; SELECT pg_sleep(0)");

                return $i;
            },
            static fn(int $i): int
                => \count([Outcome::of(static fn(): mixed => $link->query('SELECT 1 / 0'))]) + $i - 1,
        ];
        foreach (Scale::rounds(0.25, 2) as $_) {
            $works = [];
            for ($i = 0; $i < 60; ++$i) {
                $kind = $kinds[mt_rand(0, \count($kinds) - 1)];
                $works[] = static function () use ($kind, $i): mixed {
                    if (mt_rand(0, 2) === 0) {
                        delay(0);
                    }

                    return $kind($i);
                };
            }
            $outcomes = Outcome::ofAll($works);
            self::assertSame(
                range(0, 59),
                $outcomes,
                implode(
                    "\n",
                    array_filter(
                        array_map(Outcome::describe(...), $outcomes),
                        static fn(string $outcome): bool => preg_match('/^\d+$/', $outcome) === 0,
                    ),
                ),
            );
            self::assertSame(1, $link->query("SELECT count(*) FROM {$table}")->value());
        }
    }

    public function testAStatementThatFailsIsSentOnce(): void
    {
        // A value from a sequence stays used, whatever happens to the statement.
        Cluster::ask("CREATE SEQUENCE {$this->table}_sent");
        foreach ([
            'SELECT 1 / (nextval($1::text::regclass) * 0)',
            'SELECT nextval($1::text::regclass) FROM nowhere',
            'INSERT INTO ' . $this->table . ' SELECT 0 * nextval($1::text::regclass) + 1',
        ] as $sql) {
            foreach (range(1, 3) as $_) {
                self::assertInstanceOf(
                    QueryException::class,
                    Outcome::of(fn(): mixed => $this->connection->query($sql, ["{$this->table}_sent"])),
                );
            }
        }

        self::assertSame(
            [['last_value' => '6']],
            Cluster::ask("SELECT last_value FROM {$this->table}_sent"),
            'three times each by those that were executed',
        );
        Cluster::ask("DROP SEQUENCE {$this->table}_sent");
    }

    public function testAFiberThatWaitsForItselfGetsAnException(): void
    {
        [$connection, $table] = [$this->connection, $this->table];
        $selfish = [
            static fn(): mixed => $connection->transaction(static fn(): mixed => $connection->query('SELECT 1')),
            static fn(): mixed
                => $connection->transaction(static fn(): mixed => $connection->transaction(static fn(): int => 1)),
            static function () use ($connection): void {
                foreach ($connection->stream('SELECT 1') as $_) {
                    $connection->query('SELECT 2');
                }
            },
            static function () use ($connection): void {
                foreach ($connection->copyTo('COPY (SELECT 1) TO STDOUT') as $_) {
                    $connection->query('SELECT 2');
                }
            },
            static fn(): mixed
                => $connection->copyFrom("COPY {$table} FROM STDIN", (static function () use ($connection): \Generator {
                    yield "100\n";
                    $connection->query('SELECT 2');
                })()),
        ];
        foreach ($selfish as $number => $work) {
            foreach ([$work, static fn(): mixed => Async::run(static fn(): mixed => $work())->await()] as $in) {
                $outcome = Outcome::of($in);
                self::assertInstanceOf(\LogicException::class, $outcome, "{$number}: " . Outcome::describe($outcome));
                self::assertStringContainsString('this fiber would wait for itself', $outcome->getMessage());
                self::assertSame(3, $connection->query('SELECT 3')->value());
            }
        }
    }
}
