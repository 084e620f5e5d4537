<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Spindle\Postgres\Range;

/**
 * Values of every type, as data for tests that send and read them.
 *
 * Tests execute {@see self::SETUP} once in the database, set the session's TimeZone to UTC, and compare values by
 * {@see self::comparable()}.
 */
final class TypeCases
{
    public const SETUP = <<<'SQL'
        DROP SCHEMA IF EXISTS type_cases CASCADE;
        CREATE SCHEMA type_cases;
        CREATE TYPE type_cases.mood AS ENUM ('sad', 'so, so', '"ok"', 'N\A', 'NULL', '');
        CREATE TYPE type_cases.pair AS (a int, b text);
        CREATE DOMAIN type_cases.percent AS int4 CHECK (VALUE BETWEEN 0 AND 100);
        CREATE DOMAIN type_cases.half AS type_cases.percent CHECK (VALUE <= 50);
        CREATE DOMAIN type_cases.document AS jsonb;
        CREATE DOMAIN type_cases.digest AS bytea;
        CREATE DOMAIN type_cases.vector AS float8[];
        CREATE TYPE type_cases.textrange AS RANGE (subtype = text);
        CREATE TYPE type_cases.bytearange AS RANGE (subtype = bytea);
        CREATE TYPE type_cases.halfrange AS RANGE (subtype = type_cases.half);
        SQL;

    /**
     * Returns cases for `SELECT $1::type`.
     *
     * @return iterable<string, array{string, mixed, mixed}> the type, a parameter, the result
     */
    public static function roundTrips(): iterable
    {
        foreach ([
            self::scalars(),
            self::dates(),
            self::intervals(),
            self::json(),
            self::arrays(),
            self::ranges(),
            self::own(),
        ] as $group) {
            foreach ($group as $name => $case) {
                yield $name => [$case[0], $case[1], \array_key_exists(2, $case) ? $case[2] : $case[1]];
            }
        }
    }

    /** @return iterable<string, array{string, mixed}> an expression, its result */
    public static function outputs(): iterable
    {
        yield 'NULL' => ['NULL', null];
        yield 'a string without a type' => ["'abc'", 'abc'];
        yield 'void' => ['pg_sleep(0)', ''];
        yield 'a record' => ["ROW(1, 'a b', NULL)", '(1,"a b",)'];
        yield 'an array of records' => ["ARRAY[ROW(1, 'a'), ROW(2, 'b')]", ['(1,a)', '(2,b)']];
        yield 'an array that counts from two' => ["'[2:3]={7,8}'::int[]", [7, 8]];
        yield 'a matrix that counts from elsewhere' => ["'[-1:0][5:6]={{1,NULL},{3,4}}'::int[]", [[1, null], [3, 4]]];
        yield 'int2vector' => ["'1 2'::int2vector", '1 2'];
        yield 'a row type of the catalog' => ["(SELECT 'x'::information_schema.sql_identifier)", 'x'];
        yield 'an array of a domain of the catalog' => ["ARRAY['x'::information_schema.sql_identifier]", ['x']];
        yield 'anyarray' => ['(SELECT most_common_vals FROM pg_stats WHERE false)', null];
        yield 'jsonb with a number of more than 64 bits' => [
            "'[123456789012345678901234567890]'::jsonb",
            ['123456789012345678901234567890'],
        ];
        yield 'json with an escaped NUL' => ["'\"a\\u0000b\"'::json", "a\0b"];
        yield 'json with empty and numeric keys' => ["'{\"\": 1, \"7\": 2}'::json", ['' => 1, 7 => 2]];
        yield 'jsonb null' => ["'null'::jsonb", null];
        yield 'the first date' => ["'4714-11-24 BC'::date", self::date(-4713, 11, 24)];
        yield 'the last date' => ["'5874897-12-31'::date", self::date(5_874_897, 12, 31)];
        yield 'the first timestamp' => ["'4714-11-24 00:00:00 BC'::timestamp", self::date(-4713, 11, 24)];
        yield 'the last timestamp' => [
            "'294276-12-31 23:59:59.999999'::timestamp",
            self::date(294_276, 12, 31)->setTime(23, 59, 59, 999_999),
        ];
        yield 'the last timestamptz' => [
            "'294276-12-31 23:59:59.999999+00'::timestamptz",
            self::date(294_276, 12, 31)->setTime(23, 59, 59, 999_999),
        ];
        yield 'a range that is given empty' => ["'[3,3)'::int4range", Range::empty()];
    }

