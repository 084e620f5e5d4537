<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\Future;
use Amp\NullCancellation;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Eventually;

use function Amp\async;

/**
 * Tests prepared statements whose text names other tables after a change of search_path, role or temporary tables.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait KeepsMeaning
{
    private const INSERT = 'INSERT INTO events VALUES ($1)';

    private string $first = '';

    private string $second = '';

    /** Creates two schemas that each have a table of the same name, whose column has different types. */
    #[Before]
    protected function createSchemas(): void
    {
        $this->first = 'first_' . bin2hex(random_bytes(6));
        $this->second = 'second_' . bin2hex(random_bytes(6));
        Observer::ask("CREATE SCHEMA {$this->first}");
        Observer::ask("CREATE SCHEMA {$this->second}");
        Observer::ask("CREATE TABLE {$this->first}.events (at timestamp)");
        Observer::ask("CREATE TABLE {$this->second}.events (at timestamptz)");
    }

    #[After]
    protected function dropSchemas(): void
    {
        Observer::ask("DROP SCHEMA {$this->first}, {$this->second} CASCADE");
    }

    public function testAStatementThatWaitsHasTheTypesOfItsTurn(): void
    {
        $connection = $this->connect();
        $connection->transaction(function (Transaction $transaction): void {
            $transaction->execute("SET LOCAL search_path = {$this->first}");
            $insert = static fn(): int
                => $transaction->execute(self::INSERT, [new \DateTimeImmutable('2026-01-31 12:00:00+05:00')]);
            $insert();
            Future\await(
                [
                    async($insert),
                    async(fn() => $transaction->execute("SET LOCAL search_path = {$this->second}")),
                    async($insert),
                ],
            );
        });
        $stored = "SELECT (SELECT count(*) FROM {$this->first}.events) AS first, "
            . "(SELECT min(at) = '2026-01-31 07:00:00+00' FROM {$this->second}.events) AS second";
        self::assertSame([['first' => '2', 'second' => 't']], Observer::ask($stored));
    }

    public function testAStatementThatIsSentBehindAnAlterHasTheNewTypes(): void
    {
        $connection = $this->connect(settings: ['search_path' => $this->first]);
        $insert = static fn(): int
            => $connection->execute(self::INSERT, [new \DateTimeImmutable('2026-01-31 12:00:00+05:00')]);
        $insert();
        $alter = "ALTER TABLE events ALTER at TYPE timestamptz USING at AT TIME ZONE 'UTC'";
        Future\await([async(static fn(): int => $connection->execute($alter)), async($insert), async($insert)]);

        self::assertSame(
            [['count' => '2']],
            Observer::ask("SELECT count(*) FROM {$this->first}.events WHERE at = '2026-01-31 07:00:00+00'"),
        );
    }

    public function testAStatementAfterASelectIntoUsesTheNewTable(): void
    {
        $connection = $this->connect(settings: ['search_path' => "{$this->first}, {$this->second}"]);
        Observer::ask("DROP TABLE {$this->first}.events");
        $insert = static fn(): int => $connection->execute(self::INSERT, ['2026-01-31 12:00:00']);
        $gate = $this->connect();
        $key = random_int(1, 1_000_000_000);
        $sql = "SELECT now() AS at INTO events FROM pg_advisory_lock({$key})";
        $create = static fn(): int => $connection->execute($sql);
        $connection->execute('SET default_transaction_read_only = on');
        self::thrown(QueryException::class, $create);
        $connection->execute('SET default_transaction_read_only = off');
        $insert();
        $gate->query('SELECT pg_advisory_lock($1)', [$key]);
        $creating = async($create);
        $waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {$key} AND NOT granted";
        Eventually::holds(static fn(): bool => \count(Observer::ask($waits)) === 1, 'the table is being created');
        $inserting = async($insert);
        $gate->query('SELECT pg_advisory_unlock($1)', [$key]);
        Future\await([$creating, $inserting]);
        $insert();
        $count = "SELECT (SELECT count(*) FROM {$this->first}.events) AS first, "
            . "(SELECT count(*) FROM {$this->second}.events) AS second";

        self::assertSame([['first' => '3', 'second' => '1']], Observer::ask($count));
    }

    public function testAStatementWithTheWordsOfASelectIntoStaysPrepared(): void
    {
        $connection = $this->connect();
        foreach ([1, 2, 3] as $_) {
            $connection->query("SELECT 'put into' AS a");
            $connection->query("WITH one AS (SELECT 1 AS a) SELECT a FROM one WHERE 'x' <> 'a into b'");
        }
        $prepared = 'SELECT count(*)::int FROM pg_prepared_statements';

        self::assertSame(3, $connection->query($prepared)->value());
    }

    #[TestWith([0, false], 'a statement that does not stay prepared')]
    #[TestWith([null, false], 'a new statement')]
    #[TestWith([null, true], 'a prepared statement')]
    public function testAStatementHasTheTypesAfterTheEncodingOfItsValues(?int $cache, bool $isPrepared): void
    {
        $connection = $this->connect(statementCache: $cache);
        $connection->transaction(function (Transaction $transaction) use ($isPrepared): void {
            foreach ([$transaction->execute(...), $transaction->stream(...)] as $run) {
                $transaction->execute("SET LOCAL search_path = {$this->first}");
                if ($isPrepared) {
                    $transaction->execute(self::INSERT . ' RETURNING at', ['2026-01-31 12:00:00']);
                }
                $done = $run(self::INSERT . ' RETURNING at', [$this->valueThatSwitchesToSecond($transaction)]);
                self::assertSame(1, \is_int($done) ? $done : iterator_count($done));
            }
        });

        $stored = "SELECT count(*), bool_and(at = '2026-01-31 07:00:00+00') AS same FROM {$this->second}.events";
        self::assertSame([['count' => '2', 'same' => 't']], Observer::ask($stored));
    }

    #[TestWith([1])]
    #[TestWith([2])]
    public function testTheEncodingOfAValueMayFillTheCacheOfStatements(int $cache): void
    {
        $connection = $this->connect(statementCache: $cache);
        $read = $connection->transaction(static function (Transaction $transaction): array {
            $value = new class ($transaction) implements \Stringable {
                public function __construct(private readonly Transaction $transaction) {}

                public function __toString(): string
                {
                    foreach (['SELECT 1', 'SELECT 2', 'SELECT 3'] as $sql) {
                        $this->transaction->query($sql);
                    }

                    return 'text';
                }
            };
            $read = [];
            foreach ([1, 2] as $_) {
                $read[] = $transaction->query('SELECT $1::text AS a', [$value])->value();
                $read[] = $transaction->query('SELECT $1::text AS a', [$value], new NullCancellation())->value();
                $read = [...$read, ...array_column(iterator_to_array($transaction->stream('SELECT $1::text AS a', [
                    $value,
                ])), 'a')];
            }

            return $read;
        });

        self::assertSame(array_fill(0, 6, 'text'), $read);
    }

    /** @return iterable<string, array{string, list<string>}> statements that make the second schema the current one */
    public static function waysToTheSecond(): iterable
    {
        yield 'SET' => ['SET search_path = %s', []];
        yield 'SET SESSION' => ['set session search_path to %s', []];
        yield 'SET SCHEMA' => ["SET SCHEMA '%s'", []];
        yield 'behind a comment' => ["/* other */ SET/**/search_path = '%s'", []];
        yield 'a quoted name' => ['SET "search_path" = %s', []];
        yield 'set_config' => ["SELECT set_config('search_path', '%s', false)", []];
        yield 'set_config with parameters' => ['SELECT set_config($1, $2, false)', ['search_path', '%s']];
        yield 'a block' => ['DO $$ BEGIN SET search_path = %s; END $$', []];
        yield 'a temporary table' => ['CREATE TEMPORARY TABLE events (at timestamptz)', []];
    }

    /** @param list<string> $parameters */
    #[DataProvider('waysToTheSecond')]
    public function testAStatementHasTheTypesOfTheTableThatItNames(string $sql, array $parameters): void
    {
        $connection = $this->connect(settings: ['TimeZone' => 'UTC', 'search_path' => $this->first]);
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        $rows = 'SELECT * FROM events';
        foreach ([1, 2, 3] as $_) {
            $connection->execute(self::INSERT, [$at]);
            self::assertSame(
                ['2026-03-01 12:00:00+00:00'],
                array_unique(self::times($connection, $rows)),
                'a timestamp is what the clock shows',
            );
        }
        $connection->query(str_replace('%s', $this->second, $sql), str_replace('%s', $this->second, $parameters));
        foreach ([1, 2, 3] as $_) {
            $connection->execute(self::INSERT, [$at]);
            self::assertSame(
                ['2026-03-01 07:00:00+00:00'],
                array_unique(self::times($connection, $rows)),
                'a timestamptz is an instant',
            );
        }
    }

    public function testAStatementNamesATableAndAFunctionThatAreCreatedLater(): void
    {
        $connection = $this->connect(settings: ['search_path' => "{$this->first}, {$this->second}"]);
        Observer::ask("DROP TABLE {$this->first}.events");
        $function = 'RETURNS text LANGUAGE sql AS $$SELECT';
        $connection->execute("CREATE FUNCTION {$this->first}.f(float8) {$function} 'old'$$");
        $connection->execute(self::INSERT, ['2026-03-01']);
        self::assertSame('old', $connection->query('SELECT f(1)')->value());
        $connection->execute("CREATE TABLE {$this->first}.events (at timestamp)");
        $connection->execute("CREATE FUNCTION {$this->first}.f(int) {$function} 'new'$$");
        $connection->execute(self::INSERT, ['2026-03-01']);

        self::assertSame('new', $connection->query('SELECT f(1)')->value());
        self::assertSame(1, $connection->query("SELECT count(*) FROM {$this->first}.events")->value());
    }

    public function testAStatementNamesATableThatSelectIntoCreates(): void
    {
        $connection = $this->connect(
            settings: ['TimeZone' => 'UTC', 'search_path' => "{$this->first}, {$this->second}"],
        );
        Observer::ask("DROP TABLE {$this->first}.events");
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        foreach ([['', []], [' OFFSET length($1::text)', ['a']]] as [$end, $parameters]) {
            $connection->execute(self::INSERT, [$at]);
            foreach (['ROLLBACK', 'COMMIT'] as $completion) {
                $connection->query('BEGIN');
                $sql = "SELECT timestamp '2026-01-01' AS at INTO {$this->first}.events LIMIT 0{$end}";
                $connection->execute($sql, $parameters);
                $connection->execute(self::INSERT, [$at]);
                self::assertSame(
                    ['2026-03-01 12:00:00+00:00'],
                    self::times($connection, "SELECT * FROM {$this->first}.events"),
                );
                $connection->query($completion);
                $connection->execute(self::INSERT, [$at]);
            }
            $connection->execute("DROP TABLE {$this->first}.events");
        }

        self::assertSame(
            array_fill(0, 4, '2026-03-01 07:00:00+00:00'),
            self::times($connection, "SELECT * FROM {$this->second}.events"),
        );
    }

    public function testAStatementHasTheTypesOfThePermanentTableAfterTheTemporaryOne(): void
    {
        $connection = $this->connect(settings: ['TimeZone' => 'UTC', 'search_path' => $this->second]);
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        $connection->execute('CREATE TEMPORARY TABLE events (at timestamp)');
        $connection->execute(self::INSERT, [$at]);
        $connection->transaction(static function (Transaction $transaction) use ($at): void {
            $transaction->execute('DROP TABLE events');
            $transaction->execute(self::INSERT, [$at]);
        });
        $connection->execute(self::INSERT, [$at]);

        self::assertSame(
            ['2026-03-01 07:00:00+00:00', '2026-03-01 07:00:00+00:00'],
            self::times($connection, 'SELECT * FROM events'),
        );
    }

    /** @return iterable<string, array{string, string}> a setting, and a query that returns true only with it */
    public static function settingsOfValues(): iterable
    {
        yield 'TIME ZONE' => ["TIME ZONE 'Asia/Tokyo'", "SELECT '2026-01-01'::timestamptz = '2025-12-31 15:00+00'"];
        yield 'TimeZone' => ["TimeZone = 'Asia/Tokyo'", "SELECT '2026-01-01'::timestamptz = '2025-12-31 15:00+00'"];
        yield 'DateStyle' => ["DateStyle = 'ISO, DMY'", "SELECT '01/02/2026'::date = '2026-02-01'"];
        yield 'IntervalStyle' => ['IntervalStyle = sql_standard', "SELECT interval '-1 2:00' = interval '-26:00'"];
        yield 'array_nulls' => ['array_nulls = off', "SELECT ('{NULL}'::text[])[1] IS NOT NULL"];
    }

    #[DataProvider('settingsOfValues')]
    public function testAValueInTheTextOfAStatementIsReadWithTheSettingsOfTheSession(string $setting, string $sql): void
    {
        $connection = $this->connect(settings: ['TimeZone' => 'UTC']);
        $ask = static fn(PostgresLink $link): array => [
            $link->query($sql)->value(),
            iterator_to_array($link->stream("{$sql} AS a"))[0]['a'],
        ];
        foreach ([1, 2] as $_) {
            self::assertSame([false, false], $ask($connection));
            $within = $connection->transaction(static function (Transaction $transaction) use ($setting, $ask): array {
                $transaction->query("SET LOCAL {$setting}");

                return $ask($transaction);
            });
            self::assertSame([true, true], $within);
            self::assertSame([false, false], $ask($connection));
            $connection->query("SET {$setting}");
            self::assertSame([true, true], $ask($connection));
            $connection->query('RESET ALL');
        }
    }

    public function testATimeInTheTextOfAStatementIsReadInTheTimeZoneThatAFunctionHasSet(): void
    {
        Observer::ask("CREATE FUNCTION {$this->first}.zone(text) RETURNS void LANGUAGE plpgsql "
            . "AS 'BEGIN PERFORM set_config(''TimeZone'', $1, false); END'");
        $connection = $this->connect();
        foreach ([['UTC', 12], ['Asia/Tokyo', 3], ['UTC', 12]] as [$zone, $hour]) {
            $connection->query("SELECT {$this->first}.zone(\$1)", [$zone]);
            foreach ([1, 2] as $_) {
                $sql = "SELECT date_part('hour', timestamptz '2026-01-31 12:00' AT TIME ZONE 'UTC')::int";
                self::assertSame($hour, $connection->query($sql)->value(), $zone);
            }
        }
    }

    public function testTransactionsOfOneTenantAfterAnotherHaveTheirTables(): void
    {
        $connection = $this->connect();
        Observer::ask("ALTER TABLE {$this->second}.events ADD tenant text DEFAULT 'second'");
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        foreach ([1, 2, 3] as $count) {
            foreach ([[$this->first, '12', 1], [$this->second, '07', 2]] as [$schema, $hour, $columns]) {
                foreach ([
                    "SET LOCAL search_path = {$schema}",
                    "SELECT set_config('search_path', '{$schema}', true)",
                    "SET LOCAL SCHEMA '{$schema}'",
                ] as $way) {
                    [$row, $streamed] = $connection->transaction(
                        static function (Transaction $transaction) use ($way, $at): array {
                            $transaction->query($way);
                            $transaction->execute('DELETE FROM events');
                            $transaction->execute(self::INSERT . ', ($1)', [$at]);

                            return [
                                $transaction->query('SELECT * FROM events LIMIT 1')->one(),
                                iterator_to_array($transaction->stream('SELECT * FROM events')),
                            ];
                        },
                    );
                    self::assertIsArray($row);
                    self::assertCount($columns, $row, "{$way}, {$count}");
                    self::assertSame(
                        $hour,
                        $row['at'] instanceof \DateTimeImmutable ? $row['at']->format('H') : $row['at'],
                        $way,
                    );
                    self::assertCount(2, $streamed);
                }
            }
        }
    }

    /**
     * @return iterable<string, array{list<string>, list<string>}> statements that begin a part of a transaction, and
     *     statements that end it
     */
    public static function parts(): iterable
    {
        yield 'ROLLBACK' => [['BEGIN'], ['ROLLBACK']];
        yield 'COMMIT' => [['BEGIN'], ['COMMIT']];
        yield 'ABORT' => [['START TRANSACTION'], ['abort']];
        yield 'a savepoint' => [['BEGIN', 'SAVEPOINT a'], ['ROLLBACK TO a']];
        yield 'scripts' => [['BEGIN', 'SAVEPOINT a'], ['-- over', 'ROLLBACK']];
    }

    /**
     * @param list<string> $begin
     * @param list<string> $end
     */
    #[DataProvider('parts')]
    public function testWhatATransactionChangedIsOverWithIt(array $begin, array $end): void
    {
        $connection = $this->connect(settings: ['TimeZone' => 'UTC', 'search_path' => $this->first]);
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        foreach ([1, 2] as $_) {
            foreach ($begin as $sql) {
                $connection->query($sql);
            }
            $connection->query("SET LOCAL search_path = {$this->second}");
            self::assertSame(1, $connection->execute(self::INSERT, [$at]));
            foreach ($end as $sql) {
                $connection->query($sql);
            }
            self::assertSame(1, $connection->execute(self::INSERT, [$at]));
            self::assertSame(
                ['2026-03-01 12:00:00+00:00'],
                array_unique(self::times($connection, 'SELECT * FROM events')),
            );
            $connection->query('ROLLBACK');
        }
    }

    public function testAStatementThatWasPreparedInATransactionIsForgottenWhenThatIsRolledBack(): void
    {
        $connection = $this->connect(settings: ['TimeZone' => 'UTC', 'search_path' => $this->first]);
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        foreach (['ROLLBACK', 'COMMIT'] as $end) {
            $connection->query('BEGIN');
            $connection->execute('ALTER TABLE events ALTER at TYPE timestamptz');
            $connection->execute(self::INSERT, [$at]);
            if ($end === 'COMMIT') {
                try {
                    $connection->query('SELECT 1 / 0');
                } catch (\Throwable) {
                    // The server now turns a commit into a rollback.
                }
            }
            $connection->query($end);
            $connection->execute(self::INSERT, [$at]);
            self::assertSame(
                ['2026-03-01 12:00:00+00:00'],
                array_unique(self::times($connection, 'SELECT * FROM events')),
                $end,
            );
        }
    }

    public function testAScriptMayChangeWhatStatementsMean(): void
    {
        $connection = $this->connect(settings: ['TimeZone' => 'UTC', 'search_path' => $this->first]);
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        $connection->execute(self::INSERT, [$at]);
        $connection->executeScript("SELECT 1; SET search_path = {$this->second}");
        $connection->execute(self::INSERT, [$at]);

        self::assertSame(['2026-03-01 07:00:00+00:00'], self::times($connection, 'SELECT * FROM events'));
    }

    public function testAStreamGoesOnWhenStatementsMeanSomethingElse(): void
    {
        $connection = $this->connect(settings: ['TimeZone' => 'UTC', 'search_path' => $this->first]);
        $connection->execute(
            "INSERT INTO events SELECT timestamp '2026-03-01' + i * interval '1 s' FROM generate_series(1, 2000) AS i",
        );
        $count = $connection->transaction(function (Transaction $transaction): int {
            $count = 0;
            foreach ($transaction->stream('SELECT * FROM events') as $_) {
                if (++$count === 10) {
                    $transaction->query("SET LOCAL search_path = {$this->second}");
                    self::assertSame([], self::times($transaction, 'SELECT * FROM events'));
                }
            }

            return $count;
        });

        self::assertSame(2_000, $count);
    }

    public function testStatementsStayPreparedWhereNothingOfTheKindHappens(): void
    {
        $connection = $this->connect();
        foreach ([1, 2] as $_) {
            $connection->query('SELECT 42 AS kept');
            $connection->transaction(static function (Transaction $transaction): void {
                $transaction->query("SET LOCAL statement_timeout = '10s'");
                $transaction->query('SET local.tenant = 5');
                $transaction->query("SELECT set_config('app.tenant', \$1, true)", ['x']);
                $transaction->query('SELECT 42 AS kept');
            });
        }
        $connection->query('BEGIN');
        $connection->query('SELECT 42 AS kept');
        $connection->query('ROLLBACK');

        $kept = "SELECT name FROM pg_prepared_statements WHERE statement = 'SELECT 42 AS kept'";
        $name = $connection->query($kept)->value();
        $connection->query('SELECT 42 AS kept');
        self::assertSame($name, $connection->query($kept)->value());
    }

    public function testTheServerForgetsWhatIsForgotten(): void
    {
        $connection = $this->connect();
        for ($i = 0; $i < 20; ++$i) {
            $connection->query('SELECT $1::int AS forgotten', [1]);
            $connection->query('SET search_path = public');
        }
        $connection->query('SELECT 1');

        self::assertLessThanOrEqual(
            1,
            $connection->query(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%forgotten'",
            )->value(),
        );
    }

    private function valueThatSwitchesToSecond(Transaction $transaction): \Stringable
    {
        return new class ($transaction, "SET LOCAL search_path = {$this->second}") implements \Stringable {
            private bool $isChanged = false;

            public function __construct(private readonly Transaction $transaction, private readonly string $change) {}

            public function __toString(): string
            {
                if (!$this->isChanged) {
                    $this->isChanged = true;
                    $this->transaction->execute($this->change);
                    $this->transaction->query('SELECT 1');
                }

                return '2026-01-31 12:00:00+05:00';
            }
        };
    }

    /** @return list<string> times with their offsets */
    private static function times(PostgresLink $link, string $sql): array
    {
        return array_map(
            static fn(mixed $at): string => $at instanceof \DateTimeImmutable ? $at->format('Y-m-d H:i:sP') : '',
            $link->query($sql)->column(),
        );
    }
}
