<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\ErrorPlace;

final class ErrorPlaceTest extends TestCase
{
    private const ADVICE = '; write parameters as $1, $2, …, not as ? or :name';
    private const LIST_ADVICE = ', and compare with a list by = ANY($1), whose parameter is an array';

    #[DataProvider('places')]
    public function testItShowsTheTextAroundTheError(string $sql, int $position, string $expected): void
    {
        self::assertSame($expected, ErrorPlace::describe($sql, $position, '42601'));
    }

    /** @return iterable<string, array{string, int, string}> */
    public static function places(): iterable
    {
        yield 'at the beginning' => ['sélect 1', 1, ' in line 1: >>> sélect 1'];
        yield 'after characters of two bytes' => ['SELECT é form x', 10, ' in line 1: SELECT é >>> form x'];
        yield 'at the end' => ['SELECT * FROM', 14, ' in line 1: SELECT * FROM >>>'];
        yield 'in a later line' => ["SELECT 1\nFORM x\nWHERE y", 10, ' in line 2: >>> FORM x'];
        yield 'in a long line' => [
            str_repeat('a', 50) . ' form ' . str_repeat('b', 50),
            52,
            ' in line 1: …' . str_repeat('a', 39) . ' >>> form ' . str_repeat('b', 35) . '…',
        ];
        yield 'after quoted text' => ["SELECT 'it''s é', form x", 19, " in line 1: SELECT '*******', >>> form x"];
        yield 'after an escaped quote' => [
            "SELECT E'it\\'s', x form y", 20, " in line 1: SELECT E'*****', x >>> form y",
        ];
        yield 'after a quote that a setting may escape' => [
            "SELECT 'it\\'s secret' FORM x", 23, " in line 1: SELECT '************** >>> ******",
        ];
        yield 'after escaped backslashes' => [
            "SELECT 'a\\b\\\\', x form y", 19, " in line 1: SELECT '*****', x >>> form y",
        ];
        yield 'after dollar quotes' => [
            "SELECT \$a\$it's \$\$\$a\$, 'b' form x", 27, " in line 1: SELECT \$a\$*******\$a\$, '*' >>> form x",
        ];
        yield 'a string without an end' => ["SELECT 'secret", 8, " in line 1: SELECT >>> '******"];
        yield 'dollar quotes without an end' => ['SELECT $$secret', 8, ' in line 1: SELECT >>> $$******'];
        yield 'after a quote in a comment' => [
            "/* it's */ SELECT 'b' form x", 23, " in line 1: /* it's */ SELECT '*' >>> form x",
        ];
        yield 'after a quote in a name' => [
            "SELECT \"it's\", 'b' form x", 20, " in line 1: SELECT \"it's\", '*' >>> form x",
        ];
        yield 'a question mark' => ['SELECT WHERE id = ?', 20, ' in line 1: SELECT WHERE id = ? >>>' . self::ADVICE];
        yield 'several question marks' => ['VALUES (?, ?)', 10, ' in line 1: VALUES (? >>> , ?)' . self::ADVICE];
        yield 'a name' => ['SELECT WHERE id = :id', 19, ' in line 1: SELECT WHERE id = >>> :id' . self::ADVICE];
        yield 'a question mark as a column' => ['SELECT ?', 9, ' in line 1: SELECT ? >>>' . self::ADVICE];
        yield 'a list of question marks' => [
            'SELECT WHERE id IN (?, ?)', 22,
            ' in line 1: SELECT WHERE id IN (? >>> , ?)' . self::ADVICE . self::LIST_ADVICE,
        ];
        yield 'a list as a name' => [
            'SELECT WHERE id in (:ids)', 21,
            ' in line 1: SELECT WHERE id in ( >>> :ids)' . self::ADVICE . self::LIST_ADVICE,
        ];
        yield 'a parameter in place of a name' => [
            'SELECT FROM $1', 13,
            ' in line 1: SELECT FROM >>> $1; no parameter is allowed there: '
                . 'quote a name with Postgres::quoteIdentifier(), or write a value with its type as $1::interval',
        ];
        yield 'an operator' => ["SELECT a ? 'b' form x", 16, " in line 1: SELECT a ? '*' >>> form x"];
        yield 'a question mark in quotes' => ["SELECT '= ?' form x", 14, " in line 1: SELECT '***' >>> form x"];
        yield 'beyond the end' => ['SELECT', 9, ''];
        yield 'far beyond the end' => ['SELECT', 100_000, ''];
        yield 'before the beginning' => ['SELECT', 0, ''];
        yield 'no UTF-8' => ["SELECT \xFF", 8, ''];
        yield 'a long statement' => [str_repeat(' ', 70_000), 8, ''];
    }

    public function testWithoutAPositionItShowsNothing(): void
    {
        self::assertSame('', ErrorPlace::describe('SELECT 1', null, '42601'));
    }

    public function testOnlySyntaxErrorsMayComeFromParametersOfPdo(): void
    {
        self::assertSame(' in line 1: SELECT x = ? >>>', ErrorPlace::describe('SELECT x = ?', 13, '42703'));
    }
}
