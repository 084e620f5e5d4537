<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\SessionChanges;

final class SessionChangesTest extends TestCase
{
    /** @return iterable<string, array{string}> */
    public static function sessionChanges(): iterable
    {
        foreach ([
            'SET a = 1', "set\ta to 1", "SET TIME ZONE 'UTC'", 'SET SESSION a = 1', 'SET ROLE x',
            'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY', 'SET SESSION AUTHORIZATION x',
            'RESET ALL', 'LISTEN a', 'UNLISTEN *', 'DECLARE c CURSOR FOR SELECT 1', "LOAD 'x'", 'DO $$ BEGIN END $$',
            'CALL p()', 'PREPARE a AS SELECT 1', 'DEALLOCATE a', 'DISCARD TEMP',
            'SECURITY LABEL ON TABLE a IS NULL', "SELECT set_config('a', 'b', false)", 'SELECT pg_advisory_lock(1)',
            'SELECT pg_try_advisory_lock_shared(1, 2)', 'SELECT pg_catalog.pg_advisory_unlock_all()',
            'CREATE TEMP TABLE a ()', 'CREATE TEMPORARY VIEW a AS SELECT 1', 'CREATE LOCAL TEMPORARY TABLE a ()',
            'SELECT 1 INTO TEMP a', 'CREATE TABLE pg_temp.a ()', "SELECT dblink_connect('x')",
            "SELECT dblink_connect_u('x')",
            "-- a comment\nSET a = 1", '/* a */ /* b */ SET a = 1', "  \n SET a = 1", '/* a /* b */ c */ set a = 1',
            '/*/* b */*//**/set a = 1', "-- a comment\rset a = 1", "-- a comment\r\n; set a = 1", ';SET a = 1',
            "SET local.tenant = 'a'", 'set transaction . x = 1', 'SET constraints.x TO 1',
            'PREPARE transaction AS SELECT 1', 'PREPARE transaction (int) AS SELECT 1', 'SELECT setseed(0.5)',
            'SELECT U&"set\005fconfig"(\'a\', \'b\', false)',
            'SELECT u&"set!005fconfig" UESCAPE \'!\' (\'a\', \'b\', false)',
            'WITH a AS (SELECT pg_advisory_lock(1)) SELECT 1', "UPDATE pg_settings SET setting = 'a' WHERE name = 'b'",
            "update/**/only (pg_catalog . pg_settings) set setting = 'a'", 'UPDATE"pg_settings"SET setting = 1',
        ] as $sql) {
            yield $sql => [$sql];
        }
    }

    #[DataProvider('sessionChanges')]
    public function testAStatementThatMayChangeTheSessionIsDetected(string $sql): void
    {
        self::assertTrue(SessionChanges::mayChangeSession($sql));
    }

    /** @return iterable<string, array{string}> */
    public static function harmless(): iterable
    {
        foreach ([
            '', 'SELECT 1', 'INSERT INTO a VALUES (1)', 'UPDATE a SET b = 1', "INSERT INTO a VALUES ('SET')",
            'SELECT listen FROM a', 'SET LOCAL a = 1', 'SET TRANSACTION READ ONLY', 'SET CONSTRAINTS ALL DEFERRED',
            "PREPARE TRANSACTION 'x'", 'SELECT pg_advisory_xact_lock(1)', 'SELECT pg_try_advisory_xact_lock(1)',
            'SELECT temperature, attempt, contemporary FROM settings', 'BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT a',
            'CREATE TABLE a ()', 'DELETE FROM a', 'SHOW a', 'NOTIFY a', 'FETCH 1 FROM c', 'DONE', 'CALLED',
            'LOCK TABLE a', 'EXPLAIN SELECT 1', 'COPY a FROM STDIN',
            'MERGE INTO a USING b ON true WHEN MATCHED THEN DO NOTHING',
            "SELECT U&'\\0061'", '/* a /* b */ set a = 1 */ SELECT 1', "-- set a = 1\rSELECT 1",
            '/* a /* b */ SET a = 1', 'SELECT setting FROM pg_settings', 'UPDATE a SET b = 1 FROM pg_settings',
            'UPDATE pg_settings_of_mine SET a = 1',
        ] as $sql) {
            yield $sql => [$sql];
        }
    }

    #[DataProvider('harmless')]
    public function testAChangeThatEndsWithItsTransactionIsIgnored(string $sql): void
    {
        self::assertFalse(SessionChanges::mayChangeSession($sql));
    }