    /**
     * @return iterable<string, array{string, string, string, mixed}> a setting of the session, its value, an
     *                                                                expression, its result
     */
    public static function settings(): iterable
    {
        $utc = new \DateTimeImmutable('2024-02-29 12:00:00.5 UTC');
        yield 'an offset of half an hour' => [
            'TimeZone',
            'Asia/Kolkata',
            "'2024-02-29 12:00:00.5+00'::timestamptz",
            $utc->setTimezone(new \DateTimeZone('+05:30')),
        ];
        yield 'a negative offset' => [
            'TimeZone',
            'America/St_Johns',
            "'2024-02-29 12:00:00.5+00'::timestamptz",
            $utc->setTimezone(new \DateTimeZone('-03:30')),
        ];
        yield 'an offset with seconds' => [
            'TimeZone',
            'Europe/Paris',
            "'1900-01-01 00:00:00.25+00'::timestamptz",
            (new \DateTimeImmutable('1900-01-01 00:00:00.25 UTC'))->setTimezone(new \DateTimeZone('+00:09:21')),
        ];
        yield 'an offset with seconds before Christ' => [
            'TimeZone',
            'Europe/Paris',
            "'0044-03-15 12:00:00+00 BC'::timestamptz",
            self::date(-43, 3, 15)->setTime(12, 0)->setTimezone(new \DateTimeZone('+00:09:21')),
        ];
        yield 'bytea in the escape format' => ['bytea_output', 'escape', "'\\x00615c27ff0a'::bytea", "\0a\\'\xFF\n"];
        yield 'an array of bytea in the escape format' => [
            'bytea_output',
            'escape',
            "ARRAY['\\x00615c27ff0a'::bytea, '']",
            ["\0a\\'\xFF\n", ''],
        ];
        foreach (self::intervals() as $name => $case) {
            $parameter = $case[1];
            if ($parameter instanceof \DateInterval && $parameter->invert === 0) {
                $seconds = number_format($parameter->s + $parameter->f, 6, '.', '');
                $text = $parameter->format("P%yY%mM%dDT%hH%iM{$seconds}S");
                yield "{$name}, in ISO 8601" => [
                    'IntervalStyle',
                    'iso_8601',
                    "'{$text}'::interval",
                    $case[2] ?? $parameter,
                ];
            }
        }
        yield 'an array of intervals in ISO 8601' => [
            'IntervalStyle',
            'iso_8601',
            "'{1 day -2 hours,NULL}'::interval[]",
            [self::interval(d: 1, h: -2), null],
        ];
        yield 'floats with fewer digits' => ['extra_float_digits', '-3', "'0.1'::float8", 0.1];
    }

    /**
     * @return iterable<string, array{string, mixed}> a type, and a parameter that is refused for it before it is sent
     */
    public static function refused(): iterable
    {
        yield 'a NUL byte' => ['text', "a\0b"];
        yield 'a NUL byte in an array' => ['text[]', ["a\0b"]];
        yield 'an array for a number' => ['int', [1]];
        yield 'an array for a text' => ['text', ['a']];
        yield 'a closure' => ['text', static fn(): string => ''];
        yield 'a closure for JSON' => ['jsonb', static fn(): string => ''];
        yield 'a resource' => ['text', \STDERR];
        yield 'an object' => ['text', new \stdClass()];
        yield 'a date for a number' => ['int', new \DateTimeImmutable()];
        yield 'false for bytea' => ['bytea', false];
        yield 'false for a date' => ['date', false];
        yield 'a map for an array' => ['int[]', ['a' => 1]];
        yield 'a list beside numbers' => ['int[]', [1, [2]]];
        yield 'a number beside lists' => ['int[]', [[1], 2]];
        yield 'null beside lists' => ['int[]', [[1], null]];
        yield 'seven dimensions' => ['int[]', [[[[[[[1]]]]]]]];
        yield 'an array that holds itself' => ['int[]', self::endless()];
        yield 'an array that holds itself, as JSON' => ['jsonb', self::endless()];
        yield 'infinity in JSON' => ['jsonb', [\INF]];
        yield 'bytes that are no UTF-8 in JSON' => ['jsonb', ["\xFF"]];
        yield 'a range with a bound of another type' => ['int4range', new Range([1], 2)];
        yield 'a multirange of something else' => ['int4multirange', [[1, 2]]];
        yield 'null in a multirange' => ['int4multirange', [null]];
        yield 'an interval that has no number' => ['interval', \DateInterval::createFromDateString('next weekday')];
    }

