<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Result;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\TypeCases;
use Spindle\Tests\Scale;
use Spindle\Tests\Unit\Postgres\Types\RandomValues;

/**
 * Tests that a statement returns the same in two cases: it stays prepared, so that numbers arrive in binary, and it is
 * prepared for each execution, so that a part of the values arrives as text.
 */
final class FormatsAgreeTest extends PostgresContract
{
    private const TYPES = [
        'bool' => 16, 'bytea' => 17, 'int8' => 20, 'float8' => 701, 'text' => 25, 'jsonb' => 3802, 'date' => 1082,
        'timestamp' => 1114, 'timestamptz' => 1184, 'interval' => 1186,
        'bool[]' => 1000, 'bytea[]' => 1001, 'int8[]' => 1016, 'float8[]' => 1022, 'text[]' => 1009,
        'jsonb[]' => 3807, 'date[]' => 1182, 'timestamp[]' => 1115, 'timestamptz[]' => 1185, 'interval[]' => 1187,
    ];

    public function testOnValuesOfEveryType(): void
    {
        [$cached, $uncached] = $this->both();
        foreach (TypeCases::roundTrips() as $name => [$type, $parameter]) {
            self::assertAgree(
                $name,
                static fn(PostgresConnection $connection): Result
                    => $connection->query("SELECT \$1::{$type} AS a", [$parameter]),
                $cached,
                $uncached,
            );
        }
        foreach (TypeCases::outputs() as $name => [$expression]) {
            self::assertAgree(
                $name,
                static fn(PostgresConnection $connection): Result => $connection->query("SELECT {$expression}"),
                $cached,
                $uncached,
            );
        }
        foreach (TypeCases::refused() as $name => [$type, $parameter]) {
            self::assertAgree(
                $name,
                static fn(PostgresConnection $connection): Result
                    => $connection->query("SELECT \$1::{$type}", [$parameter]),
                $cached,
                $uncached,
            );
        }
    }

    public function testOnValuesWhateverTheSessionShowsThemAs(): void
    {
        [$cached, $uncached] = $this->both();
        foreach (TypeCases::settings() as $name => [$setting, $text, $expression]) {
            foreach ([$cached, $uncached] as $connection) {
                $connection->query('SELECT set_config($1, $2, false)', [$setting, $text]);
            }
            self::assertAgree(
                $name,
                static fn(PostgresConnection $connection): Result => $connection->query("SELECT {$expression}"),
                $cached,
                $uncached,
            );
        }
    }

    public function testOnRandomValues(): void
    {
        [$cached, $uncached] = $this->both();
        $values = new RandomValues(Scale::seed());
        foreach (Scale::rounds(0.5, 20) as $_) {
            foreach (self::TYPES as $type => $oid) {
                $value = $values->of($oid);
                self::assertAgree(
                    "{$type} " . var_export(TypeCases::comparable($value), true),
                    static fn(PostgresConnection $connection): Result
                        => $connection->query("SELECT \$1::{$type} AS a, \$1::{$type}::text AS b", [$value]),
                    $cached,
                    $uncached,
                );
            }
        }
    }

    public function testOnTheShapeOfEveryResult(): void
    {
        // Separate databases, so that neither connection sees the changes of the other.
        $cached = $this->connect(database: Cluster::newDatabase());
        $uncached = $this->connect(database: Cluster::newDatabase(), statementCache: 0);
        foreach ([
            'CREATE TABLE t (id serial PRIMARY KEY, a text, b int[] CHECK (cardinality(b) < 5))',
            'INSERT INTO t (a) SELECT chr(i) FROM generate_series(65, 90) AS i',
            "INSERT INTO t (a, b) VALUES ('x', '{1,2}') RETURNING *",
            "UPDATE t SET b = '{{1,NULL},{3,4}}' WHERE id < 3",
            'DELETE FROM t WHERE id = 7 RETURNING id, a',
            'SELECT * FROM t ORDER BY id',
            'SELECT * FROM t WHERE false',
            'SELECT FROM t',
            'SELECT 1 AS a, 2 AS a',
            'SELECT 1, 2 AS "?column?", NULL',
            'EXPLAIN (COSTS OFF) SELECT * FROM t',
            'SHOW TimeZone',
            'VALUES (1, true), (2, NULL)',
            "WITH x AS (INSERT INTO t (a) VALUES ('w') RETURNING id) SELECT count(*) FROM x",
            'INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING',
            'INSERT INTO t (id) VALUES (1)',
            "INSERT INTO t (b) VALUES ('{1,2,3,4,5}')",
            'DO $$ BEGIN RAISE NOTICE \'hello\'; END $$',
            'SELECT 1; SELECT 2',
            'SELECT nothing FROM nowhere',
            "SELECT 'ä' AS a, 1 / 0",
            'SELECT id FROM t WHERE ä = 1',
            '', ';', '-- nothing',
            'DROP TABLE t',
        ] as $sql) {
            foreach (['the first time', 'again'] as $when) {
                self::assertAgree(
                    "{$sql} {$when}",
                    static fn(PostgresConnection $connection): Result => $connection->query($sql),
                    $cached,
                    $uncached,
                );
            }
        }
    }

    /** @param \Closure(PostgresConnection): Result $work */
    private static function assertAgree(
        string $name,
        \Closure $work,
        PostgresConnection $cached,
        PostgresConnection $uncached,
    ): void {
        self::assertSame(self::outcome($work, $cached), self::outcome($work, $uncached), $name);
    }

    /**
     * @param \Closure(PostgresConnection): Result $work
     *
     * @return array<mixed>
     */
    private static function outcome(\Closure $work, PostgresConnection $connection): array
    {
        try {
            $result = $work($connection);

            return [
                $result->columnNames(),
                \count($result),
                $result->affectedRows,
                TypeCases::comparable($result->allNumeric()),
            ];
        } catch (QueryException $thrown) {
            return [
                $thrown::class,
                $thrown->getMessage(),
                $thrown->sqlState,
                $thrown->severity,
                $thrown->detail,
                $thrown->hint,
                $thrown->position,
                $thrown->constraint,
                $thrown->column,
                $thrown->table,
                $thrown->schema,
                $thrown->dataType,
                $thrown->routine,
                $thrown->sql,
            ];
        } catch (InvalidParameterException $thrown) {
            return [$thrown::class, $thrown->getMessage(), $thrown->position, $thrown->phpType, $thrown->postgresType];
        } catch (MultipleStatementsException $thrown) {
            return [$thrown::class, $thrown->getMessage(), $thrown->second];
        }
    }

    /** @return array{PostgresConnection, PostgresConnection} */
    private function both(): array
    {
        return [
            $this->connect(database: TypeDatabase::name()),
            $this->connect(database: TypeDatabase::name(), statementCache: 0),
        ];
    }
}
