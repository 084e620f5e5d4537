<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\SqlText;

final class SqlTextTest extends TestCase
{
    /** @return iterable<string, array{string, string}> a text, and the beginning of its second statement */
    public static function several(): iterable
    {
        yield 'two' => ['SELECT 1; SELECT 2', 'SELECT 2'];
        yield 'three' => ['SELECT 1;SELECT 2;SELECT 3', 'SELECT 2'];
        yield 'nothing at first' => [';SELECT 1;SELECT 2', 'SELECT 2'];
        yield 'empty ones in between' => ['SELECT 1 ; ; ;; SELECT 2 ;', 'SELECT 2'];
        yield 'a comment in between' => ["SELECT 1; -- ; SELECT 3\n /* ; /* ; */ ; */ SELECT 2", 'SELECT 2'];
        yield 'a semicolon in a string' => ["SELECT ';'; SELECT 2", 'SELECT 2'];
        yield 'quotes in a string' => ["SELECT 'a'';'; SELECT 2", 'SELECT 2'];
        yield 'a backslash in a string' => ["SELECT '\\'; SELECT 2 --'", 'SELECT 2 --\''];
        yield 'a backslash in a string with escapes' => ["SELECT E'\\';' || e'\\\\'; SELECT 2", 'SELECT 2'];
        yield 'a string with escapes in two parts' => ["SELECT E'a'\n'\\''; SELECT 2 --'", "SELECT 2 --'"];
        yield 'a string with escapes in three parts' => [
            "SELECT E'a' -- '\r --;\n\t'\\';'\f\n'\\\\' --\n;SELECT 2 --'",
            "SELECT 2 --'",
        ];
        yield 'a string with escapes before another string' => ["SELECT E'a' '\\'; SELECT 2 --'", "SELECT 2 --'"];
        yield 'a string with escapes and a block comment' => ["SELECT E'a'/*\n*/'\\'; SELECT 2 --'", "SELECT 2 --'"];
        yield 'a string without escapes in two parts' => ["SELECT 'a'\n'\\'; SELECT 2 --'", "SELECT 2 --'"];
        yield 'a string of Unicode escapes in two parts' => ["SELECT U&'a'\n'\\'; SELECT 2 --'", "SELECT 2 --'"];
        yield 'a type that ends with e' => ["SELECT date'2000-01-01\\'; SELECT 2", 'SELECT 2'];
        yield 'a semicolon in a name' => ['SELECT 1 AS "a;""b;"; SELECT 2', 'SELECT 2'];
        yield 'dollars' => ['SELECT $$;$$, $a$;$$;$b$;$a$; SELECT 2', 'SELECT 2'];
        yield 'dollars with other letters' => ['SELECT $ä1$;$ä1$; SELECT 2', 'SELECT 2'];
        yield 'parameters' => ['SELECT $1;SELECT $2', 'SELECT $2'];
        yield 'parameters that look like dollar quotes' => ['SELECT $1$1; SELECT 2', 'SELECT 2'];
        yield 'a name with dollars' => ['SELECT a$b$ FROM t; SELECT c$b$', 'SELECT c$b$'];
        yield 'a comment at the end' => ["SELECT 1; SELECT 2 -- two\n", 'SELECT 2 -- two'];
        yield 'an operator of minus and slash' => ['SELECT 1 - 2 / 3 * 4; SELECT 2', 'SELECT 2'];
        yield 'a comment that is none' => ["SELECT '--'; SELECT 2", 'SELECT 2'];
        yield 'lines' => ["SELECT 1;\r\n\tSELECT\n2", "SELECT\n2"];
        yield 'what ends nowhere' => ["SELECT 1; SELECT 'a;b", "SELECT 'a"];
    }

    #[DataProvider('several')]
    public function testTheSecondStatementIsFoundWithItsPosition(string $sql, string $second): void
    {
        self::assertSame([$second, (int) mb_strrpos($sql, $second) + 1], SqlText::secondStatement($sql));
    }

