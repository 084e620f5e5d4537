<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PostgresLink;
use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests that several statements in one call are refused.
 *
 * @phpstan-require-extends LinkContract
 */
trait TakesOneStatement
{
    public function testTheSecondStatementIsNamedAndNoneIsExecuted(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $sql = "INSERT INTO {$table} VALUES (1); -- ä\n DELETE FROM {$table} WHERE i = 1";
        foreach ([
            static fn(PostgresLink $link) => $link->query($sql),
            static fn(PostgresLink $link) => $link->execute($sql),
            static fn(PostgresLink $link) => iterator_to_array($link->stream($sql)),
            static fn(PostgresLink $link) => $link->query(str_replace(' (1)', '($1)', $sql), [1]),
            static fn(PostgresLink $link) => $link->query(str_replace(' (1)', '($1)', $sql), ['1']),
        ] as $verb) {
            $thrown = self::refused(MultipleStatementsException::class, $link, $verb);
            self::assertSame("DELETE FROM {$table} WHERE i = 1", $thrown->second);
            self::assertStringContainsString($thrown->second, $thrown->getMessage());
            self::assertStringContainsString(
                'at character ' . ((int) mb_strpos($sql, 'DELETE') + 1) . ':',
                $thrown->getMessage(),
            );
        }
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testASemicolonAloneDoesNotMakeTwo(): void
    {
        $link = $this->link();
        foreach ([
            'SELECT 1;',
            'SELECT 1; ',
            "SELECT 1 ; -- ; SELECT 2\n",
            "SELECT 1;\n/* ; /* ; */ SELECT 2 */;;",
            'SELECT 1 -- ;',
        ] as $sql) {
            self::assertSame(1, $link->query($sql)->value(), $sql);
        }
        foreach (["SELECT ';'", "SELECT E'\\';'", 'SELECT $$;$$', 'SELECT $a$;$$;$a$', "SELECT ';' AS \";\""] as $sql) {
            self::assertStringContainsString(';', (string) json_encode($link->query($sql)->value()), $sql);
        }
    }

    public function testTheBodyOfARoutineMayHaveSemicolons(): void
    {
        $link = $this->link();
        $name = 'f_' . bin2hex(random_bytes(6));
        $link->execute(
            "CREATE FUNCTION {$name}(a int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT a + 1; END",
        );

        self::assertSame(8, $link->query("SELECT {$name}(\$1)", [7])->value());
    }

    public function testATextThatHoldsNulIsNoStatement(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        foreach ([
            static fn(PostgresLink $link) => $link->query("DELETE FROM {$table} \0 WHERE false"),
            static fn(PostgresLink $link) => $link->execute("DELETE FROM {$table} WHERE \$1\0", [true]),
            static fn(PostgresLink $link) => iterator_to_array($link->stream("SELECT 1\0")),
            static fn(PostgresLink $link) => $link->executeScript("DELETE FROM {$table};\0"),
            static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN\0", ["1\n"]),
            static fn(PostgresLink $link) => iterator_to_array($link->copyTo("COPY {$table} TO STDOUT\0")),
        ] as $verb) {
            self::refused(\LogicException::class, $link, $verb);
        }
    }
}
