<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Types;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Types\BuiltInTypes;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\JsonMode;
use Spindle\Postgres\JsonNumber;
use Spindle\Postgres\Range;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Postgres\TypeCases;

final class TypesTest extends TestCase
{
    use CatchesThrown;

    private const OIDS = [
        'int' => 23, 'text' => 25, 'text[]' => 1009, 'int[]' => 1007, 'jsonb' => 3802, 'bytea' => 17, 'date' => 1082,
        'int4range' => 3904, 'int4multirange' => 4451, 'interval' => 1186,
    ];

    #[DataProvider('refused')]
    public function testAnUnencodableValueIsReportedWithPositionAndTypes(int $oid, mixed $value): void
    {
        try {
            (new Types())->encode($oid, $value, 3);
        } catch (InvalidParameterException $exception) {
            self::assertSame(3, $exception->position);
            self::assertStringContainsString('parameter $3', $exception->getMessage());
            self::assertStringContainsString((string) $exception->phpType, $exception->getMessage());
            self::assertStringContainsString((string) $exception->postgresType, $exception->getMessage());

            return;
        }
        self::fail('it was taken');
    }

    /** @return iterable<string, array{int, mixed}> */
    public static function refused(): iterable
    {
        foreach (TypeCases::refused() as $name => [$type, $value]) {
            yield $name => [self::OIDS[$type], $value];
        }
    }

    #[DataProvider('secrets')]
    public function testNoExceptionContainsAValue(int $oid, mixed $value): void
    {
        $before = ini_set('zend.exception_ignore_args', '0');
        try {
            (new Types())->encode($oid, $value, 1);
            self::fail('it was taken');
        } catch (InvalidParameterException $exception) {
            self::assertStringNotContainsString('secret', $exception->getMessage());
            foreach ($exception->getTrace() as $frame) {
                if (str_starts_with($frame['class'] ?? '', 'Spindle\Postgres')) {
                    self::assertStringNotContainsString('secret', print_r($frame['args'] ?? [], true));
                }
            }
        } finally {
            ini_set('zend.exception_ignore_args', (string) $before);
        }
    }

    /** @return iterable<array{int, mixed}> */
    public static function secrets(): iterable
    {
        yield [25, "secret\0"];
        yield [23, ['secret']];
        yield [1009, [['secret'], 'secret']];
        yield [1009, ['secret' => 'secret']];
        yield [3802, ["secret\xFF" => 1]];
        yield [3802, ['secret key' => "secret\xFF"]];
        yield [3802, [['secret@example.com' => \NAN]]];
        yield [3906, new Range(['secret'])];
        yield [4532, [new Range("secret\0")]];
    }

    public function testAnUnencodableValueOfACopyIsReportedWithItsColumn(): void
    {
        $this->expectException(InvalidParameterException::class);
        $this->expectExceptionMessage(
            "The element [0] of column 2 of row 5 is of the type stdClass, which can't be sent as integer[]",
        );

        (new Types())->copyRow([23, 1007], [1, [new \stdClass()]], 5);
    }

    /** @param string $message message of the exception, without the reason */
    #[DataProvider('unencodableParts')]
    public function testThePartOfAnArrayThatCanNotBeSentIsNamed(int $oid, mixed $value, string $message): void
    {
        $this->expectException(InvalidParameterException::class);
        $this->expectExceptionMessage($message);

        (new Types())->encode($oid, $value, 2);
    }

    /** @return iterable<string, array{int, mixed, string}> */
    public static function unencodableParts(): iterable
    {
        $array = ['id' => 1, 'object' => new \ArrayObject(), 'rows' => [['ok' => 'ä'], ['name' => "\xFF"]]];
        yield 'a text' => [3802, $array, "The element ['rows'][1]['name'] of the parameter \$2 is of the type string"];
        yield 'a key' => [3802, ['rows' => ["\xFF" => 1]], "The element ['rows'] of the parameter \$2 is of the type"];
        yield 'the first key' => [3802, ["\xFF" => 1], 'The parameter $2 is of the type array, which'];
        yield 'a number' => [114, [[1.5, \INF]], 'The element [0][1] of the parameter $2 is of the type float, which'];
        yield 'a resource' => [114, ['f' => \STDIN], "The element ['f'] of the parameter \$2 is of the type resource"];
        yield 'a key with digits' => [114, ['k_123' => ['x2' => \NAN]], "The element […]['x2'] of the parameter \$2"];
        yield 'a key with data' => [114, ['a@b.c' => ['x' => \NAN]], "The element […]['x'] of the parameter \$2"];
        yield 'a property' => [114, [(object) ['a' => \NAN]], "The element [0]['a'] of the parameter \$2 is of the"];
        $recursive = [self::serializable(static fn(): float => \NAN)];
        $recursive[] = &$recursive;
        $recursive[] = &$recursive;
        yield 'an array in itself' => [114, $recursive, 'The parameter $2 is of the type array, which'];
        yield 'an array' => [1009, ['a', "b\0"], 'The element [1] of the parameter $2 is of the type string, which'];
        yield 'two dimensions' => [1009, [['a'], [[]]], 'The element [1][0] of the parameter $2 is of the type array'];
        yield 'multirange' => [4451, [new Range(1, 2), new Range([])], 'The element [1] of the parameter $2 is of the'];
    }

