<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;

use function Amp\Future\await;

/**
 * Tests that a change of a column's type reaches the sessions that have prepared statements with the old type.
 *
 * @phpstan-require-extends PoolContract
 */
trait FollowsSchemaChanges
{
    private const TO_INSTANT = "ALTER TABLE %s ALTER at TYPE timestamptz USING at AT TIME ZONE 'UTC'";

    /** @return iterable<string, array{\Closure(PooledConnection, string): mixed}> */
    public static function waysToChange(): iterable
    {
        yield 'a statement' => [static fn(PooledConnection $one, string $sql) => $one->execute($sql)];
        yield 'a script' => [static fn(PooledConnection $one, string $sql) => $one->executeScript("SELECT 1; {$sql}")];
        yield 'a block' => [
            static fn(PooledConnection $one, string $sql) => $one->execute("DO \$\$ BEGIN {$sql}; END \$\$"),
        ];
        yield 'a transaction' => [
            static fn(PooledConnection $one, string $sql) => $one->transaction(
                static fn(Transaction $transaction): int => $transaction->execute($sql),
            ),
        ];
        yield 'a script in a transaction' => [
            static fn(PooledConnection $one, string $sql) => $one->transaction(
                static fn(Transaction $transaction) => $transaction->executeScript($sql),
            ),
        ];
        yield 'statements of a transaction' => [
            static fn(PooledConnection $one, string $sql) => array_map($one->execute(...), ['BEGIN', $sql, 'COMMIT']),
        ];
        yield 'a statement that has failed before' => [
            static function (PooledConnection $one, string $sql): void {
                $one->execute('SET default_transaction_read_only = on');
                self::thrown(QueryException::class, static fn(): int => $one->execute($sql));
                $one->execute('SET default_transaction_read_only = off');
                $one->execute($sql);
            },
        ];
        yield 'a block that fails after its COMMIT' => [
            static fn(PooledConnection $one, string $sql) => self::thrown(
                QueryException::class,
                static fn(): int => $one->execute("DO \$\$ BEGIN {$sql}; COMMIT; RAISE 'refused'; END \$\$"),
            ),
        ];
        yield 'a stream' => [
            static fn(PooledConnection $one, string $sql) => iterator_to_array($one->stream($sql)),
        ];
    }

    /** @param \Closure(PooledConnection, string): mixed $change */
    #[DataProvider('waysToChange')]
    public function testAChangeOfATypeByOneSessionReachesAllSessionsOfThePool(\Closure $change): void
    {
        $pool = $this->pool(2);
        $table = self::table('at timestamp');
        $insert = "INSERT INTO {$table} VALUES (\$1)";
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        $sessions = [$pool->acquire(), $pool->acquire()];
        foreach ([1, 2] as $_) {
            array_map(static fn(PooledConnection $one): int => $one->execute($insert, [$at]), $sessions);
        }
        array_map(static fn(PooledConnection $one): int => $one->execute('COMMIT'), $sessions); // stays prepared
        Observer::ask("TRUNCATE {$table}");
        $change($sessions[0], \sprintf(self::TO_INSTANT, $table));
        foreach ([...$sessions, ...$sessions] as $session) {
            $session->execute($insert, [$at]);
        }

        self::assertSame(
            [['count' => '4', 'same' => 't']],
            Observer::ask("SELECT count(*), bool_and(at = '2026-03-01 07:00:00+00') AS same FROM {$table}"),
        );
    }

    #[TestWith(['%s'], 'a statement')]
    #[TestWith(['SELECT 1; %s'], 'a script')]
    public function testAStatementThatWaitsForTheEndOfAnAlterHasTheNewTypes(string $script): void
    {
        $pool = $this->pool(2);
        $table = self::table('at timestamp');
        $insert = "INSERT INTO {$table} VALUES (\$1)";
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        $other = $pool->acquire();
        $other->execute($insert, [$at]);
        Observer::ask("TRUNCATE {$table}");
        $waiting = $pool->transaction(static function (Transaction $transaction) use (
            $script,
            $table,
            $other,
            $insert,
            $at,
        ): Future {
            $sql = \sprintf($script, \sprintf(self::TO_INSTANT, $table));
            $script === '%s' ? $transaction->execute($sql) : $transaction->executeScript($sql);
            $waiting = Async::run(static fn(): int => $other->execute($insert, [$at]));
            $lock = "SELECT FROM pg_locks WHERE pid = {$other->backendPid()} AND NOT granted";
            Eventually::holds(static fn(): bool => \count(Observer::ask($lock)) === 1, 'the server delays it');

            return $waiting;
        });
        $waiting->await();

        self::assertSame(
            [['same' => 't']],
            Observer::ask("SELECT at = '2026-03-01 07:00:00+00' AS same FROM {$table}"),
        );
    }