    /**
     * Returns a form of the value for assertSame(). NAN equals itself, dates are compared by local time and offset, and
     * types count.
     */
    public static function comparable(mixed $value): mixed
    {
        return match (true) {
            \is_float($value) => 'float ' . \sprintf('%.*H', -1, $value),
            \is_array($value) => array_map(self::comparable(...), self::ordered($value)),
            $value instanceof Range => ['range', ...array_map(self::comparable(...), get_object_vars($value))],
            $value instanceof \DateTimeImmutable => \sprintf(
                '%s %+d',
                $value->format('Y-m-d H:i:s.u'),
                $value->getOffset(),
            ),
            $value instanceof \DateInterval => 'interval '
                . $value->format('%R %y %m %d %h %i %s ')
                . (int) round($value->f * 1e6),
            default => $value,
        };
    }

    public static function interval(
        int $y = 0,
        int $m = 0,
        int $d = 0,
        int $h = 0,
        int $i = 0,
        int $s = 0,
        int $microseconds = 0,
    ): \DateInterval {
        $interval = new \DateInterval('PT0S');
        foreach (['y' => $y, 'm' => $m, 'd' => $d, 'h' => $h, 'i' => $i, 's' => $s] as $property => $value) {
            $interval->{$property} = $value;
        }
        $interval->f = ($microseconds + ($microseconds <=> 0) * 0.1) / 1e6; // PHP truncates to whole microseconds

        return $interval;
    }

    /** @return iterable<string, array{0: string, 1: mixed, 2?: mixed}> */
    private static function scalars(): iterable
    {
        yield 'null' => ['int', null];
        yield 'null for bytea' => ['bytea', null];
        yield 'true' => ['bool', true];
        yield 'false' => ['bool', false];
        yield '1 for bool' => ['bool', 1, true];
        yield '0 for bool' => ['bool', 0, false];
        yield 'a word for bool' => ['bool', 'off', false];
        yield 'int2' => ['int2', -32_768];
        yield 'int4' => ['int4', 2_147_483_647];
        yield 'int8, the least' => ['int8', \PHP_INT_MIN];
        yield 'int8, the greatest' => ['int8', \PHP_INT_MAX];
        yield 'oid' => ['oid', 4_294_967_295];
        yield 'a string for an int' => ['int', '42', 42];
        yield 'a whole float for an int' => ['int', 3.0, 3];
        yield 'a large whole float for an int8' => ['int8', 1e18, 1_000_000_000_000_000_000];
        yield 'minus zero for an int' => ['int', -0.0, 0];
        yield 'true for an int' => ['int', true, 1];
        yield 'false for a numeric' => ['numeric', false, '0'];
        yield 'true for a text' => ['text', true, 'true'];
        foreach ([
            0.1,
            0.1 + 0.2,
            -0.0,
            1e-310,
            \PHP_FLOAT_MIN,
            \PHP_FLOAT_MAX,
            \PHP_FLOAT_EPSILON,
            1e25,
            123456789.123456789,
            \INF,
            -\INF,
            \NAN,
        ] as $float) {
            yield \sprintf('float8 %.*H', -1, $float) => ['float8', $float];
        }
        yield 'float4' => ['float4', 0.1];
        yield 'float4 infinity' => ['float4', -\INF];
        yield 'int for a float' => ['float8', 5, 5.0];
        yield 'numeric' => ['numeric', '123456789012345678901234567890.000100'];
        yield 'numeric NaN' => ['numeric', \NAN, 'NaN'];
        yield 'numeric of an int' => ['numeric', 7, '7'];
        yield 'numeric of a float' => ['numeric', 0.1, '0.1'];
        yield 'money' => ['money', '$12.50'];
        yield 'text' => ['text', "ä'\"\\ \t\r\n\x01\u{1F600}{},"];
        yield 'an empty text' => ['text', ''];
        yield 'a text that looks like NULL' => ['text', 'NULL'];
        yield 'a text of an int' => ['text', 5, '5'];
        yield 'a Stringable' => ['text', new \SplFileInfo('/a/b'), '/a/b'];
        yield 'an enum of PHP' => ['text', Letter::B, 'b'];
        yield 'an enum of PHP with numbers' => ['int', Digit::Two, 2];
        yield 'varchar' => ['varchar(3)', 'abcdef', 'abc'];
        yield 'char' => ['char(3)', 'a', 'a  '];
        yield '"char"' => ['"char"', 'x'];
        yield 'name' => ['name', 'pg_class'];
        yield 'regclass' => ['regclass', 'pg_class'];
        yield 'uuid' => ['uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'];
        yield 'inet' => ['inet', '10.1.2.3/8'];
        yield 'cidr' => ['cidr', '2001:db8::/32'];
        yield 'macaddr' => ['macaddr', '08:00:2b:01:02:03'];
        yield 'bit' => ['bit(4)', '1010'];
        yield 'varbit' => ['varbit', '101'];
        yield 'point' => ['point', '(1,2)'];
        yield 'xml' => ['xml', '<a>b</a>'];
        yield 'tsvector' => ['tsvector', "'a':1 'b':2"];
        yield 'time' => ['time', '23:59:59.999999'];
        yield 'timetz' => ['timetz', '10:00:00+05:30'];
        yield 'xid8' => ['xid8', '18446744073709551615'];
        yield 'pg_lsn' => ['pg_lsn', '16/B374D848'];
        yield 'bytea' => ['bytea', implode('', array_map(\chr(...), range(0, 255)))];
        yield 'an empty bytea' => ['bytea', ''];
        yield 'bytea that looks like hexadecimal' => ['bytea', '\x6162'];
        yield 'bytea that looks like the escape format' => ['bytea', 'a\\\\b\\141'];
        yield 'bytea of a Stringable' => ['bytea', new \SplFileInfo('a\\b'), 'a\\b'];
        yield 'bytea of an int' => ['bytea', 65, '65'];
    }