    public function testObjectsAreNotEncodedAgainToFindThePartThatCanNotBeSent(): void
    {
        $calls = 0;
        $object = self::serializable(static function () use (&$calls): int {
            return ++$calls;
        });
        $exception = self::thrown(
            InvalidParameterException::class,
            static fn() => (new Types())->encode(3802, [$object, "\xFF"], 1),
        );
        self::assertStringStartsWith('The element [1] of the parameter $1 is', $exception->getMessage());

        self::assertSame(1, $calls);
    }

    public function testARowForCopyHasAsManyValuesAsColumns(): void
    {
        $this->expectException(InvalidParameterException::class);
        $this->expectExceptionMessage('The number of values of row 5 is 1, but must be 2');

        (new Types())->copyRow([23, 23], [1], 5);
    }

    public function testDelimitersInARowForCopyAreEscaped(): void
    {
        self::assertSame(
            "1\t\\N\ta\\tb\\nc\\rd\\\\N\t\\\\x0a\t{\"\\\\\\\\x0a\"}\tt\n",
            (new Types())->copyRow(
                [23, 25, 25, 17, 1001, 16],
                ['id' => 1, 'b' => null, 'c' => "a\tb\nc\rd\\N", 'd' => "\n", 'e' => ["\n"], 'f' => true],
                1,
            ),
        );
    }

    public function testFloatsKeepTheirDigitsWhateverTheSettings(): void
    {
        $floats = [0.1, 0.1 + 0.2, 1 / 3, 1e22, 1.5e300, -2.5e-10];
        $locale = (string) setlocale(\LC_ALL, '0');
        $precision = ini_set('precision', '5');
        $serialized = ini_set('serialize_precision', '5');
        setlocale(\LC_ALL, 'de_DE.UTF-8', 'de_DE', 'fr_FR.UTF-8', 'C');
        try {
            $types = new Types();
            foreach ($floats as $float) {
                self::assertSame($float, $types->decode(701, (string) $types->encode(701, $float, 1)));
            }
            self::assertSame($floats, $types->decode(3802, (string) $types->encode(3802, $floats, 1)));
            self::assertSame('5', \ini_get('serialize_precision'));
        } finally {
            setlocale(\LC_ALL, $locale);
            ini_set('precision', (string) $precision);
            ini_set('serialize_precision', (string) $serialized);
        }
    }

    public function testNumbersHaveTheSameTextForAllTypes(): void
    {
        $types = new Types();
        $builtIn = BuiltInTypes::SCALARS + BuiltInTypes::ARRAYS + BuiltInTypes::RANGES + BuiltInTypes::MULTIRANGES;
        foreach (array_keys($builtIn) as $oid) {
            self::assertSame(['5', '2.5', '3', '-0', '1000000000000000000', 'Infinity', 'NaN'], array_map(
                static fn(mixed $value): ?string => $types->encode($oid, $value, 1),
                [5, 2.5, 3.0, -0.0, 1e18, \INF, \NAN],
            ));
        }
    }

    public function testOnlyNumbersAndNullAreEncodedWithoutTheirType(): void
    {
        $values = [null, 1, 1.5, true, '1', [1], new Range()];
        self::assertSame(
            [false, false, false, true, true, true, true],
            array_map((new Types())->needsType(...), $values),
        );
        self::assertSame(
            [false, false, true, true, true, true, true],
            array_map((new Types(JsonMode::Lossless))->needsType(...), $values),
        );
    }

