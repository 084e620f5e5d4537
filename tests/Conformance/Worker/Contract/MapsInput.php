<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Worker\InlineExecutor;
use Spindle\Worker\MapOutcome;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;

use function Amp\delay;

/**
 * Tests which results a loop yields, in which order and under which keys.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait MapsInput
{
    public function testResultsThatAreNeverReadAreReported(): void
    {
        $executor = $this->executor();
        $name = substr((string) strrchr($executor::class, '\\'), 1);
        foreach ([
            'map' => static fn(): \Generator => $executor->map([1], Number::double(...)),
            'mapUnordered' => static fn(): \Generator => $executor->mapUnordered([1], Number::double(...)),
            'mapOutcomes' => static fn(): \Generator => $executor->mapOutcomes([1], Number::double(...)),
            'mapOutcomesUnordered' => static fn(): \Generator
                => $executor->mapOutcomesUnordered([1], Number::double(...)),
        ] as $verb => $call) {
            $line = $this->errorLogOf(static function () use ($call): void {
                $call();
            });
            self::assertCount(1, $line);
            self::assertMatchesRegularExpression(
                "~ Spindle: {$name}::{$verb}\(\) in " . preg_quote(__FILE__, '~')
                    . ':\d+ ran no task, because its results were never read\. Loop over them$~D',
                $line[0],
            );
            unlink($this->path('error.log'));
        }
    }

    public function testResultsAreNotReportedAfterACancellationOrAnEarlyEndOfTheLoop(): void
    {
        $executor = $this->executor();
        $lines = $this->errorLogOf(static function () use ($executor): void {
            $cancellation = new DeferredCancellation();
            $results = $executor->map([1], Number::double(...), $cancellation->getCancellation());
            $cancellation->cancel();
            unset($results);
            foreach ($executor->map([1, 2], Number::double(...)) as $_) {
                break;
            }
        });

        self::assertSame([], $lines);
    }

    /** @return iterable<string, array{iterable<string, int>}> */
    public static function inputs(): iterable
    {
        $values = ['a' => 1, 'b' => 2, 'c' => 3];
        yield 'an array' => [$values];
        yield 'a generator' => [(static fn(): \Generator => yield from $values)()];
        yield 'an iterator' => [new \ArrayIterator($values)];
        yield 'an aggregate' => [new \ArrayObject($values)];
        yield 'an iterator over nothing known' => [new \NoRewindIterator(new \ArrayIterator($values))];
    }

    /** @param iterable<string, int> $input */
    #[DataProvider('inputs')]
    public function testAnyIterableIsAnInput(iterable $input): void
    {
        self::assertSame(
            ['a' => 2, 'b' => 4, 'c' => 6],
            iterator_to_array($this->executor()->map($input, Number::double(...))),
        );
    }

    /** @return iterable<string, array{callable(int): mixed, mixed}> */
    public static function mappings(): iterable
    {
        $plus = 5;
        yield 'a function' => ['abs', 3];
        yield 'a static method' => [[Number::class, 'double'], 6];
        yield 'a method' => [[new Number(10), '__invoke'], 13];
        yield 'an invokable object' => [new Number(10), 13];
        yield 'a closure' => [static fn(int $i): int => $i + $plus, 8];
        yield 'a closure of an object' => [(new Number(4))->bound(), 4];
        yield 'a closure that takes no argument' => [static fn(): int => $plus, 5];
    }

    /** @param callable(int): mixed $task */
    #[DataProvider('mappings')]
    public function testATaskIsCalledWithTheValue(callable $task, mixed $expected): void
    {
        self::assertSame([$expected], iterator_to_array($this->executor()->map([3], $task)));
    }

    public function testNoTaskReceivesStateFromAnEarlierCall(): void
    {
        $executor = $this->executor();
        $count = static function (): int {
            /** @var int $count */
            static $count = 1;

            return ++$count;
        };
        for ($call = 0; $call < 3; ++$call) { // at least two of three tasks run in the same worker
            $number = new Number(1);
            $captures = static fn(): int => $number->increment();
            foreach ([$number->increment(...), [$number, 'increment'], $captures, $count] as $task) {
                self::assertSame([2], iterator_to_array($executor->map([0], $task)));
            }
        }
    }

    public function testMapKeepsTheOrderOfTheInputWhateverTheTasksTake(): void
    {
        $task = static function (int $i): int {
            delay($i % 7 === 0 ? 0.01 : 0.0);

            return $i;
        };
        $results = new Collected($this->executor()->map(range(0, 60), $task));

        self::assertNull($results->thrown);
        self::assertSame(range(0, 60), $results->values);
        self::assertSame(range(0, 60), $results->keys);
    }

    public function testMapKeepsTheOrderOfManyQuickTasks(): void
    {
        self::assertSame(
            range(0, 20_000, 2),
            iterator_to_array($this->executor()->map(range(0, 10_000), Number::double(...)), false),
        );
    }

    public function testMapUnorderedYieldsEachResultOnce(): void
    {
        $results = new Collected($this->executor()->mapUnordered(range(0, 5000), Number::double(...)));
        $values = $results->values;
        sort($values);

        self::assertNull($results->thrown);
        self::assertSame(range(0, 10_000, 2), $values);
        self::assertSame(
            $results->values,
            array_map(static fn(mixed $key): ?int => \is_int($key) ? 2 * $key : null, $results->keys),
        );
    }

    public function testKeysOfAnyKindComeBackAsTheyWere(): void
    {
        $object = new \stdClass();
        $closure = static fn(): int => 1;
        $keys = [
            0,
            -1,
            'text',
            '',
            '7',
            1.5,
            null,
            true,
            ['x' => 1],
            $object,
            Suit::Hearts,
            $closure,
            fopen('php://memory', 'r'),
            'text',
            0,
        ];
        $input = static function () use ($keys): \Generator {
            foreach ($keys as $i => $key) {
                yield $key => $i;
            }
        };
        $results = new Collected($this->executor()->map($input(), Number::double(...)));

        self::assertNull($results->thrown);
        self::assertSame($keys, $results->keys);
        self::assertSame(range(0, 28, 2), $results->values);
    }

    public function testMapUnorderedKeepsKeysWithTheirResults(): void
    {
        $keys = [new \stdClass(), new \stdClass(), 'a', 'a', null];
        $input = static function () use ($keys): \Generator {
            foreach ($keys as $i => $key) {
                yield $key => $i;
            }
        };
        $results = new Collected($this->executor()->mapUnordered($input(), static fn(int $i): int => $i));
        $expected = [];
        foreach ($results->values as $i) {
            $expected[] = \is_int($i) ? $keys[$i] : null;
        }

        self::assertCount(5, $results->values);
        self::assertSame($expected, $results->keys);
    }

    public function testOutcomesContinueAfterFailedTasksInTheOrderOfTheInput(): void
    {
        $input = ['a' => 1, 'b' => 2, 'c' => 3, 'd' => 4];
        $task = static fn(int $number): mixed => match ($number) {
            1 => $number,
            2 => throw new \DomainException("bad\n{$number}\e[31m"),
            3 => abs(...),
            default => ['a text' => str_repeat('x', 10_000)],
        };
        $outcomes = iterator_to_array($this->executor()->mapOutcomes($input, $task));

        self::assertSame(
            ['a' => true, 'b' => false, 'c' => false, 'd' => true],
            array_map(static fn(MapOutcome $outcome): bool => $outcome->succeeded(), $outcomes),
        );
        self::assertSame(1, $outcomes['a']->value());
        self::assertSame(['a text' => str_repeat('x', 10_000)], $outcomes['d']->value());
        self::assertInstanceOf(UnserializableException::class, $outcomes['c']->failure);
        $failed = self::thrown(TaskFailedException::class, $outcomes['b']->value(...));
        self::assertSame($outcomes['b']->failure, $failed);
        self::assertSame([\DomainException::class, 'b'], [$failed->thrown->class, $failed->key]);
        self::assertStringContainsString('bad 2\033[31m', $outcomes['b']->describe());
        self::assertSame('succeeded', $outcomes['a']->describe());
    }

    public function testOutcomesInOrderOfCompletionHaveTheKeysOfTheInput(): void
    {
        $task = static fn(int $number): int => $number % 3 === 0 ? throw new \DomainException('bad') : 2 * $number;
        $outcomes = new Collected($this->executor()->mapOutcomesUnordered(range(0, 2000), $task));
        $keys = [];
        foreach ($outcomes->values as $i => $outcome) {
            self::assertInstanceOf(MapOutcome::class, $outcome);
            $keys[] = $key = $outcomes->keys[$i];
            self::assertIsInt($key);
            self::assertSame($key % 3 === 0 ? null : 2 * $key, $outcome->succeeded() ? $outcome->value() : null);
        }
        sort($keys);

        self::assertNull($outcomes->thrown);
        self::assertSame(range(0, 2000), $keys);
    }

    public function testOutcomesInOrderOfCompletionDoNotWaitForASlowTask(): void
    {
        $executor = $this->ownExecutor();
        if ($executor instanceof InlineExecutor) {
            self::markTestSkipped('It runs one task at a time');
        }
        $gate = $this->gate();
        $task = static fn(string $name): string => match ($name) {
            'slow' => $gate->pass($name),
            'bad' => throw new \DomainException('bad'),
            default => $name,
        };
        $keys = [];
        $input = ['a' => 'slow', 'b' => 'bad', 'c' => 'good'];
        foreach ($executor->mapOutcomesUnordered($input, $task) as $key => $outcome) {
            $keys[$key] = $outcome->succeeded();
            if (\count($keys) === 2) {
                $gate->open();
            }
        }

        self::assertSame('a', array_key_last($keys));
        self::assertEquals(['a' => true, 'b' => false, 'c' => true], $keys);
    }

    public function testOutcomesEndWithTheInputThatThrows(): void
    {
        $input = (static function (): \Generator {
            yield 1;
            throw new \DomainException('no more');
        })();
        $values = [];
        $thrown = self::thrown(\DomainException::class, function () use ($input, &$values): void {
            foreach ($this->executor()->mapOutcomes($input, Number::double(...)) as $outcome) {
                $values[] = $outcome->value();
            }
        });

        self::assertSame(['no more', [2]], [$thrown->getMessage(), $values]);
    }

    public function testCancelledOutcomesAreNoFailuresOfTasks(): void
    {
        $cancellation = new DeferredCancellation();
        $seen = 0;
        self::thrown(CancelledException::class, function () use ($cancellation, &$seen): void {
            $token = $cancellation->getCancellation();
            foreach ($this->executor()->mapOutcomes([1, 2, 3], Number::double(...), $token) as $outcome) {
                $seen += (int) $outcome->succeeded();
                $cancellation->cancel();
            }
        });

        self::assertSame(1, $seen);
    }

    public function testAnEmptyInputHasNoResults(): void
    {
        $executor = $this->executor();
        foreach ([[], new \EmptyIterator()] as $input) {
            self::assertSame([], iterator_to_array($executor->map($input, 'abs')));
            self::assertSame([], iterator_to_array($executor->mapUnordered($input, 'abs')));
        }
    }

    public function testATaskOfALoopMayReturnNothing(): void
    {
        $task = static function (int $i): void {};
        $results = new Collected($this->executor()->map(['a' => 1, 'b' => 2], $task));

        self::assertSame([['a', 'b'], [null, null]], [$results->keys, $results->values]);
    }

    public function testTheInputIsReleasedWithItsLoop(): void
    {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $input = new \ArrayIterator([1, 2, 3]);
            $weak = \WeakReference::create($input);
            gc_disable(); // otherwise it would release the input later
            try {
                $results = iterator_to_array(self::loop($executor, $verb, $input, 'abs'), false);
                unset($input);

                self::assertCount(3, $results);
                self::assertNull($weak->get());
            } finally {
                gc_enable();
            }
        }
    }
}
