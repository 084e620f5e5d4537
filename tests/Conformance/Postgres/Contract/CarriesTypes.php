<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\JsonMode;
use Spindle\Postgres\JsonNumber;
use Spindle\Postgres\PostgresConnection;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\TypeDatabase;
use Spindle\Tests\Postgres\TypeCases;
use Spindle\Tests\Scale;

/**
 * Tests values of every type, as parameters and in rows.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait CarriesTypes
{
    public function testJsonThatIsReadAndWrittenBackIsTheSameWhereThatIsAskedFor(): void
    {
        $connection = $this->connect(json: JsonMode::Lossless);
        $texts = [
            '{}', '[]', '{"0": 1}', '[{}, []]', '18446744073709551616', '-9223372036854775809', '9223372036854775807',
            '"123"', '"{}"', '""', '123', '1.50', '1.0', '0.1', '12345678901234567890.123456789',
            'true', 'false', '{"a": [1, {"": null, "b": 9223372036854775808}], "number": "1"}',
            '"\\"quoted\\\\ 1.50\\""', '[1.0, 2, "3"]',
        ];
        foreach (['json', 'jsonb'] as $type) {
            $table = self::table("id int, value {$type}, list {$type}[]");
            foreach ($texts as $id => $text) {
                $value = $connection->query("SELECT '{$text}'::{$type}")->value();
                $connection->execute("INSERT INTO {$table} VALUES (\$1, \$2, \$3)", [$id, $value, [$value, $value]]);
                $connection->copyFrom("COPY {$table} FROM STDIN", [[$id + 100, $value, [$value, $value]]]);
            }
            $rows = $connection->query(
                'SELECT value::jsonb::text AS value, list::jsonb[] = ARRAY[value, value]::jsonb[] AS same '
                    . "FROM {$table} ORDER BY id",
            )->all();
            self::assertSame([...$texts, ...$texts], array_column($rows, 'value'), $type);
            self::assertNotContains(false, array_column($rows, 'same'), $type);
        }
        self::assertEquals(
            [new JsonNumber('18446744073709551616'), new \stdClass(), '123'],
            $connection->query("SELECT '[18446744073709551616, {}, \"123\"]'::jsonb")->value(),
        );
        self::assertSame('"1.50"', json_encode(new JsonNumber('1.50')));
        self::assertSame('1.50', $connection->query('SELECT $1::numeric', [new JsonNumber('1.50')])->value());
        self::thrown(\ValueError::class, static fn(): JsonNumber => new JsonNumber('1,5'));
    }

    public function testLosslessJsonOfAFloatIsTheSameFromTheFirstExecution(): void
    {
        $connection = $this->connect(json: JsonMode::Lossless);
        foreach (['1.0' => 1.0, '-0.0' => -0.0, '1.0e+25' => 1e25, '0.5' => 0.5] as $text => $float) {
            foreach ([1, 2] as $_) {
                self::assertSame($text, $connection->query("SELECT \$1::json::text AS \"{$text}\"", [$float])->value());
            }
        }
        foreach ([1, 2] as $_) {
            self::thrown(
                InvalidParameterException::class,
                static fn(): mixed => $connection->query('SELECT $1::json::text AS nan', [\NAN]),
            );
        }
    }

    public function testValuesOfEveryTypeGoBothWays(): void
    {
        $connection = $this->connectToTypes();
        $fresh = $this->connectToTypes(statementCache: 0);
        $differences = [];
        foreach (TypeCases::roundTrips() as $name => [$type, $parameter, $expected]) {
            $sql = "SELECT \$1::{$type}";
            foreach ([
                'the first time' => $fresh->query($sql, [$parameter])->value(...),
                'once the statement is known' => $connection->query($sql, [$parameter])->value(...),
                'again' => $connection->query($sql, [$parameter])->value(...),
                'in a stream' => static fn(): mixed
                    => array_values($connection->stream($sql, [$parameter])->current())[0],
            ] as $when => $value) {
                $differences += self::difference("{$name} {$when}", $expected, $value());
            }
        }
        self::assertSame([], $differences);
    }

    public function testWhatOnlyTheServerMakesIsRead(): void
    {
        $connection = $this->connectToTypes();
        $differences = [];
        foreach (TypeCases::outputs() as $name => [$expression, $expected]) {
            foreach (['the first time', 'again'] as $when) {
                $differences += self::difference(
                    "{$name} {$when}",
                    $expected,
                    $connection->query("SELECT {$expression}")->value(),
                );
            }
        }
        self::assertSame([], $differences);
    }

    public function testValuesAreReadWhateverTheSessionShowsThemAs(): void
    {
        $connection = $this->connectToTypes();
        $differences = [];
        foreach (TypeCases::settings() as $name => [$setting, $text, $expression, $expected]) {
            $connection->query('SELECT set_config($1, $2, false)', [$setting, $text]);
            $differences += self::difference($name, $expected, $connection->query("SELECT {$expression}")->value());
            $differences += self::difference(
                "{$name}, as a parameter",
                $expected,
                $connection->query("SELECT {$expression} AS a WHERE \$1::text = ''", [''])->value(),
            );
            $connection->execute("RESET {$setting}");
            $connection->execute("SET TimeZone = 'UTC'");
        }
        self::assertSame([], $differences);
    }

    public function testValuesThatATypeDoesNotHaveAreRefused(): void
    {
        $connection = $this->connectToTypes();
        foreach (TypeCases::refused() as $name => [$type, $parameter]) {
            foreach (['the first time', 'again'] as $when) {
                $thrown = self::thrown(
                    InvalidParameterException::class,
                    static fn() => $connection->query("SELECT \$1::{$type}", [$parameter]),
                );
                self::assertSame(
                    [1, $type],
                    [$thrown->position, preg_replace('/^integer/', 'int', (string) $thrown->postgresType)],
                    $name,
                );
            }
            self::assertUsable($connection);
        }
    }

    public function testTypesOfTheDatabasesOwnMayBeMadeAtAnyTime(): void
    {
        $connection = $this->connectToTypes();
        self::assertUsable($connection);
        $type = 'type_' . bin2hex(random_bytes(6));
        foreach ([
            "CREATE TYPE {$type} AS ENUM ('a', 'b')" => ['{a,b}', ['a', 'b']],
            "CREATE DOMAIN {$type} AS int" => ['{1,2}', [1, 2]],
        ] as $sql => [$text, $list]) {
            $connection->execute($sql);
            self::assertSame($list, $connection->query("SELECT \$1::{$type}[]", [$list])->value());
            self::assertSame($list, $connection->query("SELECT '{$text}'::{$type}[]")->value());
            $connection->execute(str_contains($sql, 'ENUM') ? "DROP TYPE {$type}" : "DROP DOMAIN {$type}");
        }
    }

    public function testEachByteIsKept(): void
    {
        $connection = $this->connect();
        $bytes = implode('', array_map(\chr(...), range(0, 255)));
        foreach ([$bytes, strrev($bytes), "{$bytes}{$bytes}", '', "\0", "\0\0"] as $value) {
            self::assertSame(
                [[$value, \strlen($value), [$value, null]]],
                $connection->query('SELECT $1::bytea, length($1), ARRAY[$1, NULL]', [$value])->allNumeric(),
            );
        }
        foreach (range(0, 255) as $byte) {
            self::assertSame(
                [\chr($byte), $byte],
                $connection->query('SELECT $1::bytea, get_byte($1, 0)', [\chr($byte)])->allNumeric()[0],
            );
        }
    }

    public function testLargeValuesGoBothWays(): void
    {
        $connection = $this->connect();
        $bytes = str_repeat(random_bytes(1 << 20), Scale::of(40));

        self::assertTrue($connection->query('SELECT $1::bytea', [$bytes])->value() === $bytes);
        $text = bin2hex(substr($bytes, 0, Scale::of(10 << 20)));
        self::assertTrue($connection->query('SELECT $1::text', [$text])->value() === $text);
        self::assertSame(\strlen($bytes), $connection->query('SELECT length($1::bytea)', [$bytes])->value());
    }

    public function testAsManyParametersAsTravelAreTaken(): void
    {
        $connection = $this->connect();
        $sql = static fn(int $count, string $type): string => 'SELECT cardinality(ARRAY[' . implode(
            ',',
            array_map(static fn(int $i): string => "\${$i}::{$type}", range(1, $count)),
        ) . '])';
        foreach (['int' => 1, 'text' => 'a'] as $type => $value) {
            self::assertSame(65_535, $connection->query($sql(65_535, $type), array_fill(0, 65_535, $value))->value());
            $thrown = self::refused(
                InvalidParameterException::class,
                $connection,
                static fn() => $connection->query($sql(65_536, $type), array_fill(0, 65_536, $value)),
            );
            self::assertSame(
                'A statement can have at most 65535 parameters, but 65536 were given',
                $thrown->getMessage(),
            );
        }
    }

    private function connectToTypes(mixed ...$changes): PostgresConnection
    {
        return $this->connect(...['database' => TypeDatabase::name(), ...$changes]);
    }

    /** @return array<string, array{expected: mixed, actual: mixed}> empty when the values are equal */
    private static function difference(string $name, mixed $expected, mixed $actual): array
    {
        [$expected, $actual] = [TypeCases::comparable($expected), TypeCases::comparable($actual)];

        return $expected === $actual ? [] : [$name => ['expected' => $expected, 'actual' => $actual]];
    }
}