    public function testBytesOfAParameterAreNotEncoded(): void
    {
        $types = new Types();
        $types->load([['20000', 'domain', '17', 'digest', ',']]);

        self::assertSame("\0\\", $types->encode(17, "\0\\", 1));
        self::assertSame('\x005c', Types::hex("\0\\"));
        self::assertSame('{"\\\\x005c"}', $types->encode(1001, ["\0\\"], 1));
        self::assertSame('\x005c', $types->encode(20_000, "\0\\", 1), 'a domain is no bytea to a driver');
    }

    public function testBuiltInTypesNeedNoLoading(): void
    {
        self::assertSame([16_385, 20_000], (new Types())->notLoaded([23, 16_385, 1009, 0, 3904, 4451, 20_000, 16_385]));
    }

    public function testLoadedTypesAreNotLoadedAgain(): void
    {
        $types = new Types();
        self::assertSame('{1}', $types->decode(20_001, '{1}'), 'as long as nothing is known, it is a string');

        $types->load([['20001', 'array', '20000', 'percent[]', ','], ['20000', 'domain', '23', 'percent', ',']]);

        self::assertSame([], $types->notLoaded([20_000, 20_001]));
        self::assertSame([1, null], $types->decode(20_001, '{1,NULL}'));
        self::assertSame('{1,NULL}', $types->encode(20_001, [1, null], 1));
        $this->expectExceptionMessage('can\'t be sent as percent[]');
        $types->encode(20_001, ['a' => 1], 1);
    }

    public function testAValueWithManyEscapesExceedsNoLimitOfPcre(): void
    {
        $types = new Types(JsonMode::Lossless);
        $types->load([['20000', 'range', '25', 'textrange', ',']]);
        $text = str_repeat('a"\\', 1_000);
        $limit = (string) ini_set('pcre.backtrack_limit', '1000');
        try {
            foreach ([3802 => ['k' . $text => 1.5], 20_000 => new Range($text, 'b')] as $oid => $value) {
                $read = $types->decode($oid, (string) $types->encode($oid, $value, 1));
                self::assertEquals($value, \is_object($read) && !$read instanceof Range ? (array) $read : $read);
            }
        } finally {
            ini_set('pcre.backtrack_limit', $limit);
        }
    }

    public function testLosslessJsonWithManyEscapesNeedsAsMuchMemoryAsOtherJson(): void
    {
        $types = new Types(JsonMode::Lossless);
        $needed = [];
        foreach (['abcd', '\\\\\\"'] as $part) {
            $json = '"' . str_repeat($part, 0x4_0000) . '"';
            memory_reset_peak_usage();
            $before = memory_get_usage();
            $types->decode(3802, $json);
            $needed[] = memory_get_peak_usage() - $before;
        }

        self::assertLessThan(1.5 * $needed[0], $needed[1]);
    }

    public function testATypeThatIsItsOwnComponentIsAString(): void
    {
        $types = new Types();
        $types->load([['20000', 'domain', '20000', 'strange', ',']]);

        self::assertSame('{}', $types->decode(20_000, '{}'));
    }

    public function testAnOffsetWithSecondsKeepsTheInstant(): void
    {
        $time = (new Types())->decode(1184, '1900-01-01 00:09:21.25+00:09:21');

        self::assertInstanceOf(\DateTimeImmutable::class, $time);
        self::assertSame(
            '1900-01-01 00:00:00.250000',
            $time->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d H:i:s.u'),
        );
        self::assertSame('1900-01-01 00:00:00.250000+00:00', (new Types())->encode(1184, $time, 1));
    }

    /** json_encode() of another fiber must not see the mark of a number. */
    public function testASuspensionOfJsonSerializeDoesNotChangeTheJsonOfOtherFibers(): void
    {
        $number = new JsonNumber('18446744073709551616');
        $suspending = new class implements \JsonSerializable {
            public function jsonSerialize(): string
            {
                \Fiber::suspend();

                return 'done';
            }
        };
        $types = new Types(JsonMode::Lossless);
        $fiber = new \Fiber(static fn(): ?string => $types->encode(3802, [$suspending, $number], 1));
        $fiber->start();

        self::assertSame('["18446744073709551616"]', json_encode([$number]));
        $fiber->resume();
        self::assertSame('["done",18446744073709551616]', $fiber->getReturn());
    }