    public function testAChangeOfAScriptThatStillRunsReachesAllSessionsOfThePool(): void
    {
        $pool = $this->pool(3);
        $table = self::table('at timestamp');
        $insert = "INSERT INTO {$table} VALUES (\$1)";
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        [$gate, $one, $other] = [$pool->acquire(), $pool->acquire(), $pool->acquire()];
        $first = random_int(1, 1_000_000) * 2;
        $awaitsGate = static fn(int $gate): bool => \count(Observer::ask(
            "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {$gate} AND NOT granted",
        )) === 1;
        $gate->query('SELECT pg_advisory_lock($1), pg_advisory_lock($1 + 1)', [$first]);
        $script = "SELECT pg_advisory_lock({$first}); BEGIN; " . \sprintf(self::TO_INSTANT, $table)
            . '; COMMIT; SELECT pg_advisory_lock(' . ($first + 1) . ')';
        $running = Async::run(static fn() => $one->executeScript($script));
        Eventually::holds(static fn(): bool => $awaitsGate($first), 'the script runs');
        $other->execute($insert, [$at]);
        Observer::ask("TRUNCATE {$table}");
        $gate->query('SELECT pg_advisory_unlock($1)', [$first]);
        Eventually::holds(static fn(): bool => $awaitsGate($first + 1), 'the type has changed');
        $other->execute($insert, [$at]);
        $gate->query('SELECT pg_advisory_unlock($1)', [$first + 1]);
        $running->await();

        self::assertSame(
            [['same' => 't']],
            Observer::ask("SELECT at = '2026-03-01 07:00:00+00' AS same FROM {$table}"),
        );
        $prepared = 'SELECT count(*)::int FROM pg_prepared_statements';
        $other->query($prepared);
        self::assertSame(1, $other->query($prepared)->value(), 'statements stay prepared again');
    }

    public function testAChangeOfACancelledScriptReachesAllSessionsOfThePool(): void
    {
        $pool = $this->pool(2);
        $table = self::table('at timestamp');
        $insert = "INSERT INTO {$table} VALUES (\$1)";
        $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
        $other = $pool->acquire();
        $other->execute($insert, [$at]);
        Observer::ask("TRUNCATE {$table}");
        $one = $pool->acquire();
        $cancellation = new DeferredCancellation();
        $script = 'BEGIN; ' . \sprintf(self::TO_INSTANT, $table) . '; COMMIT; SELECT pg_sleep(100)';
        $running = Async::run(static fn() => $one->executeScript($script, $cancellation->getCancellation()));
        $type = "SELECT FROM pg_attribute WHERE attrelid = '{$table}'::regclass AND atttypid = 'timestamptz'::regtype";
        Eventually::holds(static fn(): bool => \count(Observer::ask($type)) === 1, 'the type has changed');
        $cancellation->cancel();
        self::thrown(CancelledException::class, $running->await(...));
        $other->execute($insert, [$at]);

        self::assertSame(
            [['same' => 't']],
            Observer::ask("SELECT at = '2026-03-01 07:00:00+00' AS same FROM {$table}"),
        );
    }

    /** @return iterable<string, array{string, string, mixed, mixed}> old type, new type, old value, new value */
    public static function newTypes(): iterable
    {
        yield 'a larger integer' => ['int', 'bigint', 1, 5_000_000_000];
        yield 'text' => ['int', 'text', 1, 'one'];
        yield 'a date' => ['text', "date USING '2026-01-01'", 'x', '2026-03-01'];
    }

