<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\Postgres;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\UnexpectedResultException;
use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests rows and their number, in every shape of a result.
 *
 * @phpstan-require-extends LinkContract
 */
trait GivesRows
{
    private const THREE = 'SELECT i AS number, chr(96 + i) AS letter FROM generate_series(1, 3) AS i';

    public function testRowsMayBeFoundByAKey(): void
    {
        $link = $this->link();
        $people = "SELECT * FROM (VALUES (2, 'Ada'), (1, NULL)) AS v (id, name)";
        self::assertSame([2 => 'Ada', 1 => null], $link->query($people)->pairs());
        self::assertSame(
            [2 => ['id' => 2, 'name' => 'Ada'], 1 => ['id' => 1, 'name' => null]],
            $link->query($people)->indexedBy('id'),
        );
        self::assertSame(
            [[], []],
            [$link->query("{$people} WHERE false")->pairs(), $link->query("{$people} WHERE false")->indexedBy('name')],
        );
        foreach ([
            'needs a result with 2 columns' => static fn(): array => $link->query('SELECT 1')->pairs(),
            'no column "age"' => static fn(): array => $link->query($people)->indexedBy('age'),
            'is null' => static fn(): array => $link->query($people)->indexedBy('name'),
            'is float' => static fn(): array => $link->query('SELECT 1.5::float8, 1')->pairs(),
            'same value' => static fn(): array
                => $link->query("SELECT 'a', i FROM generate_series(1, 2) AS i")->pairs(),
        ] as $reason => $call) {
            self::assertStringContainsString(
                $reason,
                self::thrown(UnexpectedResultException::class, $call)->getMessage(),
            );
        }
    }

    public function testAQuotedNameIsTheNameItself(): void
    {
        $link = $this->link();
        foreach (['plain', 'Camel Case', 'with "quotes"', "semi; -- 'colon", 'ünïcode', str_repeat('x', 63)] as $name) {
            $quoted = Postgres::quoteIdentifier($name);
            self::assertSame([$name], $link->query("SELECT 1 AS {$quoted}")->columnNames());
        }
        self::assertSame('"pg_catalog"."pg_class"', Postgres::quoteIdentifier('pg_catalog', 'pg_class'));
        foreach (['', "a\0b", str_repeat('x', 64)] as $name) {
            self::thrown(\ValueError::class, static fn(): string => Postgres::quoteIdentifier($name));
        }
    }

    public function testRowsHaveTheNamesOfTheirColumns(): void
    {
        $result = $this->link()->query(self::THREE);
        $rows = [['number' => 1, 'letter' => 'a'], ['number' => 2, 'letter' => 'b'], ['number' => 3, 'letter' => 'c']];

        self::assertSame($rows, $result->all());
        self::assertSame($rows, iterator_to_array($result));
        self::assertSame($rows, iterator_to_array($result), 'a second time');
        self::assertSame(['number', 'letter'], $result->columnNames());
        self::assertCount(3, $result);
        self::assertSame(3, $result->affectedRows);
    }

    public function testRowsAreHadWithoutNames(): void
    {
        $result = $this->link()->query(self::THREE);

        self::assertSame([[1, 'a'], [2, 'b'], [3, 'c']], $result->allNumeric());
        self::assertSame([1, 2, 3], $result->column());
    }

    public function testOneRowIsHadWithoutALoop(): void
    {
        $link = $this->link();
        $result = $link->query(self::THREE . ' WHERE i = 2');

        self::assertSame(['number' => 2, 'letter' => 'b'], $result->one());
        self::assertSame(2, $result->value());
        self::assertNull($link->query('SELECT NULL::int')->value());
    }

    public function testNoRowIsNull(): void
    {
        $link = $this->link();
        $result = $link->query(self::THREE . ' WHERE i = 4');

        self::assertNull($result->one());
        self::assertNull($result->value());
        self::assertSame([], $result->all());
        self::assertSame([], $result->allNumeric());
        self::assertSame([], $result->column());
        self::assertSame([], iterator_to_array($result));
        self::assertSame(['number', 'letter'], $result->columnNames());
        self::assertCount(0, $result);
        self::assertSame(0, $result->affectedRows);
        self::assertUsable($link);
    }

    public function testSeveralRowsAreNotMistakenForOne(): void
    {
        $link = $this->link();
        $result = $link->query(self::THREE);

        self::assertStringContainsString(
            'the result has 3',
            self::thrown(UnexpectedResultException::class, $result->one(...))->getMessage(),
        );
        self::assertStringContainsString(
            'the result has 3',
            self::thrown(UnexpectedResultException::class, $result->value(...))->getMessage(),
        );
        self::assertUsable($link);
    }

