<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Observer;

use function Amp\async;
use function Amp\delay;

/**
 * Tests that callers do not notice that statements stay prepared.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait PreparesStatements
{
    private const PREPARED = 'SELECT statement FROM pg_prepared_statements';

    public function testAStatementIsPreparedOnce(): void
    {
        $connection = $this->connect();
        foreach (range(1, 5) as $i) {
            $connection->query('SELECT 1 AS a');
            $connection->query('SELECT $1::text AS b', ["{$i}"]);
            iterator_to_array($connection->stream('SELECT $1::int AS c', [$i]));
        }
        $prepared = array_count_values(array_filter($connection->query(self::PREPARED)->column(), is_string(...)));

        self::assertSame([1, 1], [$prepared['SELECT 1 AS a'] ?? 0, $prepared['SELECT $1::text AS b'] ?? 0]);
        self::assertLessThanOrEqual(1, $prepared['SELECT $1::int AS c'] ?? 0);
    }

    public function testAStatementWithDollarsAndWithoutParametersAffectsNoOther(): void
    {
        $connection = $this->connect();
        self::assertSame('$1', $connection->query("SELECT '\$1'")->value());
        self::assertSame('a', $connection->query('SELECT $$a$$')->value());
        self::assertUsable($connection);
        self::assertUsable($connection);

        self::assertContains('SELECT $1::int, $2::text', $connection->query(self::PREPARED)->column());
    }

    public function testTheStatementsUsedLastStayPreparedUpToTheLimit(): void
    {
        $connection = $this->connect(statementCache: 5);
        $connection->query(self::PREPARED);
        foreach (range(1, 30) as $i) {
            $connection->query("SELECT {$i} AS a, \$1::text", ['x']);
            $connection->query('SELECT 1 AS kept');
        }
        $connection->query(self::PREPARED);
        $prepared = $connection->query(self::PREPARED)->column();

        self::assertLessThanOrEqual(5, \count($prepared));
        self::assertContains('SELECT 1 AS kept', $prepared);
        self::assertContains('SELECT 30 AS a, $1::text', $prepared);
        self::assertNotContains('SELECT 1 AS a, $1::text', $prepared);
    }

    public function testALongStatementIsNotKept(): void
    {
        $connection = $this->connect();
        $long = str_repeat(' ', SqlText::MAX_CACHED_BYTES);
        foreach (range(1, 3) as $i) {
            self::assertSame(1, $connection->query("SELECT 1{$long}")->value());
            self::assertSame("{$i}", $connection->query("SELECT \$1::text{$long}", ["{$i}"])->value());
            self::assertSame(
                [['a' => $i]],
                iterator_to_array($connection->stream("SELECT \$1::int AS a{$long}", [$i])),
            );
        }

        self::assertSame(
            [],
            preg_grep('/ {99}/', array_filter($connection->query(self::PREPARED)->column(), is_string(...))),
        );
    }

    public function testNoStatementStaysPreparedWhenNoneIsTo(): void
    {
        $connection = $this->connect(statementCache: 0);
        foreach ([1, 2] as $_) {
            self::assertUsable($connection);
            self::assertSame([['a' => 1]], iterator_to_array($connection->stream('SELECT $1::int AS a', [1])));
            self::assertSame([], $connection->query(self::PREPARED)->column());
        }
        $futures = [];
        for ($i = 0; $i < 50; ++$i) {
            $futures[] = Async::run(
                static fn(): mixed => $connection->query(
                    $i % 2 === 0 ? 'SELECT $1::int' : 'SELECT $1::text',
                    [$i % 2 === 0 ? $i : "{$i}"],
                )->value(),
            );
        }
        foreach ($futures as $i => $future) {
            self::assertSame($i % 2 === 0 ? $i : "{$i}", $future->await());
        }
    }

    public function testStatementsSurviveAChangeOfTheirTables(): void
    {
        $connection = $this->connect();
        $table = self::table('a int');
        $connection->execute("INSERT INTO {$table} VALUES (1)");
        $statement = "SELECT * FROM {$table} WHERE a = \$1";
        foreach ([
            [null, ['a' => 1]],
            [
                "ALTER TABLE {$table} ADD b text DEFAULT 'x'; ALTER TABLE {$table} ALTER b DROP DEFAULT",
                ['a' => 1, 'b' => 'x'],
            ],
            ["ALTER TABLE {$table} ALTER b TYPE bytea USING b::bytea", ['a' => 1, 'b' => 'x']],
            ["ALTER TABLE {$table} ALTER b TYPE json USING '[1]'", ['a' => 1, 'b' => [1]]],
            ["ALTER TABLE {$table} RENAME b TO c", ['a' => 1, 'c' => [1]]],
            ["ALTER TABLE {$table} DROP c", ['a' => 1]],
        ] as [$change, $row]) {
            $change === null ? null : $connection->executeScript($change);
            self::assertSame($row, $connection->query($statement, [1])->one(), (string) $change);
            self::assertSame([$row], iterator_to_array($connection->stream($statement, [1])), (string) $change);
        }
    }

    public function testAChangeByAnotherConnectionIsSurvivedByAllFibersAtOnce(): void
    {
        $connection = $this->connect();
        $table = self::table('a int');
        $connection->execute("INSERT INTO {$table} VALUES (1)");
        $connection->query("SELECT * FROM {$table}");
        foreach (range(1, 5) as $i) {
            $this->connect()->execute("ALTER TABLE {$table} ADD c{$i} int DEFAULT {$i}");
            $futures = array_map(
                static fn(): mixed
                    => Async::run(static fn(): mixed => $connection->query("SELECT * FROM {$table}")->allNumeric()),
                range(1, 20),
            );
            foreach ($futures as $future) {
                self::assertSame([[1, ...range(1, $i)]], $future->await());
            }
        }
    }

    public function testAChangeWithinATransactionIsNoticedAtMostOnce(): void
    {
        $connection = $this->connect();
        $table = self::table('a int');
        $connection->query("SELECT * FROM {$table}");
        $this->connect()->execute("ALTER TABLE {$table} ADD b int");
        $look = static fn(): array => $connection->transaction(
            static fn(Transaction $transaction): array => $transaction->query("SELECT * FROM {$table}")->columnNames(),
        );
        try {
            $columns = $look();
        } catch (QueryException $stale) {
            self::assertSame('0A000', $stale->sqlState);
            $columns = $look();
        }

        self::assertSame(['a', 'b'], $columns);
    }

    public function testStatementsSurviveThatTheirUserForgetsThem(): void
    {
        $connection = $this->connect();
        foreach (['DEALLOCATE ALL', 'DISCARD ALL', 'DISCARD PLANS'] as $forget) {
            foreach ([
                static fn(PostgresConnection $connection): int => $connection->execute($forget),
                static fn(PostgresConnection $connection) => $connection->executeScript($forget),
            ] as $way) {
                self::assertUsable($connection);
                self::assertSame([['a' => 1]], iterator_to_array($connection->stream('SELECT $1::int AS a', [1])));
                $way($connection);
                self::assertUsable($connection);
                self::assertSame([['a' => 1]], iterator_to_array($connection->stream('SELECT $1::int AS a', [1])));
                $way($connection);
                $futures = array_map(
                    static fn(int $i): mixed
                        => Async::run(static fn(): mixed => $connection->query('SELECT $1::int', [$i])->value()),
                    range(1, 20),
                );
                self::assertSame(range(1, 20), array_map(static fn($future): mixed => $future->await(), $futures));
            }
        }
    }

    public function testStatementsSurviveThatAFunctionForgetsThem(): void
    {
        $connection = $this->connect();
        $function = 'f_' . bin2hex(random_bytes(6));
        // The text does not show what the function does.
        $connection->execute(
            "CREATE FUNCTION {$function}() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
                . "EXECUTE 'DEALLO' || 'CATE ALL'; RETURN 1; END $$",
        );
        foreach ([1, 2, 3] as $_) {
            self::assertUsable($connection);
            $connection->executeScript("SELECT {$function}()");
            self::assertUsable($connection);
            $connection->executeScript("SELECT {$function}()");
            self::assertSame([['a' => 1]], iterator_to_array($connection->stream('SELECT $1::int AS a', [1])));
            $connection->executeScript("SELECT {$function}()");
            $futures = array_map(
                static fn(int $i): Future
                    => Async::run(static fn(): mixed => $connection->query('SELECT $1::int', [$i])->value()),
                range(1, 20),
            );
            self::assertSame(range(1, 20), array_map(static fn(Future $future): mixed => $future->await(), $futures));
        }
    }

    public function testAnErrorOfWhatAStatementExecutesIsNotMistakenForOneOfItsPreparation(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        $procedure = 'p_' . bin2hex(random_bytes(6));
        foreach (['26000', '42P05', 'XX000', '0A000'] as $state) {
            Observer::ask(
                "CREATE OR REPLACE PROCEDURE {$procedure}() LANGUAGE plpgsql AS $$ BEGIN "
                    . "INSERT INTO {$table} VALUES (1); COMMIT; RAISE EXCEPTION 'cache lookup failed for type 1' "
                    . "USING ERRCODE = '{$state}'; END $$",
            );
            foreach (['at first', 'once it is known'] as $when) {
                Observer::ask("TRUNCATE {$table}");
                self::assertSame(
                    $state,
                    self::thrown(
                        QueryException::class,
                        static fn() => $connection->query("CALL {$procedure}()"),
                    )->sqlState,
                );
                self::assertSame('(1)', self::committed($table), "{$state} {$when}");
            }
        }
        Observer::ask(
            "CREATE OR REPLACE PROCEDURE {$procedure}() LANGUAGE plpgsql AS $$ BEGIN "
                . "INSERT INTO {$table} VALUES (2); COMMIT; EXECUTE 'EXECUTE nowhere'; END $$",
        );
        self::assertSame(
            '26000',
            self::thrown(QueryException::class, static fn() => $connection->query("CALL {$procedure}()"))->sqlState,
        );
        self::assertSame('(1) (2)', self::committed($table));
    }

    public function testAStatementOfTheUsersOwnThatIsNotThereAffectsNoOther(): void
    {
        $connection = $this->connect();
        foreach ([1, 2, 3] as $_) {
            self::assertUsable($connection);
            self::assertSame(
                '26000',
                self::thrown(QueryException::class, static fn() => $connection->query('EXECUTE nowhere'))->sqlState,
            );
        }
        foreach ([1, 2] as $_) {
            $connection->query('SELECT 1 AS later');
        }

        self::assertContains('SELECT 1 AS later', $connection->query(self::PREPARED)->column());
    }

    public function testAStreamFailsOnceAtMostWhenItsTableHasChanged(): void
    {
        $connection = $this->connect();
        $table = self::table('a int');
        $connection->execute("INSERT INTO {$table} VALUES (1)");
        $look = static fn(): array
            => iterator_to_array($connection->stream("SELECT * FROM {$table} WHERE a = \$1", [1]));
        self::assertSame([['a' => 1]], $look());
        $this->connect()->execute("ALTER TABLE {$table} ADD b int");
        try {
            $look();
        } catch (QueryException $stale) {
            self::assertSame('0A000', $stale->sqlState);
        }

        self::assertSame([['a' => 1, 'b' => null]], $look());
    }

    public function testAStatementThatWasCancelledTheFirstTimeDoesNotStayPreparedForEver(): void
    {
        $connection = $this->connect();
        foreach ([[], ['x']] as $parameters) {
            for ($i = 0; $i < 10; ++$i) {
                $source = new DeferredCancellation();
                $future = Async::run(
                    static fn(): mixed => $connection->query(
                        $parameters === [] ? 'SELECT pg_sleep(1000)' : 'SELECT pg_sleep(1000), $1::text',
                        $parameters,
                        $source->getCancellation(),
                    ),
                );
                delay(0.001 * $i);
                $source->cancel();
                self::thrown(CancelledException::class, $future->await(...));
            }
        }
        self::assertUsable($connection);

        self::assertLessThanOrEqual(
            2,
            \count(array_filter(
                $connection->query(self::PREPARED)->column(),
                static fn(mixed $sql): bool => \is_string($sql) && str_contains($sql, 'pg_sleep'),
            )),
        );
    }

    public function testAnExecutedStatementDoesNotFailBecauseItsTypesAreUnknown(): void
    {
        $type = 'e_' . bin2hex(random_bytes(6));
        Observer::ask("CREATE TYPE {$type} AS ENUM ('a')");
        $table = self::table("a {$type}, b {$type}[]");
        $done = 0;
        for ($i = 0; $i < 20; ++$i) {
            $connection = $this->connect();
            $connection->executeScript("SELECT '{a}'::{$type}[]; SET statement_timeout = 1");
            try {
                self::assertSame(
                    'a',
                    $connection->query("INSERT INTO {$table} VALUES ('a', '{a}') RETURNING a")->value(),
                );
                ++$done;
            } catch (QueryCancelledException) {
                // The statement itself exceeded the limit.
            }
            self::withoutTimeLimit($connection);
            self::assertSame(
                [['a', ['a']]],
                $connection->query("SELECT a, b FROM {$table} UNION VALUES ('a'::{$type}, '{a}'::{$type}[])")
                    ->allNumeric(),
            );
            $connection->close();
        }

        self::assertSame($done, (int) Observer::ask("SELECT count(*) FROM {$table}")[0]['count']);
    }

    /** Removes the time limit of 1 ms, which also applies to this statement itself. */
    private static function withoutTimeLimit(PostgresConnection $connection): void
    {
        do {
            try {
                $connection->executeScript('SET statement_timeout = 0');
                $connection->executeScript('SELECT'); // the limit of the SET may stop the statement after it
                $isSet = true;
            } catch (QueryCancelledException) {
                $isSet = false;
            }
        } while (!$isSet);
    }

    public function testStatementsAreForgottenWithinATransactionSafely(): void
    {
        $connection = $this->connect();
        self::assertUsable($connection);
        $connection->transaction(static function (Transaction $transaction): void {
            self::assertUsable($transaction);
            $transaction->execute('DEALLOCATE ALL');
            self::assertUsable($transaction);
        });
        self::assertUsable($connection);
    }

    public function testStatementsOfTheUsersOwnAreLeftAlone(): void
    {
        $connection = $this->connect();
        foreach (['s1', 's2', 's3', 'p1', 'a b'] as $i => $name) {
            $connection->execute("PREPARE \"{$name}\" AS SELECT {$i}");
            self::assertUsable($connection);
            self::assertSame($i, $connection->query("EXECUTE \"{$name}\"")->value());
        }
        self::assertUsable($connection);
    }

    public function testACursorMayBeReplacedByOneWithOtherTypes(): void
    {
        $connection = $this->connect();
        foreach (['int4' => 7, 'text' => 'four', 'float8' => 1.5, 'int8' => 2 ** 40] as $type => $value) {
            $rows = $connection->transaction(
                static function (Transaction $transaction) use ($type, $value): array {
                    $transaction->execute("DECLARE c CURSOR FOR VALUES ('{$value}'::{$type}), (NULL), (NULL)");

                    return [
                        $transaction->query('FETCH FROM c')->allNumeric(),
                        $transaction->query('fetch from c')->allNumeric(),
                        iterator_to_array($transaction->stream('/* next */ FETCH c')),
                    ];
                },
            );

            self::assertSame([[[$value]], [[null]], [['column1' => null]]], $rows);
        }
    }

    public function testAStatementHasTheTimeOfItsExecution(): void
    {
        $connection = $this->connect();
        foreach (["'now'", "' on_Now ad'", "E'now'", "U&'now'", '$$now$$', '$a$now$a$'] as $now) {
            $sql = "SELECT extract(epoch FROM {$now}::timestamptz)";
            $stream = static fn(): mixed => iterator_to_array($connection->stream("{$sql} AS s"))[0]['s'];
            $times = [];
            for ($i = 0; $i < 3; ++$i) {
                array_push($times, $connection->query($sql)->value(), $stream());
            }

            self::assertCount(6, array_unique(array_filter($times, is_string(...))), $now);
        }
    }

    public function testAFunctionMayReplaceAStatementOfTheUsersOwn(): void
    {
        $connection = $this->connect();
        $connection->executeScript(
            'CREATE OR REPLACE FUNCTION replace_own() RETURNS void LANGUAGE plpgsql AS $$BEGIN '
                . "EXECUTE 'DEALLOCATE own'; EXECUTE 'PREPARE own AS SELECT ''four''::text'; END\$\$",
        );
        $connection->execute('PREPARE own AS SELECT 7');
        self::assertSame(7, $connection->query('EXECUTE own')->value());
        $connection->query('SELECT replace_own()');

        self::assertSame('four', $connection->query('EXECUTE own')->value());
    }

    public function testAStatementFollowsTheSearchPath(): void
    {
        $connection = $this->connect();
        $schema = 's_' . bin2hex(random_bytes(6));
        $connection->executeScript(
            "CREATE SCHEMA {$schema}_a; CREATE SCHEMA {$schema}_b; CREATE TABLE {$schema}_a.t AS SELECT 1 AS a; "
                . "CREATE TABLE {$schema}_b.t AS SELECT 'x' AS b",
        );
        foreach (['a' => ['a' => 1], 'b' => ['b' => 'x']] as $which => $row) {
            $connection->execute("SET search_path = {$schema}_{$which}");
            self::assertSame($row, $connection->query('SELECT * FROM t')->one());
        }
    }

    public function testWhatWaitsForOthersIsPreparedAgainWhereTheyHaveItForgotten(): void
    {
        $connection = $this->connect(statementCache: 2);
        $connection->transaction(static function (Transaction $transaction): void {
            $ask = static fn(string $sql): \Closure => static fn(): mixed => $transaction->query($sql, ['x'])->value();
            $stream = static fn(): mixed
                => array_column(iterator_to_array($transaction->stream('SELECT $1::text AS a', ['x'])), 'a')[0];
            // A statement that must not be sent twice waits for all that are ahead, and statements behind it wait too.
            $wait = static fn(): mixed => $transaction->execute('NOTIFY nothing') + 1;
            $do = static fn(): mixed => $transaction->execute('SET LOCAL search_path = public') + 1;
            $futures = [];
            for ($i = 0; $i < 5; ++$i) {
                foreach ([
                    $ask('SELECT $1::text AS a'),
                    $wait,
                    $ask('SELECT $1::text AS b'),
                    $ask('SELECT $1::text AS c'),
                    $do,
                    $stream,
                    $ask('SELECT $1::text AS a'),
                ] as $task) {
                    $futures[] = async($task);
                }
            }
            foreach (Future\await($futures) as $result) {
                self::assertContains($result, ['x', 1]);
            }
        });
    }
}