    #[DataProvider('newTypes')]
    public function testAChangeByAnotherProgramIsNoticedByAValueThatDoesNotFit(
        string $old,
        string $new,
        mixed $before,
        mixed $after,
    ): void {
        $pool = $this->pool(1);
        $table = self::table("a {$old}");
        $insert = "INSERT INTO {$table} VALUES (\$1)";
        foreach ([1, 2] as $_) {
            $pool->execute($insert, [$before]);
        }
        Observer::ask("ALTER TABLE {$table} ALTER a TYPE {$new}");
        $inserts = [];
        foreach (range(1, 5) as $_) {
            $inserts[] = Async::run(static fn(): int => $pool->execute($insert, [$after]));
        }

        self::assertSame([1, 1, 1, 1, 1], await($inserts));
        self::assertSame([['count' => '7']], Observer::ask("SELECT count(*) FROM {$table}"));
    }

    public function testAChangeByAnotherProgramIsNoticedByAnOperatorThatDoesNotFit(): void
    {
        $pool = $this->pool(1);
        $table = self::table('a int');
        $count = "SELECT count(*) FROM {$table} WHERE a = \$1";
        foreach ([1, 2] as $_) {
            $pool->query($count, [1]);
        }
        Observer::ask("ALTER TABLE {$table} ALTER a TYPE text");
        Observer::ask("INSERT INTO {$table} VALUES ('1')");
        $counts = [];
        foreach (range(1, 5) as $_) {
            $counts[] = Async::run(static fn(): mixed => $pool->query($count, ['1'])->value());
        }

        self::assertSame([1, 1, 1, 1, 1], await($counts));
    }

    public function testAChangeByAnotherProgramIsNoticedByAValueThatAnOldDomainRefuses(): void
    {
        $pool = $this->pool(1);
        $table = self::table('a int');
        Observer::ask("CREATE DOMAIN {$table}_positive AS int NOT NULL CHECK (value > 0)");
        Observer::ask("ALTER TABLE {$table} ALTER a TYPE {$table}_positive");
        $insert = "INSERT INTO {$table} VALUES (\$1)";
        foreach ([-1, null] as $refused) {
            $pool->execute($insert, [1]);
            $pool->execute($insert, [1]);
            Observer::ask("ALTER TABLE {$table} ALTER a TYPE int");
            self::assertSame(1, $pool->execute($insert, [$refused]));
            Observer::ask("DELETE FROM {$table}");
            Observer::ask("ALTER TABLE {$table} ALTER a TYPE {$table}_positive");
            self::assertSame(1, $pool->execute($insert, [1]));
        }
    }

    public function testAnErrorNamesADroppedTableAndNotAValueThatDidNotFit(): void
    {
        $pool = $this->pool(1);
        $table = self::table('a int');
        $count = "SELECT count(*) FROM {$table} WHERE a = \$1";
        foreach ([1, 2] as $_) {
            $pool->query($count, [1]);
        }
        Observer::ask("DROP TABLE {$table}");
        $failure = self::thrown(QueryException::class, static fn() => $pool->query($count, ['one']));

        self::assertSame('42P01', $failure->sqlState);
    }

    /** @return iterable<string, array{int|null, string}> statementCache, end of the statement */
    public static function unkeptStatements(): iterable
    {
        yield 'a connection without prepared statements' => [0, ''];
        yield 'a long statement' => [null, str_repeat(' ', SqlText::MAX_CACHED_BYTES)];
    }

    #[DataProvider('unkeptStatements')]
    public function testAChangeBetweenTheTwoRoundTripsOfAStatementChangesItsResult(?int $cache, string $end): void
    {
        $connection = $this->connect(statementCache: $cache);
        $enum = 'e_' . bin2hex(random_bytes(6));
        Observer::ask("CREATE TYPE {$enum} AS ENUM ('1234')");
        foreach ([
            ['int', 'text', '1234'],
            ['int', 'bigint', 1234],
            ['text', 'bytea USING a::bytea', '1234'],
            ['int', "{$enum}[] USING '{1234}'", ['1234']],
        ] as [$old, $new, $value]) {
            $table = self::table("a {$old}, s text");
            Observer::ask("INSERT INTO {$table} VALUES ('1234', 'x')");
            $change = static fn(): array => Observer::ask("ALTER TABLE {$table} ALTER a TYPE {$new}");
            self::assertSame(
                ['a' => $value, 's' => 'x'],
                $connection->query("SELECT * FROM {$table} WHERE s = \$1{$end}", [self::onEncode('x', $change)])->one(),
                $new,
            );
        }
    }