    /** @return iterable<string, array{string}> */
    public static function one(): iterable
    {
        foreach ([
            '',
            ' ',
            ';',
            ' ; ;; ',
            'SELECT 1',
            'SELECT 1;',
            '; SELECT 1',
            "-- SELECT 0;\n; /* ; */; SELECT 1;",
            "SELECT 1; -- SELECT 2\n",
            'SELECT 1; /* SELECT 2; /* SELECT 3; */ */ ;',
            "SELECT ';",
            'SELECT ";',
            'SELECT $$;',
            "SELECT E'\\'; SELECT 2'",
            "SELECT E'it'\n'\\'s; fine'",
            "SELECT e'it' --\n'\\'s' -- ;'\n\n'\\';'",
            "SELECT E'a'\n",
            "SELECT E'a'\n'",
            "SELECT E'a'--",
            '-- ;',
        ] as $sql) {
            yield $sql => [$sql];
        }
    }

    #[DataProvider('one')]
    public function testOneStatementHasNoSecond(string $sql): void
    {
        self::assertNull(SqlText::secondStatement($sql));
    }

    public function testACopyIsRecognizedDespiteCommentsBetweenItsKeywords(): void
    {
        foreach ([
            'COPY t FROM STDIN',
            "copy t from\nstdin",
            'COPY t FROM/**/STDIN',
            "COPY t (a) FROM /* a /* b */ c */ -- d\r STDIN",
            "/* a /* b */ COPY t TO STDOUT */ copy t to--x\nstdout",
            "-- x\rCOPY (SELECT 1) TO STDOUT",
            str_repeat('/* a */ ', 200_000) . 'COPY t TO STDOUT',
        ] as $sql) {
            self::assertTrue(SqlText::isCopy($sql), substr($sql, 0, 100));
        }
        foreach ([
            'SELECT 1',
            "COPY t FROM '/tmp/stdin'",
            'COPY t FROMSTDIN',
            '/* COPY t FROM STDIN */ SELECT 1',
            'COPY /* FROM */ t TO PROGRAM $$x$$',
            '/* COPY t FROM STDIN',
        ] as $sql) {
            self::assertFalse(SqlText::isCopy($sql), $sql);
        }
        SqlText::checkCopy('COPY t FROM /* x */ STDIN', 'FROM STDIN');
        $this->expectException(\LogicException::class);
        SqlText::checkCopy('COPY t TO /* FROM */ STDOUT', 'FROM STDIN');
    }

    public function testOnlyStatementsThatAnErrorUndoesAreRepeatable(): void
    {
        foreach ([
            'SELECT 1',
            " (( values (1)\n",
            "/* CALL /* x */ */ -- c\nINSERT INTO t VALUES (1)",
            'with a AS (SELECT 1) TABLE a',
            'UPDATE t SET a = 1',
            'delete from t',
            'MERGE INTO t',
            'TABLE t',
            str_repeat("/* a */ -- b\n", 200_000) . 'SELECT 1',
        ] as $sql) {
            self::assertTrue(SqlText::isRepeatable($sql), substr($sql, 0, 100));
        }
        foreach ([
            '',
            'CALL p()',
            'DO $$SELECT$$',
            'COMMIT',
            'END',
            'PREPARE TRANSACTION \'a\'',
            'VACUUM',
            'CREATE INDEX CONCURRENTLY i ON t (a)',
            "-- SELECT\nCALL p()",
            'selects',
            '/* SELECT',
        ] as $sql) {
            self::assertFalse(SqlText::isRepeatable($sql), $sql);
        }
    }

    public function testAStatementStaysPreparedOnlyIfItsMeaningDoesNotChange(): void
    {
        foreach ([
            'FETCH c',
            "/* a */ -- b\nfetch all in c",
            ' Execute p (1)',
            '; FETCH c',
            "SELECT * FROM t WHERE at > 'yesterday'",
            "INSERT INTO t VALUES (1, ' Now')",
            "SELECT '[today 10:00,)'::tstzrange",
            "SELECT '10:00today'::timestamp",
            "SELECT 'today10:00'::timestamp, '_now'::date",
            "SELECT 'a', E'it\\'s', U&'now'::date",
            'SELECT $1, $$now$$::date',
            'SELECT $a$ $$ tomorrow $a$::date',
            "SELECT \"it's\", /* it's */ 'a''b', E'now'::date -- it's",
        ] as $sql) {
            self::assertFalse(SqlText::mayStayPrepared($sql), $sql);
        }
        foreach ([
            'SELECT 1',
            'fetched',
            '-- FETCH c',
            'SELECT a FROM t FETCH FIRST ROW ONLY',
            "INSERT INTO t VALUES ('a', now(), 'b')",
            "UPDATE t SET a = 'x', updated = now()",
            "SELECT date_trunc('day', now()) AS today, 'nowhere', 'know'",
            "SELECT * FROM t WHERE a LIKE \$1 ESCAPE '\\' AND at > now() AND b = ''",
            "SELECT E'it\\'s', now(), \$\$a'\$\$, 'b' /* 'today' */ -- 'now'",
            'SELECT a AS "\'now\'" FROM b',
        ] as $sql) {
            self::assertTrue(SqlText::mayStayPrepared($sql), $sql);
        }
        self::assertFalse(SqlText::mayStayPrepared("SELECT 'it\\'s', 'now'::date", true));
        self::assertTrue(SqlText::mayStayPrepared("SELECT 'it\\'s', now(), 'a'", true));
    }

