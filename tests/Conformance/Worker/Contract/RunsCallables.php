<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\OddNumber;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Tests\Text as TextOfTests;
use Spindle\Worker\UnserializableException;

use function strtoupper as upper;

/**
 * Tests which callables can be tasks.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait RunsCallables
{
    /** @return iterable<string, array{callable(): mixed, mixed}> */
    public static function callables(): iterable
    {
        $three = 3;
        $list = [1, ['x' => Suit::Hearts]];
        $number = new Number(6);
        $inner = static fn(): int => $three + 1;
        yield 'a function' => ['pi', \M_PI];
        yield 'a first-class function' => [pi(...), \M_PI];
        yield 'a static method as a string' => [Number::class . '::answer', 42];
        yield 'a static method as an array' => [[Number::class, 'answer'], 42];
        yield 'a first-class static method' => [Number::answer(...), 42];
        yield 'a method' => [[new Number(5), 'value'], 5];
        yield 'an inherited method' => [[new OddNumber(5), '__invoke'], 5];
        yield 'an overridden method' => [[new OddNumber(4), 'value'], 5];
        yield 'a first-class method' => [(new Number(5))->value(...), 5];
        yield 'a private method' => [(new Number(5))->hidden(), -5];
        yield 'an invokable object' => [new Number(5), 5];
        yield 'a method of an enum' => [[Suit::Spades, 'label'], 'Spades'];
        // @phpstan-ignore generator.valueType (of which static analysis knows nothing)
        yield 'a method by __call()' => [[new Number(5), 'root'], 'root of 5'];
        // @phpstan-ignore generator.valueType (of which static analysis knows nothing)
        yield 'a static method by __callStatic()' => [[Number::class, 'root'], 'root of none'];
        yield 'a static arrow function' => [static fn(): int => $three * 2, 6];
        yield 'a static closure' => [static function () use ($three, $list, $number): array {
            return [$three, $list, $number->value()];
        }, [3, $list, 6]];
        yield 'a closure in a closure' => [static fn(): int => $inner() * 10, 40];
        yield 'a closure that makes closures' => [static function () use ($three): array {
            return array_map(static fn(int $i): int => $i * $three, [1, 2]);
        }, [3, 6]];
        yield 'a closure of a method that uses its object' => [(new Number(8))->bound(), 8];
        yield 'a closure that uses its class' => [Number::scoped(), 'private ' . Number::class];
        yield 'a closure with imported names' => [static fn(): array => TextOfTests::numbers(upper('a1 b2')), [1, 2]];
        yield 'a closure with the class of its place' => [static fn(): string => __CLASS__, __CLASS__];
    }

    /** @param callable(): mixed $task */
    #[DataProvider('callables')]
    public function testItRunsCallables(callable $task, mixed $expected): void
    {
        self::assertSame($expected, $this->executor()->submit($task)->await());
    }

    /** @param callable(): mixed $task */
    #[DataProvider('callables')]
    public function testItRunsTheSameCallablesAgain(callable $task, mixed $expected): void
    {
        $executor = $this->executor();
        $first = $executor->submit($task);
        $second = $executor->submit($task);

        self::assertSame([$expected, $expected], [$first->await(), $second->await()]);
    }

    public function testATaskWorksOnACopyOfItsObject(): void
    {
        $number = new Number(1);
        $executor = $this->executor();

        self::assertSame(
            [2, 2],
            [$executor->submit([$number, 'increment'])->await(), $executor->submit([$number, 'increment'])->await()],
        );
        self::assertSame(1, $number->value());
    }

    public function testATaskIsWhatItWasWhenItWasSubmitted(): void
    {
        $number = new Number(1);
        $future = $this->executor()->submit([$number, 'value']);
        $number->increment();

        self::assertSame(1, $future->await());
    }

    public function testAVariableThatIsCapturedByReferenceIsRefused(): void
    {
        $count = 1;
        $task = static function () use (&$count): int {
            return ++$count;
        };
        $executor = $this->executor();

        foreach ([
            static fn(): Future => $executor->submit($task),
            static fn(): \Generator => $executor->map([1], $task),
            static fn(): \Generator => $executor->mapOutcomes([1], $task),
        ] as $call) {
            $refused = self::thrown(UnserializableException::class, $call);
            self::assertSame("The task's captured variable \$count", $refused->path);
        }
        self::assertSame(1, $count);
    }

    public function testAClosureThatCapturesItselfByReferenceRuns(): void
    {
        $factorial = static function (int $number) use (&$factorial): int {
            return $number < 2 ? 1 : $number * $factorial($number - 1);
        };

        self::assertSame([120], iterator_to_array($this->executor()->map([5], $factorial)));
    }

    public function testAStaticVariableStartsAsItWasWhenTheTaskWasSubmitted(): void
    {
        $task = static function (): int {
            /** @var int $count */
            static $count = 10;

            return ++$count;
        };
        $executor = $this->executor();

        self::assertSame([11, 11], [$executor->submit($task)->await(), $executor->submit($task)->await()]);
    }

    public function testAClosureThatDoesNotUseItsObjectIsSentWithoutIt(): void
    {
        $number = Number::holding(fopen('php://memory', 'r'));

        self::assertSame(7, $this->executor()->submit($number->unused())->await());
    }

    public function testAClosureOfATestDoesNotCaptureTheTest(): void
    {
        $three = 3;

        // @phpstan-ignore-next-line (not static, which is the point)
        self::assertSame(6, $this->executor()->submit(fn(): int => $three * 2)->await());
    }
}