    public function testAStatementWithoutRowsHasNoValues(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $result = $link->query("INSERT INTO {$table} SELECT generate_series(1, 3)");

        self::assertSame(3, $result->affectedRows);
        self::assertSame([], $result->columnNames());
        self::assertSame([], $result->all());
        self::assertSame([], $result->allNumeric());
        self::assertNull($result->one());
        self::assertCount(0, $result);
        self::thrown(UnexpectedResultException::class, $result->value(...));
        self::thrown(UnexpectedResultException::class, $result->column(...));
        self::assertSame(3, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testRowsWithoutColumnsAreCounted(): void
    {
        $link = $this->link();
        $result = $link->query('SELECT FROM generate_series(1, 3)');

        self::assertCount(3, $result);
        self::assertSame(3, $result->affectedRows);
        self::assertSame([], $result->columnNames());
        self::assertSame([[], [], []], $result->all());
        self::assertSame([[], [], []], $result->allNumeric());
        self::assertSame([], $link->query('SELECT')->one());
        self::thrown(UnexpectedResultException::class, $link->query('SELECT')->value(...));
        self::thrown(UnexpectedResultException::class, $result->column(...));
    }

    public function testColumnsOfTheSameNameAreNotMadeOne(): void
    {
        $link = $this->link();
        $result = $link->query('SELECT 1 AS a, 2 AS "b c", 3 AS "b c"');
        foreach ([$result->one(...), $result->all(...), static fn(): array => iterator_to_array($result)] as $take) {
            self::assertStringContainsString(
                '"b c"',
                self::thrown(UnexpectedResultException::class, $take)->getMessage(),
            );
        }
        self::assertSame([[1, 2, 3]], $result->allNumeric());
        self::assertSame([1], $result->column());
        self::assertSame(1, $result->value());
        self::assertSame(['a', 'b c', 'b c'], $result->columnNames());
        self::assertUsable($link);
    }

    public function testColumnsHaveAnyNames(): void
    {
        $row = $this->link()->query('SELECT 1, 2 AS "Ä ""b""", 3 AS "7"')->one();

        self::assertSame(['?column?' => 1, 'Ä "b"' => 2, 7 => 3], $row);
    }

    public function testValuesAreMadeWhenTheyAreTaken(): void
    {
        $link = $this->link();
        $link->transaction(static function (Transaction $transaction): void {
            $transaction->execute("SET LOCAL intervalstyle = 'sql_standard'");
            $result = $transaction->query("SELECT 1 AS a, '1-2 3 4:05:06'::interval AS b");

            self::assertCount(1, $result);
            self::assertStringContainsString(
                'interval',
                self::thrown(ProtocolException::class, $result->all(...))->getMessage(),
            );
            self::assertUsable($transaction);
        });
        self::assertUsable($link);
    }

    public function testManyRowsAreAllThere(): void
    {
        $result = $this->link()->query("SELECT i, repeat('x', i % 100) AS x FROM generate_series(1, 20000) AS i");
        $sum = 0;
        foreach ($result as $index => $row) {
            $sum += $row === ['i' => $index + 1, 'x' => str_repeat('x', ($index + 1) % 100)] ? 1 : 0;
        }

        self::assertSame(20_000, $sum);
        self::assertCount(20_000, $result);
        self::assertSame(range(1, 20_000), $result->column());
    }

    public function testAsManyColumnsAsATableMayHaveAreRead(): void
    {
        $expressions = implode(', ', array_map(static fn(int $i): string => "{$i} AS c{$i}", range(1, 1600)));

        self::assertSame(range(1, 1600), array_values($this->link()->query("SELECT {$expressions}")->one() ?? []));
    }

    public function testWrittenRowsAreCounted(): void
    {
        $link = $this->link();
        $table = self::table('id int PRIMARY KEY, name text');

        self::assertSame(3, $link->execute("INSERT INTO {$table} VALUES (1, 'a'), (2, 'b'), (3, 'c')"));
        self::assertSame(1, $link->execute("INSERT INTO {$table} VALUES (3, 'c'), (4, 'd') ON CONFLICT DO NOTHING"));
        self::assertSame(2, $link->execute("UPDATE {$table} SET name = \$1 WHERE id > \$2", ['x', 2]));
        self::assertSame(2, $link->execute("SELECT * FROM {$table} WHERE name = 'x'"));
        self::assertSame(1, $link->execute("DELETE FROM {$table} WHERE id = 4"));
        self::assertSame(0, $link->execute("DELETE FROM {$table} WHERE id = 4"));
        self::assertSame(0, $link->execute("ALTER TABLE {$table} ADD b int"));
        self::assertSame(
            [[1, 'a'], [2, 'b'], [3, 'x']],
            $link->query("SELECT id, name FROM {$table} ORDER BY id")->allNumeric(),
        );
    }

    public function testWhatIsReturnedIsCountedAndRead(): void
    {
        $link = $this->link();
        $table = self::table('id serial, name text');
        $result = $link->query(
            "INSERT INTO {$table} (name) SELECT chr(96 + i) FROM generate_series(1, 3) AS i RETURNING id, name",
        );

        self::assertSame(3, $result->affectedRows);
        self::assertSame([[1, 'a'], [2, 'b'], [3, 'c']], $result->allNumeric());
    }

    public function testAnEmptyStatementDoesNothing(): void
    {
        $link = $this->link();
        foreach (['', ' ', ';', '-- nothing', '/* nothing */ ;'] as $nothing) {
            foreach ([1, 2] as $_) {
                $result = $link->query($nothing);
                self::assertSame([0, 0, []], [\count($result), $result->affectedRows, $result->all()]);
            }
        }
        self::assertUsable($link);
    }
}