    public function testLosslessJsonHasIntegersUpToThoseOfPhp(): void
    {
        $types = new Types(JsonMode::Lossless);
        foreach ([0, -1, 1234567890123456789, \PHP_INT_MAX, \PHP_INT_MIN] as $integer) {
            self::assertSame([$integer], $types->decode(3802, "[{$integer}]"));
        }
        foreach (['9223372036854775808', '-9223372036854775809', '-0', '1e2'] as $number) {
            self::assertEquals([new JsonNumber($number)], $types->decode(3802, "[{$number}]"));
        }
    }

    public function testJsonWithinAJsonSerializeIsAsElsewhere(): void
    {
        $number = new JsonNumber('18446744073709551616');
        $inner = json_encode(['amount' => $number, 'list' => [self::serializable(static fn(): mixed => $number)]]);
        $types = new Types(JsonMode::Lossless);
        $value = self::serializable(static fn(): mixed => [
            'before' => $number,
            'inner' => json_encode(['amount' => $number, 'list' => [self::serializable(static fn() => $number)]]),
            'callable' => array_map('json_encode', [$number]),
            'encoded' => $types->encode(3802, [$number], 1),
            'after' => [self::serializable(static fn(): mixed => (object) ['number' => $number])],
        ]);

        self::assertSame(
            '{"before":18446744073709551616,"inner":' . json_encode($inner)
                . ',"callable":["\"18446744073709551616\""],"encoded":"[18446744073709551616]"'
                . ',"after":[{"number":18446744073709551616}]}',
            $types->encode(3802, $value, 1),
        );
        self::assertSame('{"amount":"18446744073709551616","list":["18446744073709551616"]}', $inner);
    }

    /** The jsonSerialize() of collections calls that of their elements. */
    public function testANumberIsKeptWhereTheApplicationCallsItsJsonSerialize(): void
    {
        $number = new JsonNumber('18446744073709551616');
        $types = new Types(JsonMode::Lossless);
        $list = self::serializable(static fn(): array => array_map(
            static fn(\JsonSerializable $element): mixed => $element->jsonSerialize(),
            [$number, self::serializable(static fn(): array => [$number->jsonSerialize()])],
        ));
        $texts = self::serializable(static fn(): array => [
            $number->jsonSerialize() => "{$number->jsonSerialize()} EUR",
            'inner' => json_encode([$number->jsonSerialize()]),
        ]);

        self::assertSame('[18446744073709551616,[18446744073709551616]]', $types->encode(3802, $list, 1));
        self::assertSame('["18446744073709551616",["18446744073709551616"]]', json_encode($list));
        self::assertSame(
            '{"18446744073709551616":"18446744073709551616 EUR","inner":"[\"18446744073709551616\"]"}',
            $types->encode(3802, $texts, 1),
        );
    }

    public function testAFiberThatIsResumedWithinJsonSerializeGetsNoMark(): void
    {
        $number = new JsonNumber('18446744073709551616');
        $fiber = new \Fiber(static function () use ($number): string {
            \Fiber::suspend();

            return json_encode($number) . $number->jsonSerialize();
        });
        $fiber->start();
        $value = self::serializable(static function () use ($fiber, $number): JsonNumber {
            $fiber->resume();

            return $number;
        });

        self::assertSame('18446744073709551616', (new Types(JsonMode::Lossless))->encode(3802, $value, 1));
        self::assertSame('"18446744073709551616"18446744073709551616', $fiber->getReturn());
    }

    public function testAnExceptionOfJsonSerializeIsNotCaught(): void
    {
        $value = new class implements \JsonSerializable {
            public function jsonSerialize(): never
            {
                throw new \DomainException('mine');
            }
        };
        $before = \ini_get('serialize_precision');
        $exception = self::thrown(\Throwable::class, static fn() => (new Types())->encode(3802, [$value], 1));
        self::assertEquals(new \DomainException('mine'), $exception);
        self::assertSame($before, \ini_get('serialize_precision'));
    }

    /** @param \Closure(): mixed $jsonSerialize */
    private static function serializable(\Closure $jsonSerialize): \JsonSerializable
    {
        return new class ($jsonSerialize) implements \JsonSerializable {
            public function __construct(private readonly \Closure $jsonSerialize) {}

            public function jsonSerialize(): mixed
            {
                return ($this->jsonSerialize)();
            }
        };
    }
}
