<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Protocol\EncodedRows;
use Spindle\Postgres\Internal\Protocol\MessageReader;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Result;
use Spindle\Postgres\UnexpectedResultException;
use Spindle\Tests\Conformance\Postgres\Person;
use Spindle\Tests\Postgres\Letter;
use Spindle\Tests\Postgres\Message;

/** Tests a result with rows in each form. */
final class ResultTest extends TestCase
{
    private const INT = 23;
    private const TEXT = 25;
    private const BOOL = 16;
    private const INTERVAL = 1186;

    /** @return iterable<string, array{\Closure(list<list<string|null>>): ?EncodedRows}> */
    public static function forms(): iterable
    {
        yield 'messages one by one' => [self::oneByOne(...)];
        yield 'messages at once' => [self::atOnce(...)];
    }

    /** @param \Closure(list<list<string|null>>): ?EncodedRows $rows */
    #[DataProvider('forms')]
    public function testRowsAreReturnedInEachForm(\Closure $rows): void
    {
        $texts = array_map(
            static fn(int $i): array => ["{$i}", $i % 3 === 0 ? null : "x{$i}", $i % 2 === 0 ? 't' : 'f'],
            range(1, 1_000),
        );
        $lists = array_map(
            static fn(int $i): array => [$i, $i % 3 === 0 ? null : "x{$i}", $i % 2 === 0],
            range(1, 1_000),
        );
        $named = array_map(static fn(array $list): array => array_combine(['a', 'b', 'c'], $list), $lists);
        $result = self::of(['a' => self::INT, 'b' => self::TEXT, 'c' => self::BOOL], $rows($texts));

        self::assertSame($named, $result->all());
        self::assertSame($named, iterator_to_array($result));
        self::assertSame($lists, $result->allNumeric());
        self::assertSame(range(1, 1_000), $result->column());
        self::assertSame(['a', 'b', 'c'], $result->columnNames());
        self::assertCount(1_000, $result);
    }

    /** @param \Closure(list<list<string|null>>): ?EncodedRows $rows */
    #[DataProvider('forms')]
    public function testOneReturnsTheOnlyRow(\Closure $rows): void
    {
        $result = self::of(['a' => self::INT, 'b' => self::TEXT], $rows([['1', null]]));

        self::assertSame(['a' => 1, 'b' => null], $result->one());
        self::assertSame(1, $result->value());
    }

    /** @param \Closure(list<list<string|null>>): ?EncodedRows $rows */
    #[DataProvider('forms')]
    public function testNoRowIsNull(\Closure $rows): void
    {
        $result = self::of(['a' => self::INT], $rows([]));

        self::assertSame(
            [null, null, [], [], []],
            [$result->one(), $result->value(), $result->all(), $result->allNumeric(), $result->column()],
        );
    }

    /** @param \Closure(list<list<string|null>>): ?EncodedRows $rows */
    #[DataProvider('forms')]
    public function testValuesThatAreNotReadAreNotDecoded(\Closure $rows): void
    {
        $result = self::of(['a' => self::INT, 'b' => self::INTERVAL], $rows([['1', 'nonsense'], ['2', null]]));

        self::assertCount(2, $result);
        self::assertThrows(ProtocolException::class, $result->all(...));
        self::assertThrows(ProtocolException::class, $result->allNumeric(...));
        self::assertSame([[1, 'nonsense'], [2, null]], $result->scalars());
        self::assertThrows(ProtocolException::class, static fn(): array => iterator_to_array($result));
        self::assertSame(
            1,
            self::of(['a' => self::INT, 'b' => self::INTERVAL], $rows([['1', 'nonsense']]))->value(),
        );
    }

    /** @param \Closure(list<list<string|null>>): ?EncodedRows $rows */
    #[DataProvider('forms')]
    public function testUnexpectedRowsAndColumnsAreReported(\Closure $rows): void
    {
        $two = self::of(['a' => self::INT], $rows([['1'], ['2']]));
        $twice = self::of(['a' => self::INT, 'b' => self::INT], $rows([['1', '2']]), ['a', 'a']);
        foreach ([
            'the result has 2' => [$two->one(...), $two->value(...)],
            '"a"' => [$twice->one(...), $twice->all(...)],
        ] as $message => $methods) {
            foreach ($methods as $method) {
                self::assertStringContainsString(
                    $message,
                    self::assertThrows(UnexpectedResultException::class, $method),
                );
            }
        }
        self::assertThrows(UnexpectedResultException::class, static fn(): array => iterator_to_array($twice));
        self::assertSame([[1, 2]], $twice->allNumeric());
    }

