<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Conformance\Postgres\PoolContract;

/**
 * Tests that a borrower's changes of the session are undone when the connection returns.
 *
 * @phpstan-require-extends PoolContract
 */
trait UndoesChanges
{
    /**
     * @return iterable<string, array{list<string>, string, mixed}> statements, a question, and its answer without these
     *     statements
     */
    public static function changes(): iterable
    {
        yield 'a setting' => [["SET work_mem = '123kB'"], 'SHOW work_mem', '4MB'];
        yield 'a setting by a function' => [["SELECT set_config('work_mem', '123kB', false)"], 'SHOW work_mem', '4MB'];
        yield 'a setting by a view' => [
            ["UPDATE pg_settings SET setting = '123' WHERE name = 'work_mem'"],
            'SHOW work_mem',
            '4MB',
        ];
        yield 'a setting that the pool has made' => [["SET TimeZone = 'Asia/Kolkata'"], 'SHOW TimeZone', 'UTC'];
        yield 'a setting that was reset' => [['RESET ALL'], 'SHOW TimeZone', 'UTC'];
        yield 'what transactions are like' => [
            ['SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'],
            'SHOW transaction_read_only',
            'off',
        ];
        yield 'a role' => [['SET ROLE pg_monitor'], 'SELECT current_user = session_user', true];
        yield 'another user' => [['SET SESSION AUTHORIZATION pg_monitor'], 'SELECT session_user::text', 'postgres'];
        yield 'a temporary table' => [
            ['CREATE TEMPORARY TABLE temporary_one (i int)'],
            "SELECT to_regclass('temporary_one') IS NULL",
            true,
        ];
        yield 'a temporary table by another name' => [
            ['CREATE TABLE pg_temp.temporary_two (i int)'],
            "SELECT to_regclass('pg_temp.temporary_two') IS NULL",
            true,
        ];
        yield 'a table made of a query' => [
            ['SELECT 1 AS i INTO TEMP temporary_three'],
            "SELECT to_regclass('temporary_three') IS NULL",
            true,
        ];
        yield 'an advisory lock' => [
            ['SELECT pg_advisory_lock(4711)'],
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
            0,
        ];
        yield 'an advisory lock that was tried' => [
            ['SELECT pg_try_advisory_lock_shared(4711)'],
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
            0,
        ];
        yield 'a channel' => [['LISTEN something'], 'SELECT count(*) FROM pg_listening_channels()', 0];
        yield 'a cursor' => [
            ['BEGIN', 'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'COMMIT'],
            "SELECT count(*) FROM pg_cursors WHERE name = 'c'",
            0,
        ];
        yield 'a prepared statement' => [
            ['PREPARE mine AS SELECT 1'],
            "SELECT count(*) FROM pg_prepared_statements WHERE name = 'mine'",
            0,
        ];
        yield 'prepared statements that are gone' => [['DEALLOCATE ALL'], 'SELECT 42', 42];
        yield 'all that is discarded' => [['DISCARD ALL'], 'SHOW TimeZone', 'UTC'];
        yield 'a lower case statement behind a comment' => [
            ["-- a comment\n /* another; */ set work_mem = '123kB'"],
            'SHOW work_mem',
            '4MB',
        ];
        foreach (['local', 'transaction', 'constraints'] as $word) {
            yield "a parameter whose name begins with {$word}" => [
                ["SET {$word}.tenant = 'another'"],
                "SELECT coalesce(current_setting('{$word}.tenant', true), '')",
                '',
            ];
        }
        yield 'a statement named transaction' => [
            ['PREPARE transaction (int) AS SELECT $1'],
            "SELECT count(*) FROM pg_prepared_statements WHERE name = 'transaction'",
            0,
        ];
        yield 'a search_path' => [['SET search_path = pg_catalog'], 'SHOW search_path', '"$user", public'];
        yield 'a setting by a block' => [
            ["DO $$ BEGIN PERFORM set_config('work_mem', '123kB', false); END $$"],
            'SHOW work_mem',
            '4MB',
        ];
    }

    /** @param list<string> $statements */
    #[\PHPUnit\Framework\Attributes\DataProvider('changes')]
    public function testChangesOfABorrowerAreUndone(array $statements, string $question, mixed $answer): void
    {
        $pool = $this->pool(1);
        self::assertSame($answer, $pool->query($question)->value(), 'before');
        $connection = $pool->acquire();
        $pid = $connection->backendPid();
        foreach ($statements as $statement) {
            $connection->query($statement);
        }
        $connection->release();

        self::assertSame($answer, $pool->query($question)->value());
        self::assertSame($pid, $pool->query('SELECT pg_backend_pid()')->value(), 'it is the same connection');
        self::assertSame([], $this->warnings());
    }

    /** @param list<string> $statements */
    #[\PHPUnit\Framework\Attributes\DataProvider('changes')]
    public function testChangesBySomeStatementOfThePoolAreUndone(
        array $statements,
        string $question,
        mixed $answer,
    ): void {
        $ways = [
            'a script' => static fn(PostgresLink $pool) => $pool->executeScript(implode('; ', $statements)),
        ];
        if (\count($statements) === 1) {
            $ways['a query'] = static fn(PostgresLink $pool) => $pool->query($statements[0]);
            $ways['a stream'] = static fn(PostgresLink $pool) => iterator_to_array($pool->stream($statements[0]));
            $ways['a transaction'] = static fn(PostgresLink $pool)
                => $pool->transaction(static fn(Transaction $transaction) => $transaction->query($statements[0]));
        }
        $pool = $this->pool(1);
        $pool->query($question);
        foreach ($ways as $way => $do) {
            foreach (['the first time', 'once the statement is known'] as $when) {
                if (str_starts_with($statements[0], 'DISCARD ALL') && $way !== 'a query') {
                    continue; // not possible within a transaction
                }
                $do($pool);
                self::assertSame($answer, $pool->query($question)->value(), "by {$way} {$when}");
            }
        }
    }

    public function testChangesThatNoStatementShowsAreUndone(): void
    {
        $pool = $this->pool(1);
        $function = 'f_' . bin2hex(random_bytes(6));
        $pool->execute(
            "CREATE FUNCTION {$function}() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
                . "PERFORM set_config('work_mem', '123kB', false); RETURN 1; END $$",
        );
        self::assertUsable($pool);
        $connection = $pool->acquire();
        $connection->query("SELECT {$function}()");
        self::assertSame('123kB', $connection->query('SHOW work_mem')->value());
        $connection->release();

        self::assertSame('4MB', $pool->query('SHOW work_mem')->value());
    }

    public function testTheSeedOfABorrowerIsNotThatOfTheNext(): void
    {
        $pool = $this->pool(1);
        $after = [];
        foreach ([1, 2] as $_) {
            $connection = $pool->acquire();
            $connection->query('SELECT setseed(0.5)');
            $connection->release();
            $after[] = $pool->query('SELECT random()')->value();
            $pool->query('SELECT setseed(0.5)');
            $after[] = $pool->query('SELECT random()')->value();
        }

        self::assertCount(4, array_unique($after, \SORT_REGULAR));
    }

    public function testWhatABorrowerPreparedForHisTablesIsNotForThoseOfTheNext(): void
    {
        $table = self::table('at timestamp');
        $schema = 's_' . bin2hex(random_bytes(6));
        Observer::ask("CREATE SCHEMA {$schema}");
        try {
            Observer::ask("CREATE TABLE {$schema}.{$table} (at timestamptz)");
            $at = new \DateTimeImmutable('2026-03-01 12:00:00+05:00');
            $change = "SET search_path = {$schema}";
            foreach ([
                static fn(PooledConnection $connection) => $connection->query($change),
                static fn(PooledConnection $connection) => $connection->executeScript($change),
                static fn(PooledConnection $connection) => $connection->executeScript("SELECT 1; {$change}"),
            ] as $do) {
                $pool = $this->pool(1);
                $connection = $pool->acquire();
                $do($connection);
                $connection->execute("INSERT INTO {$table} VALUES (\$1)", [$at]);
                $connection->release();
                $pool->execute("INSERT INTO {$table} VALUES (\$1)", [$at]);

                self::assertSame('("2026-03-01 12:00:00")', self::committed($table));
                Observer::ask("TRUNCATE {$table}");
            }
        } finally {
            Observer::ask("DROP SCHEMA {$schema} CASCADE");
        }
    }

    public function testATransactionThatWasLeftOpenIsRolledBackWithAWarning(): void
    {
        $pool = $this->pool(1);
        $table = self::table('i int');
        foreach ([
            static function () use ($pool, $table): void {
                $connection = $pool->acquire();
                $connection->query('BEGIN');
                $connection->execute("INSERT INTO {$table} VALUES (1)");
                $connection->release();
            },
            static function () use ($pool, $table): void {
                $connection = $pool->acquire();
                $connection->executeScript("BEGIN; INSERT INTO {$table} VALUES (1)");
                $connection->release();
            },
            static fn() => $pool->executeScript("BEGIN; INSERT INTO {$table} VALUES (1)"),
        ] as $number => $way) {
            $way();
            self::assertUsable($pool);
            self::assertSame(['idle'], array_values($this->backends()));
            self::assertCount($number + 1, $this->warnings());
            self::assertStringContainsString('transaction was left open', $this->warnings()[$number]);
        }
        self::assertSame('', self::committed($table));
        self::assertSame(1, $pool->statistics()['opened_total']);
    }

    public function testATransactionThatHasSentNothingEndsWithTheRelease(): void
    {
        $pool = $this->pool(1);
        $table = self::table('i int');
        $connection = $pool->acquire();
        self::thrown(
            \LogicException::class,
            static fn() => $connection->transaction(static fn() => $connection->release()),
        );
        $pool->execute("INSERT INTO {$table} VALUES (1)");

        self::assertSame('(1)', self::committed($table));
        self::assertSame([1, []], [$pool->statistics()['opened_total'], $this->warnings()]);
    }

    public function testAnOpenStreamIsCommittedByTheRelease(): void
    {
        $pool = $this->pool(1);
        $table = self::table('i int');
        $connection = $pool->acquire();
        $rows = $connection->stream("INSERT INTO {$table} SELECT generate_series(1, 5000) RETURNING i");
        self::assertSame(['i' => 1], $rows->current());
        $connection->release();

        self::assertSame(5000, $pool->query("SELECT count(*)::int FROM {$table}")->value());
        self::assertStringContainsString(
            'The connection was released to its pool',
            self::thrown(\LogicException::class, $rows->next(...))->getMessage(),
        );
        self::assertUsable($pool);
        self::assertSame([1, []], [$pool->statistics()['opened_total'], $this->warnings()]);
    }

    public function testAStatementOfThePoolCanNotBeginATransaction(): void
    {
        $pool = $this->pool(1);
        $table = self::table('i int');
        foreach (['BEGIN', 'start transaction read write', '/* a /* b */ */ begin', "; -- a\nBEGIN"] as $begin) {
            $stream = static fn(string $sql): array => iterator_to_array($pool->stream($sql));
            foreach ([$pool->query(...), $pool->execute(...), $stream] as $call) {
                $refusal = self::thrown(\LogicException::class, static fn() => $call($begin));
                self::assertStringContainsString('Use transaction()', $refusal->getMessage());
            }
        }
        $pool->executeScript("BEGIN; INSERT INTO {$table} VALUES (1); COMMIT");
        $connection = $pool->acquire();
        foreach (['BEGIN', "INSERT INTO {$table} VALUES (2)", 'COMMIT'] as $sql) {
            $connection->execute($sql);
        }
        $connection->release();

        self::assertSame('(1) (2)', self::committed($table));
        self::assertSame([], $this->warnings());
    }

    public function testATransactionThatFailedAndWasLeftIsRolledBack(): void
    {
        $pool = $this->pool(1);
        $connection = $pool->acquire();
        $connection->query('BEGIN');
        self::thrown(QueryException::class, static fn() => $connection->query('SELECT 1 / 0'));
        $connection->release();

        self::assertUsable($pool);
        self::assertCount(1, $this->warnings());
        self::assertSame(1, $pool->statistics()['opened_total']);
    }

    public function testNothingIsSentWhereNothingHasChanged(): void
    {
        $pool = $this->pool(1);
        $pool->query('SELECT 42');
        $pool->query('SELECT 43');
        $pid = (int) array_key_first($this->backends());
        self::assertSame(
            'SELECT 43',
            Observer::ask("SELECT query FROM pg_stat_activity WHERE pid = {$pid}")[0]['query'],
        );
        $pool->transaction(static fn(Transaction $transaction) => $transaction->query('SELECT 44'));
        self::meanwhile();

        self::assertSame('COMMIT', Observer::ask("SELECT query FROM pg_stat_activity WHERE pid = {$pid}")[0]['query']);
    }

    public function testADateInAStatementHasNoTimeZoneOfAnEarlierBorrower(): void
    {
        $pool = $this->pool(1);
        $sql = "SELECT '2026-01-01'::timestamptz = '2025-12-31 15:00+00'";
        $connection = $pool->acquire();
        $connection->execute("SET TIME ZONE 'Asia/Tokyo'");
        self::assertTrue($connection->query($sql)->value());
        $connection->release();

        self::assertFalse($pool->query($sql)->value());
        self::assertSame(1, $pool->statistics()['opened_total']);
    }

    public function testStatementsStayPreparedForTheNextBorrower(): void
    {
        $pool = $this->pool(1);
        foreach ([1, 2, 3] as $_) {
            $connection = $pool->acquire();
            $connection->query('SELECT 42 AS kept');
            $connection->execute("SET work_mem = '123kB'");
            $connection->release();
        }

        self::assertSame(
            1,
            $pool->query("SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT 42 AS kept'")->value(),
        );
    }

    public function testAStatementThatRunsIsAwaitedBeforeTheNextBorrower(): void
    {
        $pool = $this->pool(1);
        $gate = new Gate();
        $connection = $pool->acquire();
        $running = Async::run(static fn(): mixed => $connection->query($gate->statement())->value());
        $gate->awaitStatements(1);
        $connection->release();
        $next = Async::run(static fn(): mixed => $pool->query('SELECT 1')->value());
        self::meanwhile();
        self::assertFalse($next->isComplete());
        $gate->open();

        self::assertSame(['passed', 1], [$running->await(), $next->await()]);
        self::assertSame(1, $pool->statistics()['opened_total']);
    }

    public function testAStreamThatWasLeftAffectsNoOther(): void
    {
        $pool = $this->pool(1);
        for ($i = 0; $i < 10; ++$i) {
            foreach ($pool->stream('SELECT generate_series(1, 100000) AS i') as $row) {
                if ($row['i'] > 10 * $i) {
                    break;
                }
            }
            self::assertUsable($pool);
        }
        self::assertSame([1, []], [$pool->statistics()['opened_total'], $this->warnings()]);
    }
}