    public function testThePositionCountsCharacters(): void
    {
        self::assertSame(['SELECT 2', 14], SqlText::secondStatement("SELECT 'ä😀'; SELECT 2"));
    }

    public function testALongSecondStatementIsTruncated(): void
    {
        self::assertSame(
            ['SELECT ' . str_repeat('x', 53) . '…', 11],
            SqlText::secondStatement('SELECT 1; SELECT ' . str_repeat('x', 100)),
        );
        foreach (['', 'x', 'xx', 'xxx'] as $before) {
            $second = (string) (SqlText::secondStatement("SELECT 1; {$before}" . str_repeat('😀', 100))[0] ?? null);
            self::assertMatchesRegularExpression("/^{$before}😀{10,20}…$/u", $second);
        }
    }

    public function testLongTextsAreReadToTheirEnd(): void
    {
        $long = str_repeat("'a;b' \"c;d\" \$\$;\$\$ /* ; */ -- ;\n", 50_000);

        self::assertNull(SqlText::secondStatement("SELECT {$long}"));
        self::assertSame('SELECT 2', SqlText::secondStatement("SELECT {$long}; SELECT 2")[0] ?? null);
        self::assertSame(
            'SELECT 2',
            SqlText::secondStatement("SELECT '" . str_repeat("x''", 100_000) . "'; SELECT 2")[0] ?? null,
        );
        self::assertNull(SqlText::secondStatement('SELECT ' . str_repeat('/*', 200) . ';' . str_repeat('*/', 200)));
    }

    /** @return iterable<string, array{string}> the beginning of a statement whose tokens exceed pcre.backtrack_limit */
    public static function long(): iterable
    {
        yield 'strings' => ['SELECT ' . str_repeat("('a;b'), ", 5_000)];
        yield 'quotes in a string' => ["SELECT '" . str_repeat("x''", 10_000) . "'"];
        yield 'escapes in a string' => ["SELECT E'" . str_repeat("\\';", 10_000) . "'"];
        yield 'parts of a string' => ["SELECT E'a'" . str_repeat("\n'\\';' -- '", 10_000)];
        yield 'lines in a string' => ["SELECT E'a'" . str_repeat("\n-- '", 10_000) . "\n'\\';'"];
        yield 'quotes in a name' => ['SELECT 1 AS "' . str_repeat('x"";', 10_000) . '"'];
        yield 'a comment' => ['SELECT /*' . str_repeat('* / ;', 5_000) . '*/ 1'];
        yield 'comments in a comment' => ['SELECT ' . str_repeat('/*', 5_000) . ';' . str_repeat('*/', 5_000)];
        yield 'dollars' => ['SELECT $a$' . str_repeat('$b$;', 5_000) . '$a$'];
    }

    #[DataProvider('long')]
    public function testALongStatementEndsAtItsSemicolon(string $sql): void
    {
        $comments = str_repeat("-- ;\n; /* ; */", 4_000);
        $limit = (string) ini_set('pcre.backtrack_limit', '5000');
        try {
            self::assertNull(SqlText::secondStatement($sql));
            self::assertNull(SqlText::secondStatement("{$sql}; {$comments}"));
            self::assertSame('SELECT 2', SqlText::secondStatement("{$sql}; {$comments} SELECT 2;")[0] ?? null);
        } finally {
            ini_set('pcre.backtrack_limit', $limit);
        }
    }

    public function testABackslashEscapesInEachStringOnRequest(): void
    {
        $one = "SELECT 'a\\'; SELECT 2 --'";
        $two = "SELECT 'a\\''; SELECT '2'";

        self::assertNull(SqlText::secondStatement($one, escapesWithBackslash: true));
        self::assertSame("SELECT '2'", SqlText::secondStatement($two, escapesWithBackslash: true)[0] ?? null);
    }
}