    public function testAStatementWithoutRowsHasNone(): void
    {
        $result = new Result(null, null, 7);

        self::assertSame(
            [7, [], 0, [], [], [], null],
            [
                $result->affectedRows,
                $result->columnNames(),
                \count($result),
                $result->all(),
                $result->allNumeric(),
                $result->scalars(),
                $result->one(),
            ],
        );
        self::assertThrows(UnexpectedResultException::class, $result->value(...));
        self::assertThrows(UnexpectedResultException::class, $result->column(...));
    }

    /** @param \Closure(list<list<string|null>>): ?EncodedRows $rows */
    #[DataProvider('forms')]
    public function testRowsBecomeObjects(\Closure $rows): void
    {
        $result = self::of(
            ['kind' => self::TEXT, 'first_name' => self::TEXT, 'id' => self::INT],
            $rows([['b', 'Ada', '1'], ['a', null, '2']]),
        );

        self::assertEquals(
            [new Person(1, 'Ada', Letter::B), new Person(2, null, Letter::A)],
            $result->mapTo(Person::class),
        );
    }

    public function testAParameterWithTheExactNameOfAColumnComesFirst(): void
    {
        $class = (new class {
            public function __construct(public ?string $userId = null, public ?string $user_id = null) {}
        })::class;
        $both = self::of(['user_id' => self::TEXT, 'userId' => self::TEXT], self::atOnce([['snake', 'camel']]));
        $one = self::of(['user_id' => self::TEXT], self::atOnce([['snake']]));

        self::assertEquals([new $class('camel', 'snake')], $both->mapTo($class));
        self::assertEquals([new $class(null, 'snake')], $one->mapTo($class));
    }

    public function testRowsOfAWrongLengthAreRefused(): void
    {
        $columns = ['a' => self::TEXT, 'b' => self::TEXT];
        foreach ([
            'fewer values' => Message::dataRow('1'),
            'more values' => Message::dataRow('1', '2', '3'),
            'a value that is too long' => Message::of('D', "\0\2" . pack('N', 1) . '1' . pack('N', 9) . '2'),
            'bytes behind the last value' => Message::of('D', "\0\2" . pack('N', 1) . '1' . pack('N', 1) . '2xxx'),
            'a value that ends within its length' => Message::of('D', "\0\2" . pack('N', 1) . "1\0\0"),
            'a huge value' => Message::of('D', "\0\2" . pack('N', 0x7FFF_FFFF) . '1'),
            'no values' => Message::dataRow(),
        ] as $name => $bytes) {
            foreach ([
                $bytes,
                Message::dataRow('1', '2') . $bytes,
                $bytes . Message::dataRow('1', '2'),
            ] as $chunk) {
                $rows = new EncodedRows(false, self::padded($chunk), $chunk === $bytes ? 1 : 2);
                $result = self::of($columns, $rows);
                self::assertThrows(ProtocolException::class, $result->allNumeric(...), $name);
            }
        }
    }

    /** @param list<list<string|null>> $rows */
    private static function oneByOne(array $rows): ?EncodedRows
    {
        return self::messages(array_map(static fn(array $row): array => [$row], $rows));
    }

    /** @param list<list<string|null>> $rows */
    private static function atOnce(array $rows): ?EncodedRows
    {
        return self::messages($rows === [] ? [] : [$rows]);
    }

    /** Appends the most misleading padding. */
    private static function padded(string $messages): string
    {
        return $messages . str_repeat("\xFF", MessageReader::PADDING);
    }

    /** @param list<list<list<string|null>>> $chunks rows of each chunk */
    private static function messages(array $chunks): ?EncodedRows
    {
        $encoded = null;
        foreach ($chunks as $rows) {
            $messages = self::padded(
                implode('', array_map(static fn(array $row): string => Message::dataRow(...$row), $rows)),
            );
            $encoded === null
                ? $encoded = new EncodedRows(false, $messages, max(1, \count($rows)))
                : $encoded->add($messages, max(1, \count($rows)));
        }

        return $encoded;
    }

    /**
     * @param array<string, int> $columns types by name
     * @param list<string>|null $names other names for the columns
     */
    private static function of(array $columns, ?EncodedRows $rows, ?array $names = null): Result
    {
        return new Result(
            new Columns($names ?? array_keys($columns), array_values($columns), new Types()),
            $rows,
            $rows->count ?? 0,
        );
    }

    /** @param class-string<\Throwable> $class */
    private static function assertThrows(string $class, \Closure $work, string $name = ''): string
    {
        try {
            $work();
        } catch (\Throwable $thrown) {
            self::assertInstanceOf($class, $thrown, "{$name} {$thrown}");

            return $thrown->getMessage();
        }
        self::fail("No {$class} is thrown: {$name}");
    }
}