    /** @return iterable<string, array{0: string, 1: mixed, 2?: mixed}> */
    private static function dates(): iterable
    {
        yield 'date' => ['date', self::date(2024, 2, 29)];
        yield 'the first date of PHP with four digits' => ['date', self::date(1, 1, 1)];
        yield 'a date of the year 0' => ['date', self::date(0, 12, 31)];
        yield 'a date before Christ' => ['date', self::date(-43, 3, 15)];
        yield 'a date of five digits' => ['date', self::date(10_000, 1, 1)];
        yield 'a date of seven digits' => ['date', self::date(5_874_897, 12, 31)];
        yield 'infinity for a date' => ['date', \INF];
        yield '-infinity for a date' => ['date', -\INF];
        yield 'a string for a date' => ['date', '2024-02-29', self::date(2024, 2, 29)];
        yield 'a date of another time zone' => [
            'date',
            new \DateTimeImmutable('2024-01-01 00:30:00+02:00'),
            self::date(2024, 1, 1),
        ];
        yield 'a mutable date' => ['date', new \DateTime('2024-01-01 UTC'), self::date(2024, 1, 1)];
        yield 'timestamp' => ['timestamp', self::date(2024, 2, 29)->setTime(12, 34, 56, 789_012)];
        yield 'timestamp with few microseconds' => ['timestamp', self::date(1999, 12, 31)->setTime(23, 59, 59, 1)];
        yield 'timestamp of midnight' => ['timestamp', self::date(2024, 2, 29)];
        yield 'timestamp before 1970' => ['timestamp', self::date(1969, 12, 31)->setTime(23, 59, 59, 999_999)];
        yield 'timestamp before Christ' => ['timestamp', self::date(-4712, 1, 1)->setTime(1, 2, 3, 40)];
        yield 'timestamp of six digits' => ['timestamp', self::date(294_276, 12, 31)->setTime(23, 59, 59, 999_999)];
        yield 'timestamp of another time zone' => [
            'timestamp',
            new \DateTimeImmutable('2024-01-01 00:30:00+02:00'),
            self::date(2024, 1, 1)->setTime(0, 30),
        ];
        yield 'infinity for a timestamp' => ['timestamp', \INF];
        yield 'timestamptz' => ['timestamptz', self::date(2024, 2, 29)->setTime(12, 34, 56, 789_012)];
        yield 'timestamptz of another time zone' => [
            'timestamptz',
            new \DateTimeImmutable('2024-01-01 00:30:00.5+05:30'),
            self::date(2023, 12, 31)->setTime(19, 0, 0, 500_000),
        ];
        yield 'timestamptz of an offset with seconds' => [
            'timestamptz',
            new \DateTimeImmutable('1900-01-01 00:09:21.25', new \DateTimeZone('+00:09:21')),
            self::date(1900, 1, 1)->setTime(0, 0, 0, 250_000),
        ];
        yield 'timestamptz before Christ' => [
            'timestamptz',
            self::date(-43, 3, 15)->setTimezone(new \DateTimeZone('-08:00')),
            self::date(-43, 3, 15),
        ];
        yield '-infinity for a timestamptz' => ['timestamptz', -\INF];
    }

