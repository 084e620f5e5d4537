<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests several statements in one call.
 *
 * @phpstan-require-extends LinkContract
 */
trait RunsScripts
{
    public function testAllStatementsOfAScriptAreRun(): void
    {
        $link = $this->link();
        $table = 't_' . bin2hex(random_bytes(6));
        $link->executeScript(<<<SQL
            -- a migration; with comments
            CREATE TABLE {$table} (id int PRIMARY KEY, name text DEFAULT ';');
            INSERT INTO {$table} VALUES (1), (2); SELECT * FROM {$table};
            DO $$ BEGIN PERFORM 1; END $$;
            /* ; */
            UPDATE {$table} SET name = 'ä' WHERE id = 2
            SQL);

        self::assertSame([[1, ';'], [2, 'ä']], $link->query("SELECT * FROM {$table} ORDER BY id")->allNumeric());
    }

    public function testAnErrorInAScriptUndoesAllOfIt(): void
    {
        $link = $this->link();
        $table = self::table('id int PRIMARY KEY');
        $thrown = self::refused(
            UniqueViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->executeScript(
                "INSERT INTO {$table} VALUES (1); CREATE TABLE {$table}_2 (); INSERT INTO {$table} VALUES (1); "
                    . "INSERT INTO {$table} VALUES (2)",
            ),
        );

        self::assertSame("{$table}_pkey", $thrown->constraint);
        self::assertSame(
            [[0, null]],
            $link->query("SELECT count(*), to_regclass('{$table}_2') FROM {$table}")->allNumeric(),
        );
    }

    public function testAScriptThatTheServerCanNotReadDoesNothing(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        $sql = "INSERT INTO {$table} VALUES (1); ä SELEC 2";
        $thrown = self::refused(
            QueryException::class,
            $link,
            static fn(PostgresLink $link) => $link->executeScript($sql),
        );

        self::assertSame(
            ['42601', (int) mb_strpos($sql, 'ä') + 1, $sql],
            [$thrown->sqlState, $thrown->position, $thrown->sql],
        );
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAnEmptyScriptDoesNothing(): void
    {
        $link = $this->link();
        foreach (['', ';', '-- nothing', "\n;;\n"] as $nothing) {
            $link->executeScript($nothing);
            self::assertUsable($link);
        }
    }

    public function testACopyInAScriptDoesNotHang(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        self::refused(
            QueryException::class,
            $link,
            static fn(PostgresLink $link) => $link->executeScript(
                "INSERT INTO {$table} VALUES (1); COPY {$table} FROM STDIN; INSERT INTO {$table} VALUES (2)",
            ),
        );
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());

        $link->executeScript("COPY (SELECT generate_series(1, 10000)) TO STDOUT; INSERT INTO {$table} VALUES (3)");
        self::assertSame(3, $link->query("SELECT id FROM {$table}")->value());
    }

    public function testAScriptIsCancelled(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        $cancelled = new DeferredCancellation();
        $cancelled->cancel();
        foreach ([$cancelled->getCancellation(), new TimeoutCancellation(0.02)] as $cancellation) {
            self::refused(
                CancelledException::class,
                $link,
                static fn(PostgresLink $link)
                    => $link->executeScript("INSERT INTO {$table} VALUES (1); SELECT pg_sleep(1000)", $cancellation),
            );
            self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
        }
    }
}
