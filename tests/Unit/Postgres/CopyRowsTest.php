<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\CopyRows;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;

final class CopyRowsTest extends TestCase
{
    private const INT = 23;
    private const TEXT = 25;

    public function testArraysAreEncodedAsLines(): void
    {
        $asked = '';
        $rows = CopyRows::of(
            'COPY t (a, b) FROM STDIN',
            [[1, "x\ty\n\\"], ['b' => null, 'a' => '']],
            new Types(),
            static function (string $sql) use (&$asked): array {
                $asked = $sql;

                return [self::INT, self::TEXT];
            },
        );

        self::assertSame(["1\tx\\ty\\n\\\\\n", "\\N\t\n"], iterator_to_array($rows, false));
        self::assertSame('SELECT a, b FROM t', $asked);
    }

    /** @return iterable<string, array{string, string}> a statement, and the query for its columns */
    public static function statements(): iterable
    {
        yield 'columns' => ['COPY t (a, b) FROM STDIN', 'SELECT a, b FROM t'];
        yield 'no columns' => ['copy t from stdin;', 'SELECT * FROM t'];
        yield 'a schema' => ["COPY s.t\n(a) FROM STDIN ; ", 'SELECT a FROM s.t'];
        $columns = implode(', ', array_fill(0, 1_600, '"a long name", c'));
        yield 'many columns' => ["COPY t ({$columns}) FROM STDIN", "SELECT {$columns} FROM t"];
        yield 'names that need quotes' => [
            'COPY "s (1)"."t;""x"("a, ""(b)", c) FROM STDIN',
            'SELECT "a, ""(b)", c FROM "s (1)"."t;""x"',
        ];
    }

    #[DataProvider('statements')]
    public function testTheColumnTypesAreQueriedForArrays(string $sql, string $query): void
    {
        $asked = null;
        CopyRows::of($sql, [[1]], new Types(), static function (string $sql) use (&$asked): array {
            $asked = $sql;

            return [self::INT];
        })->current();

        self::assertSame($query, $asked);
    }

    #[DataProvider('statements')]
    public function testNothingIsQueriedForStrings(string $sql): void
    {
        $rows = CopyRows::of($sql, ["1\n", "2\n"], new Types(), static fn(): array => self::fail('asked'));

        self::assertSame(["1\n", "2\n"], iterator_to_array($rows, false));
    }

    public function testStatementsThatAcceptNoArraysAreRefused(): void
    {
        foreach ([
            'COPY t FROM STDIN (FORMAT csv)',
            'COPY t FROM STDIN WITH CSV',
            'COPY t FROM STDIN WHERE a > 1',
            "COPY t FROM '/a'",
            'SELECT 1',
            '',
        ] as $sql) {
            try {
                CopyRows::of($sql, [[1]], new Types(), static fn(): array => self::fail('asked'));
                self::fail("Not refused: {$sql}");
            } catch (\LogicException $thrown) {
                self::assertStringContainsString('without options', $thrown->getMessage());
            }
        }
    }

    public function testTheInputIsReadItemByItem(): void
    {
        $input = (static function (): \Generator {
            for ($i = 1; true; ++$i) {
                yield 'the same key' => [$i];
            }
        })();
        $rows = CopyRows::of('COPY t FROM STDIN', $input, new Types(), static fn(): array => [self::INT]);
        for ($i = 1; $i < 10; ++$i) {
            self::assertSame(["{$i}\n", [$i]], [$rows->current(), $input->current()]);
            $rows->next();
        }
    }

    public function testAnyIterableIsAccepted(): void
    {
        foreach ([
            new \ArrayIterator([[1], [2]]),
            new \ArrayObject([[1], [2]]),
            [[1], [2]],
            (static fn(): \Generator => yield from [[1], [2]])(),
        ] as $input) {
            self::assertSame(
                ["1\n", "2\n"],
                iterator_to_array(
                    CopyRows::of('COPY t FROM STDIN', $input, new Types(), static fn(): array => [self::INT]),
                    false,
                ),
            );
        }
        self::assertSame(
            [],
            iterator_to_array(CopyRows::of(
                'COPY t FROM STDIN',
                [],
                new Types(),
                static fn(): array => self::fail('asked'),
            )),
        );
    }

    public function testARowThatDoesNotFitIsRefused(): void
    {
        foreach ([[[1, 2], null], [[], null], [[[]], 1]] as [$row, $position]) {
            try {
                iterator_to_array(CopyRows::of(
                    'COPY t FROM STDIN',
                    [[1], $row],
                    new Types(),
                    static fn(): array => [self::INT],
                ));
                self::fail('Not refused');
            } catch (InvalidParameterException $thrown) {
                self::assertSame($position, $thrown->position);
            }
        }
    }

    public function testAnItemThatIsNeitherStringNorArrayIsRefused(): void
    {
        foreach ([[[1], '2'], ['1', [2]], [1], [null], ['1', 2], [[1], null], [new \SplFileInfo('a')]] as $input) {
            try {
                // @phpstan-ignore argument.type
                $rows = CopyRows::of('COPY t FROM STDIN', $input, new Types(), static fn(): array => [self::INT]);
                iterator_to_array($rows);
                self::fail('Not refused: ' . json_encode($input));
            } catch (\LogicException $thrown) {
                self::assertStringContainsString('must be either all strings or all arrays', $thrown->getMessage());
            }
        }
    }
}