    /** @return iterable<string, array{0: string, 1: mixed, 2?: mixed}> */
    private static function intervals(): iterable
    {
        yield 'no interval' => ['interval', self::interval()];
        yield 'interval' => ['interval', self::interval(1, 2, 3, 4, 5, 6, 789_012)];
        yield 'one of each' => ['interval', self::interval(1, 1, 1, 1, 1, 1, 1)];
        yield 'negative interval' => ['interval', self::interval(-1, -2, -3, -4, -5, -6, -789_012)];
        yield 'interval of both signs' => ['interval', self::interval(-1, -2, 3, -4, -5, -6)];
        yield 'interval of both signs, otherwise' => ['interval', self::interval(0, 2, -3, 4, 5, 6)];
        yield 'half a second less' => ['interval', self::interval(microseconds: -500_000)];
        yield 'less than a second, after a day' => ['interval', self::interval(d: 1, microseconds: -1)];
        yield 'many hours' => ['interval', self::interval(h: 2_000_000_000, i: 59, s: 59, microseconds: 999_999)];
        yield 'interval of minutes and seconds' => [
            'interval',
            self::interval(i: 100, s: 100),
            self::interval(h: 1, i: 41, s: 40),
        ];
        yield 'interval of two dates' => [
            'interval',
            self::date(2024, 3, 15)->diff(self::date(2024, 1, 14)),
            self::interval(m: -2, d: -1),
        ];
        yield 'interval of a text of PHP' => [
            'interval',
            \DateInterval::createFromDateString('2 weeks ago'),
            self::interval(d: -14),
        ];
        yield 'interval of a text' => ['interval', '1 day 02:00', self::interval(d: 1, h: 2)];
    }

    /** @return iterable<string, array{0: string, 1: mixed, 2?: mixed}> */
    private static function json(): iterable
    {
        $value = [
            'list' => [1, 2.5, 1.0, '3', null, true, []],
            'ä/"\\' => ['b' => "\u{1F600}"],
            'least' => \PHP_INT_MIN,
            'float' => 0.1 + 0.2,
        ];
        foreach (['json', 'jsonb'] as $type) {
            yield "{$type} object" => [$type, ['a' => $value], ['a' => $value]];
            yield "{$type} list" => [$type, [1, [2, [3]]]];
            yield "{$type}, an empty list" => [$type, []];
            yield "{$type} of an object" => [$type, (object) ['a' => (object) []], ['a' => []]];
            yield "{$type} of a JsonSerializable" => [$type, self::serializable(), ['a' => 0.1]];
            yield "{$type} of JSON" => [$type, '{"a": "b"}', ['a' => 'b']];
            yield "{$type} true" => [$type, true];
            yield "{$type} int" => [$type, -5];
            yield "{$type} float" => [$type, 0.1];
            yield "{$type} of an enum" => [$type, Letter::B, 'b'];
        }
        yield 'jsonpath' => ['jsonpath', '$."a"'];
    }