    /** @return iterable<string, array{string, bool}> a statement, and whether it changes the meaning of others */
    public static function meanings(): iterable
    {
        foreach ([
            'SET search_path = a', 'set local search_path to a', 'SET SESSION search_path = a', "SET SCHEMA 'a'",
            "SET LOCAL SCHEMA 'a'", 'SET/**/search_path = a', 'SET LOCAL/**/search_path = a',
            '/* a */ ; set "search_path" = a',
            'SET LOCAL U&"search_path" = a', 'RESET ALL', 'RESET search_path;', 'RESET ROLE', 'SET ROLE a',
            'SET LOCAL ROLE a', 'SET SESSION AUTHORIZATION a', 'SET LOCAL SESSION AUTHORIZATION a',
            'RESET SESSION AUTHORIZATION',
            'SET standard_conforming_strings = off', 'DISCARD ALL', 'DISCARD TEMP', 'DO $$ $$',
            "SELECT set_config('search_path', 'a', true)", 'SELECT set_config($1, $2, true)',
            "SELECT set_config(name, 'a', true) FROM t",
            'CREATE TEMP TABLE a ()', 'CREATE LOCAL /* a */ TEMPORARY TABLE a ()',
            'CREATE OR REPLACE TEMP VIEW a AS SELECT 1', 'SELECT 1 INTO TEMP a', 'CREATE TABLE pg_temp.a ()',
            'EXPLAIN ANALYZE CREATE TABLE a AS SELECT 1', "explain (analyze)\nselect 1 into a",
            "SET TIME ZONE 'UTC'", 'set local time zone LOCAL', 'SET TimeZone TO a', 'RESET TIME ZONE',
            "SELECT set_config('timezone', 'a', true)", "SET DateStyle = 'ISO, DMY'", 'SET IntervalStyle = a',
            'SET array_nulls = off', "SET lc_monetary = 'a'", 'SET xmloption = document', 'SET XML OPTION DOCUMENT',
            'GRANT USAGE ON SCHEMA a TO b', 'REVOKE ALL ON SCHEMA a FROM b',
            'IMPORT FOREIGN SCHEMA a FROM SERVER b INTO c',
            "COPY (SELECT set_config('role', 'a', true)) TO STDOUT", 'UPDATE pg_settings SET setting = $1',
            'ALTER TABLE a RENAME TO b',
        ] as $sql) {
            yield $sql => [$sql, true];
        }
        foreach ([
            'SELECT 1', "SET LOCAL statement_timeout = '5s'", 'SET work_mem TO 1', "SET app.tenant = 'a'",
            "SET local.search_path = 'a'", 'RESET work_mem', 'RESET work_mem ;', "SET timezones = 'a'",
            'SET TRANSACTION READ ONLY',
            'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY', 'SET CONSTRAINTS ALL DEFERRED',
            "SELECT set_config('app.tenant', \$1, true)", 'SELECT temp FROM weather', "UPDATE a SET role = 'b'",
            'CALL p()', 'COMMIT', 'LISTEN a', 'SELECT setting FROM pg_settings',
        ] as $sql) {
            yield $sql => [$sql, false];
        }
    }

    #[DataProvider('meanings')]
    public function testAStatementThatMayChangeTheMeaningOfOthersIsDetected(string $sql, bool $does): void
    {
        self::assertSame($does, SessionChanges::mayChangeMeaning($sql));
    }

    public function testASelectIntoIsDetected(): void
    {
        foreach ([
            'SELECT 1 INTO a', 'with a as (select 1) select * into b from a', 'SELECT */* c */into a FROM b',
            "SELECT ' into '", 'SELECT *INTO a FROM b', 'SELECT "b"INTO"a" FROM b',
        ] as $sql) {
            self::assertTrue(SessionChanges::mayCreateTable($sql), $sql);
        }
        foreach ([
            'SELECT 1', 'INSERT INTO a SELECT 1', "WITH a AS (SELECT 1)\nINSERT   INTO b SELECT * FROM a",
            'WITH a AS (SELECT 1) MERGE INTO b USING a ON true', 'SELECT intox FROM a',
        ] as $sql) {
            self::assertFalse(SessionChanges::mayCreateTable($sql), $sql);
        }
    }

    public function testALongStatementIsCheckedForItsMeaningInReasonableTime(): void
    {
        $begun = hrtime(true);
        foreach ([
            'SELECT ' . str_repeat("'x', ", 500_000),
            'CREATE ' . str_repeat(' ', 500_000),
            str_repeat('UPDATE ', 100_000) . str_repeat('(', 500_000),
            str_repeat('CREATE /* */ ', 100_000),
            'SET ' . str_repeat('a.', 500_000),
            str_repeat("set_config('a.b', ", 100_000),
        ] as $sql) {
            SessionChanges::mayChangeMeaning($sql);
        }

        self::assertLessThan(5.0, (hrtime(true) - $begun) / 1e9);
    }

    public function testTransactionCommandsAreDetected(): void
    {
        foreach ([
            'BEGIN',
            'begin read only',
            'START TRANSACTION',
            'COMMIT',
            'END',
            'ROLLBACK',
            'ROLLBACK TO a',
            'ABORT',
            'SAVEPOINT a',
            'RELEASE a',
            "PREPARE TRANSACTION 'a'",
            "COMMIT PREPARED 'a'",
        ] as $sql) {
            foreach (['', "\n ", '/* a /* b */ */', "-- a\r", ';'] as $ahead) {
                self::assertTrue(SessionChanges::controlsTransaction($ahead . $sql), $ahead . $sql);
            }
        }
        foreach ([
            'SELECT 1',
            '',
            'INSERT INTO a VALUES (1)',
            'beginning',
            '-- BEGIN',
            '/* /* */ BEGIN */ SELECT 1',
            'SELECT 1 AS end',
            'SHOW transaction_isolation',
        ] as $sql) {
            self::assertFalse(SessionChanges::controlsTransaction($sql), $sql);
        }
    }

