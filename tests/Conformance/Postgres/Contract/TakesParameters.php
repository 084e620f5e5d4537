<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests parameters, except for their types.
 *
 * @phpstan-require-extends LinkContract
 */
trait TakesParameters
{
    public function testTheSmallestIntegerMayComeAsAFloat(): void
    {
        self::assertSame(\PHP_INT_MIN, $this->link()->query('SELECT $1::int8', [-(2.0 ** 63)])->value());
    }

    public function testParametersAreNumberedFromOne(): void
    {
        $link = $this->link();
        foreach ([1, 2] as $_) {
            self::assertSame(
                [['b', 'a', 'b']],
                $link->query('SELECT $2::text, $1::text, $2::text', ['a', 'b'])->allNumeric(),
            );
            self::assertSame([[2, 1, 2]], $link->query('SELECT $2::int, $1::int, $2::int', [1, 2])->allNumeric());
        }
    }

    public function testParametersAreNoPartOfTheStatement(): void
    {
        $text = "'; DROP TABLE x; -- \" \\ \$1 %s";

        self::assertSame(
            [[$text, null, true]],
            $this->link()->query('SELECT $1::text, $2::text, $3::bool', [$text, null, true])->allNumeric(),
        );
    }

    public function testTheNumberOfParametersHasToBeRight(): void
    {
        $link = $this->link();
        foreach ([
            'SELECT 1' => [1],
            'SELECT $1::int' => [],
            'SELECT $1::int, $2::int' => [1],
            'SELECT $1::int, $2::text' => [1, 'a', 2],
        ] as $sql => $parameters) {
            foreach (['the first time', 'once the statement is known'] as $when) {
                foreach ([
                    static fn(PostgresLink $link) => $link->query($sql, $parameters),
                    static fn(PostgresLink $link) => iterator_to_array($link->stream($sql, $parameters)),
                ] as $verb) {
                    $message = self::refused(InvalidParameterException::class, $link, $verb)->getMessage();
                    self::assertStringContainsString((string) substr_count($sql, '$'), $message, "{$sql} {$when}");
                    self::assertStringContainsString((string) \count($parameters), $message, "{$sql} {$when}");
                }
            }
        }
    }

    public function testParametersAreAList(): void
    {
        $link = $this->link();
        foreach ([['a' => 1], [1 => 1], ['a' => 'x'], [1 => 'x']] as $parameters) {
            foreach ([1, 2] as $_) {
                // @phpstan-ignore argument.type
                $query = static fn(PostgresLink $link) => $link->query('SELECT $1', $parameters);
                self::assertSame(
                    'Parameters must be a list, not an array with other keys. Write $1 for its first value, $2 for the'
                        . ' second and so on, not :name',
                    self::refused(\LogicException::class, $link, $query)->getMessage(),
                );
            }
        }
    }

    public function testPlaceholdersOfPdoAreReportedWithWhatToWrite(): void
    {
        $link = $this->link();
        foreach ([
            'SELECT ?' => [1],
            'SELECT 1 WHERE 1 = :id' => [1],
            'SELECT 1 WHERE 1 IN (?, ?)' => [1, 2],
            'SELECT 1 WHERE 1 IN (:ids)' => [[1, 2]],
        ] as $sql => $parameters) {
            $query = static fn(PostgresLink $link) => $link->query($sql, $parameters);
            $adviceForLists = ', and compare with a list by = ANY($1), whose parameter is an array';
            $advice = '; write parameters as $1, $2, …, not as ? or :name'
                . (str_contains($sql, ' IN ') ? $adviceForLists : '');
            self::assertStringEndsWith($advice, self::refused(QueryException::class, $link, $query)->getMessage());
        }
    }

    public function testAParameterInQuotesIsReportedWithWhatToWrite(): void
    {
        $link = $this->link();
        $query = static fn(PostgresLink $link) => $link->query("SELECT now() - interval '\$1 days'", [3]);

        self::assertSame(
            'The number of parameters is 1, but the statement needs 0. '
                . "In quotes, \$1 is no parameter: write '%' || \$1 || '%', or \$1 * interval '1 day'",
            self::refused(InvalidParameterException::class, $link, $query)->getMessage(),
        );
        self::assertSame('3 days', $link->query("SELECT (\$1 * interval '1 day')::text", [3])->value());
    }