    #[DataProvider('unkeptStatements')]
    public function testAChangeBetweenTheTwoRoundTripsOfAStreamChangesItsResult(?int $cache, string $end): void
    {
        $function = 'f_' . bin2hex(random_bytes(6));
        $create = "CREATE FUNCTION {$function}(text) RETURNS SETOF %s LANGUAGE sql AS "
            . "'SELECT i::%1\$s FROM generate_series(1, 200) AS i'";
        Observer::ask(\sprintf($create, 'int'));
        $table = self::table('a int');
        $values = $this->connect(statementCache: $cache)->transaction(
            static function (Transaction $transaction) use ($function, $create, $table, $end): array {
                $change = static function () use ($transaction, $function, $create, $table): void {
                    Observer::ask("DROP FUNCTION {$function}; " . \sprintf($create, 'text'));
                    $transaction->query("SELECT FROM {$table}"); // the session learns of the change with its next lock
                };
                $sql = "SELECT {$function}(\$1) AS a{$end}";

                return array_column(iterator_to_array($transaction->stream($sql, [self::onEncode('x', $change)])), 'a');
            },
        );

        self::assertSame(array_map(strval(...), range(1, 200)), $values);
    }

    #[DataProvider('unkeptStatements')]
    public function testAChangeBetweenTheTwoRoundTripsOfAStatementChangesNoValue(?int $cache, string $end): void
    {
        $connection = $this->connect(statementCache: $cache);
        $table = self::table('s text, a int[]');
        $change = static fn(): array => Observer::ask("ALTER TABLE {$table} ALTER a TYPE jsonb USING to_jsonb(a)");
        $insert = "INSERT INTO {$table} VALUES (\$1, \$2){$end}";

        self::assertSame(1, $connection->execute($insert, [self::onEncode('x', $change), []]));
        self::assertSame([['s' => 'x', 'a' => '[]']], Observer::ask("SELECT * FROM {$table}")); // int[] has {} instead
    }

    public function testATransactionWithAnOldTypeFailsOnce(): void
    {
        $pool = $this->pool(1);
        $table = self::table('a int');
        $insert = static fn(int $value): int => $pool->transaction(
            static fn(Transaction $transaction): int
                => $transaction->execute("INSERT INTO {$table} VALUES (\$1)", [$value]),
        );
        $insert(1);
        Observer::ask("ALTER TABLE {$table} ALTER a TYPE bigint");

        self::assertSame(
            '22003',
            self::thrown(QueryException::class, static fn() => $insert(5_000_000_000))->sqlState,
        );
        self::assertSame(1, $insert(5_000_000_000));
    }

    public function testAValueThatFitsNoTypeFailsAndIsNotExecuted(): void
    {
        $pool = $this->pool(1);
        $table = self::table('a int');
        $insert = static fn(int $value): int => $pool->execute("INSERT INTO {$table} VALUES (\$1)", [$value]);
        $insert(1);
        foreach ([1, 2, 3] as $_) {
            self::assertSame(
                '22003',
                self::thrown(QueryException::class, static fn() => $insert(5_000_000_000))->sqlState,
            );
        }

        self::assertSame(1, $insert(2));
        self::assertSame([['count' => '2']], Observer::ask("SELECT count(*) FROM {$table}"));
    }

    /**
     * Returns a parameter that calls a function when it is encoded for the first time.
     *
     * @param \Closure(): mixed $then
     */
    private static function onEncode(string $value, \Closure $then): \Stringable
    {
        return new class ($value, $then) implements \Stringable {
            /** @param (\Closure(): mixed)|null $then */
            public function __construct(private readonly string $value, private ?\Closure $then) {}

            public function __toString(): string
            {
                [$then, $this->then] = [$this->then, null];
                $then === null ? null : $then();

                return $this->value;
            }
        };
    }
}
