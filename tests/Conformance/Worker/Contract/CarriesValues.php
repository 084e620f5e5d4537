<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;

/**
 * Tests which values tasks can receive and return.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait CarriesValues
{
    /** @return iterable<string, array{mixed}> */
    public static function values(): iterable
    {
        $circle = new \stdClass();
        $circle->self = $circle;
        $deep = 'bottom';
        for ($i = 0; $i < 500; ++$i) {
            $deep = [$deep];
        }
        yield 'null' => [null];
        yield 'true' => [true];
        yield 'false' => [false];
        yield 'zero' => [0];
        yield 'the smallest integer' => [\PHP_INT_MIN];
        yield 'the largest integer' => [\PHP_INT_MAX];
        yield 'a float' => [0.1 + 0.2];
        yield 'a float without fraction' => [3.0];
        yield 'the smallest float' => [5e-324];
        yield 'negative zero' => [-0.0];
        yield 'infinity' => [\INF];
        yield 'negative infinity' => [-\INF];
        yield 'no number' => [\NAN];
        yield 'an empty string' => [''];
        yield 'a string of a zero' => ['0'];
        yield 'all bytes' => [implode('', array_map(chr(...), range(0, 255)))];
        foreach ([1023, 1024, 1025, 65_535, 65_536, 65_537, 1 << 20] as $size) {
            yield "a string of {$size} bytes" => [str_repeat('x', $size)];
        }
        yield 'a serialized string' => [serialize([1])];
        yield 'an empty array' => [[]];
        yield 'an array' => [['a' => [1, 2.5, null, true, "\0\xFF"], 7 => 'x', '' => 'empty']];
        yield 'a large array' => [array_fill(0, 20_000, 'item')];
        yield 'a deep array' => [$deep];
        yield 'an object' => [new Number(5)];
        yield 'an object in an array' => [[1, ['x' => Number::holding(new Number(2))]]];
        yield 'a circle' => [$circle];
        yield 'a date' => [new \DateTimeImmutable('2020-02-29 12:34:56.789012 Europe/Berlin')];
        yield 'a date that changes' => [new \DateTime('2020-02-29 12:34:56.789012 +02:00')];
        yield 'a collection' => [new \ArrayObject(['a' => 1])];
        yield 'an enum' => [Suit::Hearts];
        yield 'an enum in an array' => [[Suit::Hearts, Suit::Spades]];
        yield 'an exception' => [self::exception()];
    }

    #[DataProvider('values')]
    public function testAResultComesBackAsItIs(mixed $value): void
    {
        self::assertLike($value, $this->executor()->submit(static fn(): mixed => $value)->await());
    }

    #[DataProvider('values')]
    public function testAnArgumentArrivesAsItIs(mixed $value): void
    {
        $task = static fn(mixed $argument): array => [get_debug_type($argument), md5(serialize($argument))];
        $results = iterator_to_array($this->executor()->map([$value], $task));

        self::assertSame([[get_debug_type($value), md5(serialize($value))]], $results);
    }

    public function testValuesOfAllKindsAreEncodedTogether(): void
    {
        foreach (['map', 'mapUnordered'] as $verb) {
            $sent = [];
            for ($i = 0; $i < 3; ++$i) {
                foreach (self::values() as $name => [$value]) {
                    $sent["{$name} {$i}"] = $value;
                }
            }
            $executor = $this->executor();
            $input = $sent;
            foreach (self::loop(
                $executor,
                $verb,
                $input,
                static fn(mixed $value): mixed => $value,
            ) as $name => $value) {
                self::assertLike($sent[$name], $value);
                unset($sent[$name]);
            }

            self::assertSame([], array_keys($sent));
        }
    }

    public function testFloatsKeepAllDigitsWhateverPhpIniSays(): void
    {
        $before = (string) ini_set('serialize_precision', '3');
        $third = 1 / 3;
        $task = static function (mixed $given) use ($third): array {
            ini_set('serialize_precision', '3');

            return [$given, $third];
        };
        $plain = static function (mixed $given): mixed {
            ini_set('serialize_precision', '3');

            return $given;
        };
        try {
            $executor = $this->ownExecutor();
            $results = iterator_to_array($executor->map([$third, [$third]], $task));
            $floats = iterator_to_array($executor->map([$third, -$third], $plain));
            $mixed = iterator_to_array($executor->map([$third, [1], 'text'], $plain));
        } finally {
            ini_set('serialize_precision', $before);
        }

        self::assertSame([[$third, $third], [[$third], $third]], $results);
        self::assertSame([$third, -$third], $floats);
        self::assertSame([$third, [1], 'text'], $mixed);
    }

    public function testAResultIsACopy(): void
    {
        $number = new Number(1);
        $result = $this->executor()->submit(static fn(): Number => $number)->await();

        self::assertNotSame($number, $result);
    }

    public function testAnArgumentIsACopy(): void
    {
        $number = new Number(1);
        $results = iterator_to_array(
            $this->executor()->map([$number, $number], static fn(Number $n): int => $n->increment()),
        );

        self::assertSame([2, 2], $results);
        self::assertSame(1, $number->value());
    }

    public function testTheIdentityOfObjectsIsKept(): void
    {
        $number = new Number(1);
        [$one, $other] = $this->executor()->submit(static fn(): array => [$number, $number])->await();

        self::assertSame($one, $other);
    }

    /** Returns an exception whose trace has no arguments: those of PHPUnit cannot be serialized. */
    private static function exception(): \DomainException
    {
        $before = (string) ini_set('zend.exception_ignore_args', '1');
        $exception = new \DomainException('as a value');
        ini_set('zend.exception_ignore_args', $before);

        return $exception;
    }

    private static function assertLike(mixed $expected, mixed $actual): void
    {
        if (\is_object($expected) || \is_array($expected)) {
            self::assertSame(get_debug_type($expected), get_debug_type($actual));
            self::assertEquals($expected, $actual);
        } else {
            // distinguishes NAN, and -0.0 from 0.0
            self::assertSame(serialize($expected), serialize($actual));
        }
    }
}