    /** @return iterable<string, array{0: string, 1: mixed, 2?: mixed}> */
    private static function arrays(): iterable
    {
        yield 'an empty array' => ['int[]', []];
        yield 'an array of nothing but empty ones' => ['int[]', [[], []], []];
        yield 'int[]' => ['int[]', [1, null, -3]];
        yield 'int[] of other types' => ['int[]', ['1', 2.0, true, Digit::Two], [1, 2, 1, 2]];
        yield 'int[][]' => ['int[]', [[1, 2], [3, null]]];
        yield 'six dimensions' => ['int[]', [[[[[[1, 2]]]]]]];
        yield 'int[] of a text' => ['int[]', '{1,2}', [1, 2]];
        yield 'bool[]' => ['bool[]', [true, null, false]];
        yield 'float8[]' => ['float8[]', [0.1, \INF, -\INF, \NAN, -0.0, 1e300]];
        yield 'numeric[]' => ['numeric[]', ['1.10', 'NaN']];
        yield 'text[]' => [
            'text[]',
            [
                '',
                'a',
                'NULL',
                null,
                'null',
                ' a ',
                'a,b',
                '{',
                '}',
                '"',
                '\\',
                '\\"',
                "a\nb\tc",
                "'",
                'ä',
                '\\N',
                '\x61',
            ],
        ];
        yield 'text[][]' => ['text[]', [['a"', null], ['\\', '{}']]];
        yield 'text[] that looks like bounds' => ['text[]', ['[1:2]={', '=']];
        yield 'text[] of other types' => [
            'text[]',
            [1, 2.5, true, Letter::B, new \SplFileInfo('a"b')],
            ['1', '2.5', 'true', 'b', 'a"b'],
        ];
        yield 'varchar[]' => ['varchar[]', ['a', 'b']];
        yield 'uuid[]' => ['uuid[]', ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']];
        yield 'bytea[]' => ['bytea[]', ["\0\xFF\\\"", '', '\x61', null]];
        yield 'date[]' => ['date[]', [self::date(2024, 2, 29), null, \INF, self::date(-43, 3, 15)]];
        yield 'timestamp[]' => ['timestamp[]', [[self::date(2024, 2, 29)], [-\INF]]];
        yield 'timestamptz[]' => ['timestamptz[]', [self::date(2024, 2, 29)->setTime(1, 2, 3, 4)]];
        yield 'interval[]' => ['interval[]', [self::interval(1, 2, -3, 4), null]];
        yield 'json[]' => ['json[]', [['a' => [1, '"']], [1, 2], 5, null, true]];
        yield 'jsonb[] of JSON' => ['jsonb[]', ['{"a": "\""}', 'null'], [['a' => '"'], null]];
        yield 'box[]' => ['box[]', ['(2,2),(1,1)', null, '(4,4),(3,3)']];
        yield 'box[][]' => ['box[]', [['(2,2),(1,1)'], ['(4,4),(3,3)']]];
        yield 'point[]' => ['point[]', ['(1,2)']];
        yield 'int4range[]' => ['int4range[]', [new Range(1, 3), Range::empty(), null, new Range()]];
        yield 'int4multirange[]' => ['int4multirange[]', [[new Range(1, 3), new Range(5, 7)], [], null]];
    }

    /** @return iterable<string, array{0: string, 1: mixed, 2?: mixed}> */
    private static function ranges(): iterable
    {
        yield 'int4range' => ['int4range', new Range(1, 5)];
        yield 'int4range with its upper bound' => ['int4range', new Range(1, 5, true, true), new Range(1, 6)];
        yield 'int8range without its lower bound' => ['int8range', new Range(1, null, false), new Range(2, null)];
        yield 'a range without bounds' => ['int4range', new Range()];
        yield 'a range without bounds that has them' => ['int4range', new Range(null, null, true, true), new Range()];
        yield 'an empty range' => ['int4range', Range::empty()];
        yield 'a range of a text' => ['int4range', '[1,2]', new Range(1, 3)];
        yield 'numrange' => ['numrange', new Range('1.50', '2', false, true)];
        yield 'numrange of other types' => ['numrange', new Range(1, 2.5), new Range('1', '2.5')];
        yield 'daterange' => ['daterange', new Range(self::date(2024, 1, 1), self::date(2024, 2, 1))];
        yield 'daterange to infinity' => ['daterange', new Range(self::date(2024, 1, 1), \INF)];
        yield 'tsrange' => [
            'tsrange',
            new Range(self::date(-43, 3, 15)->setTime(1, 2, 3, 4), self::date(2024, 2, 1), false, true),
        ];
        yield 'tstzrange' => ['tstzrange', new Range(null, self::date(2024, 1, 1)->setTime(0, 0, 0, 5))];
        yield 'int4multirange' => ['int4multirange', [new Range(1, 3), new Range(5, 7)]];
        yield 'a multirange that is put in order' => [
            'int4multirange',
            [new Range(5, 7), Range::empty(), new Range(1, 6)],
            [new Range(1, 7)],
        ];
        yield 'an empty multirange' => ['int4multirange', []];
        yield 'a multirange without bounds' => ['nummultirange', [new Range()]];
        yield 'tsmultirange' => [
            'tsmultirange',
            [new Range(null, self::date(2024, 1, 1)), new Range(self::date(2024, 2, 1), \INF, true, true)],
        ];
        yield 'tstzmultirange' => [
            'tstzmultirange',
            [new Range(self::date(2024, 1, 1), self::date(2024, 2, 1)), new Range(self::date(2025, 1, 1), null)],
        ];
    }

    /**
     * Returns cases for types that {@see self::SETUP} creates.
     *
     * @return iterable<string, array{0: string, 1: mixed, 2?: mixed}>
     */
    private static function own(): iterable
    {
        yield 'an enum' => ['type_cases.mood', 'so, so'];
        yield 'enums' => ['type_cases.mood[]', ['sad', 'so, so', '"ok"', 'N\A', 'NULL', '', null]];
        yield 'a composite' => ['type_cases.pair', '(1,"a b")'];
        yield 'composites' => ['type_cases.pair[]', ['(1,"a ""b")', '(,)', null]];
        yield 'a domain' => ['type_cases.percent', 50];
        yield 'true for a domain' => ['type_cases.percent', true, 1];
        yield 'a domain over a domain' => ['type_cases.half', 50];
        yield 'domains' => ['type_cases.half[]', [[50, null], [1, 2]]];
        yield 'a domain over JSON' => ['type_cases.document', ['a' => [1]]];
        yield 'domains over JSON' => ['type_cases.document[]', [['a' => [1]], [1]]];
        yield 'a domain over bytea' => ['type_cases.digest', "\0\xFF\\"];
        yield 'a domain over bytea that looks like the escape format' => ['type_cases.digest', '\141'];
        yield 'domains over bytea' => ['type_cases.digest[]', ["\0\xFF\\"]];
        yield 'a domain over an array' => ['type_cases.vector', [1.5, null]];
        yield 'domains over arrays' => ['type_cases.vector[]', [[1.5, null], [2.0]]];
        yield 'a range of texts' => ['type_cases.textrange', new Range('a"b\\c', 'z, (]', true, true)];
        yield 'a range from the empty text' => ['type_cases.textrange', new Range('', null)];
        yield 'ranges of texts' => ['type_cases.textrange[]', [new Range('"', '\\'), new Range(' ', '""')]];
        yield 'a multirange of texts' => ['type_cases.textmultirange', [new Range('', '"'), new Range('[a', '}b')]];
        yield 'a range of bytea' => ['type_cases.bytearange', new Range("\0\"", "\xFF\\")];
        yield 'a range of domains' => ['type_cases.halfrange', new Range(1, 50)];
        yield 'multiranges of domains' => ['type_cases.halfmultirange[]', [[new Range(1, 50)], []]];
    }

    private static function date(int $year, int $month, int $day): \DateTimeImmutable
    {
        return (new \DateTimeImmutable('2000-01-01 UTC'))->setDate($year, $month, $day);
    }

    /**
     * Sorts keys, because jsonb changes their order.
     *
     * @param array<mixed> $value
     *
     * @return array<mixed>
     */
    private static function ordered(array $value): array
    {
        if (!array_is_list($value)) {
            ksort($value, \SORT_STRING);
        }

        return $value;
    }

    private static function serializable(): \JsonSerializable
    {
        return new class implements \JsonSerializable {
            /** @return array<string, float> */
            public function jsonSerialize(): array
            {
                return ['a' => 0.1];
            }
        };
    }

    /** @return array<mixed> */
    private static function endless(): array
    {
        $array = [1];
        $array[0] = &$array;

        return $array;
    }
}