    public function testOnlyBeginAndStartTransactionBeginATransaction(): void
    {
        foreach (['BEGIN', 'begin;', 'START TRANSACTION', 'Begin Isolation Level Serializable'] as $sql) {
            foreach (['', "\n ", '/* a /* b */ */', "-- a\r", ';'] as $ahead) {
                self::assertTrue(SessionChanges::beginsTransaction($ahead . $sql), $ahead . $sql);
            }
        }
        foreach (['SELECT 1', '', 'beginning', 'begin_x', '-- BEGIN', 'COMMIT', 'DO $$ BEGIN END $$'] as $sql) {
            self::assertFalse(SessionChanges::beginsTransaction($sql), $sql);
        }
    }

    public function testALongStatementIsLookedAtInReasonableTime(): void
    {
        $begun = hrtime(true);
        self::assertFalse(SessionChanges::mayChangeSession('SELECT ' . str_repeat("'x', ", 500_000)));
        self::assertFalse(SessionChanges::mayChangeSession(str_repeat("-- a\n", 200_000) . 'SELECT 1'));
        self::assertFalse(SessionChanges::mayChangeSession(str_repeat('/* a */ ', 200_000) . 'SELECT 1'));
        self::assertFalse(SessionChanges::mayChangeSession('/*' . str_repeat(' *', 200_000)));
        self::assertFalse(SessionChanges::mayChangeSession('/*' . str_repeat(' * /', 200_000) . '*/ SELECT 1'));
        $nested = str_repeat('/*', 1_000) . str_repeat('*/', 1_000);
        self::assertTrue(SessionChanges::mayChangeSession("{$nested} SET a = 1"));
        // A text that can't be analyzed counts as suspect.
        self::assertTrue(SessionChanges::mayChangeSession(
            str_repeat('/*', 500_000) . str_repeat('*/', 500_000) . ' SET a = 1',
        ));
        self::assertTrue(SessionChanges::mayChangeSession(str_repeat('/* a */ ', 200_000) . 'SET a = 1'));

        self::assertLessThan(5.0, (hrtime(true) - $begun) / 1e9);
    }

    public function testChangesAreRecordedUntilTheyAreCleared(): void
    {
        $changes = new SessionChanges([]);
        self::assertFalse($changes->hasAny);
        $changes->record('SET a = 1');
        self::assertSame([true, false], [$changes->hasAny, $changes->preparedMayDiffer]);
        $changes->record('PREPARE a AS SELECT 1');
        self::assertSame([true, true], [$changes->hasAny, $changes->preparedMayDiffer]);
        $changes->record('SET a = 1');
        self::assertTrue($changes->preparedMayDiffer, 'still');
        $changes->clear();
        self::assertSame([false, false], [$changes->hasAny, $changes->preparedMayDiffer]);
        $changes->record();
        self::assertSame([true, false], [$changes->hasAny, $changes->preparedMayDiffer]);
    }

    /** @return iterable<string, array{string, bool}> a script, and whether it may change the meaning of texts */
    public static function scripts(): iterable
    {
        yield 'nothing' => ['', false];
        yield 'a statement' => ["SELECT 1 ;\n; ", false];
        yield 'a change' => ['SET search_path = a', true];
        yield 'a change after a statement' => ['SELECT 1; SET search_path = a', true];
        yield 'a semicolon in a text' => ["SELECT ';', 1", true];
    }

    #[DataProvider('scripts')]
    public function testOnlyAScriptOfOneStatementIsKnownNotToChangeTheMeaningOfOthers(string $sql, bool $may): void
    {
        $changes = new SessionChanges([]);
        $changes->recordScript($sql);

        self::assertSame([true, $may], [$changes->hasAny, $changes->meaningMayDiffer]);
    }

    public function testTheUndoRepeatsTheSetupAndKeepsPreparedStatements(): void
    {
        $changes = new SessionChanges(["SELECT set_config('a', 'b', false)"]);
        $changes->record('SET a = 1');
        self::assertStringContainsString('RESET ALL', $changes->undoScript());
        self::assertStringEndsWith("; SELECT set_config('a', 'b', false)", $changes->undoScript());
        self::assertDoesNotMatchRegularExpression('/DEALLOCATE|DISCARD ALL|DISCARD PLANS/', $changes->undoScript());
        $changes->record('DEALLOCATE ALL');
        self::assertStringContainsString('DEALLOCATE ALL', $changes->undoScript());
    }
}