    public function testAListForInIsReportedWithWhatToWrite(): void
    {
        $link = $this->link();
        $query = static fn(PostgresLink $link) => $link->query('SELECT 1 WHERE 1 IN ($1)', [[1, 2]]);

        self::assertSame(
            "The parameter \$1 is of the type array, which can't be sent as integer: only array and JSON types accept "
                . 'an array. For a list of values, write = ANY($1) in place of IN ($1)',
            self::refused(InvalidParameterException::class, $link, $query)->getMessage(),
        );
        self::assertSame(1, $link->query('SELECT 1 WHERE 1 = ANY($1::int[])', [[1, 2]])->value());
    }

    public function testAValueThatCanNotBeSentIsRefusedBeforeItIs(): void
    {
        $link = $this->link();
        $table = self::table('a text, b int');
        $sql = "INSERT INTO {$table} VALUES (\$1, \$2)";
        foreach ([['a', 1], ['b', null]] as $row) {
            $thrown = self::refused(
                InvalidParameterException::class,
                $link,
                static fn(PostgresLink $link) => $link->execute($sql, [$row[0], ['secret']]),
            );
            self::assertSame(
                [2, 'array', 'int4'],
                [$thrown->position, $thrown->phpType, str_replace('integer', 'int4', (string) $thrown->postgresType)],
            );
            self::assertStringContainsString('$2', $thrown->getMessage());
            self::assertStringNotContainsString('secret', $thrown->getMessage());
            $link->execute($sql, $row);
        }
        self::assertSame([['a', 1], ['b', null]], $link->query("SELECT * FROM {$table} ORDER BY a")->allNumeric());
    }

    public function testANulByteInATextIsNotCutOff(): void
    {
        $link = $this->link();
        $thrown = self::refused(
            InvalidParameterException::class,
            $link,
            static fn(PostgresLink $link) => $link->query('SELECT $1::int, $2::text', [1, "secret\0secret"]),
        );

        self::assertSame([2, 'string', 'text'], [$thrown->position, $thrown->phpType, $thrown->postgresType]);
        self::assertStringNotContainsString('secret', $thrown->getMessage());
        self::assertSame("a\0b", $link->query('SELECT $1::bytea', ["a\0b"])->value());
    }

    public function testBytesThatAreNoTextAreTheServersToRefuse(): void
    {
        $link = $this->link();
        $thrown = self::refused(
            QueryException::class,
            $link,
            static fn(PostgresLink $link) => $link->query('SELECT $1::int, $2::text', [1, "\xFFsecret"]),
        );

        self::assertSame('22021', $thrown->sqlState);
        self::assertStringContainsString('in the parameter $2 (SQLSTATE 22021)', $thrown->getMessage());
        self::assertStringNotContainsString('secret', $thrown->getMessage());
        self::assertSame(
            '22021',
            self::refused(
                QueryException::class,
                $link,
                static fn(PostgresLink $link) => $link->query("SELECT '\xFF'"),
            )->sqlState,
        );
    }

    public function testAParameterMayBeOfAnyTypeThatTheServerGuesses(): void
    {
        $link = $this->link();

        self::assertSame('a', $link->query('SELECT $1', ['a'])->value());
        self::assertSame([3, '1.5'], $link->query('SELECT $1 + 1, $2 + 1.0', [2, '0.5'])->allNumeric()[0]);
        self::assertSame(
            [['x']],
            $link->query('SELECT a FROM (VALUES ($1)) AS v (a) WHERE a = ANY ($2)', ['x', ['x', 'y']])->allNumeric(),
        );
        self::assertSame(1, $link->query('SELECT 1 LIMIT $1', [1])->value());
    }

    public function testANumberIsSentAsWhateverTheStatementWants(): void
    {
        $link = $this->link();
        foreach ([1, 2] as $_) {
            self::assertSame(
                ['5', '5', 5, 5.0, '5', 5],
                $link->query(
                    'SELECT $1::text, $2::numeric, $3::int2, $4::float8, $5::bytea, $6::jsonb',
                    [5, 5, 5, 5, 5, 5],
                )->allNumeric()[0],
            );
            self::assertSame(
                ['0.1', '0.1', 0.1, '0.1'],
                $link->query('SELECT $1::text, $2::numeric, $3::float8, $4::bytea', [0.1, 0.1, 0.1, 0.1])
                    ->allNumeric()[0],
            );
        }
    }
}
