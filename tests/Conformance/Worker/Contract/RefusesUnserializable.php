<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\AnnotatedDate;
use Spindle\Tests\Conformance\Worker\Task\Deep;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\SelectiveObject;
use Spindle\Tests\Conformance\Worker\Task\SleepingObject;
use Spindle\Tests\Conformance\Worker\Task\UnreadableObject;
use Spindle\Tests\Streams;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;

/**
 * Tests values that cannot be serialized, and the messages about them.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait RefusesUnserializable
{
    /**
     * @return iterable<string, array{\Closure(): callable, string, string}> creates the task; path and description of
     *         the refused part
     */
    public static function tasksThatStay(): iterable
    {
        yield 'a captured stream' => [static function (): callable {
            $stream = Streams::open('php://memory', 'r');

            return static fn(): bool => feof($stream);
        }, "The task's captured variable \$stream", 'an open stream'];
        yield 'a captured stream in an object' => [static function (): callable {
            $number = Number::holding(['log' => Streams::open('php://memory', 'r')]);

            return static fn(): mixed => $number->held;
        }, "The task's captured variable \$number->held['log']", 'an open stream'];
        yield 'a closed stream' => [static function (): callable {
            $stream = Streams::open('php://memory', 'r');
            fclose($stream);

            return static fn(): mixed => $stream;
        }, "The task's captured variable \$stream", 'a closed resource'];
        yield 'a stream of a method\'s object' => [
            static fn(): callable => [Number::holding(Streams::open('php://memory', 'r')), 'value'],
            'The task[1]->held',
            'an open stream',
        ];
        yield 'a stream of an invokable object' => [
            static fn(): callable => Number::holding(Streams::open('php://memory', 'r')),
            'The task[1]->held',
            'an open stream',
        ];
        yield 'a stream of a closure\'s object' => [
            static fn(): callable => Number::holding(Streams::open('php://memory', 'r'))->bound(),
            'held',
            'an open stream',
        ];
        yield 'an object of an anonymous class' => [static fn(): callable => new class {
            public function __invoke(): int
            {
                return 1;
            }
        }, 'The task[1]', 'an object of an anonymous class'];
        yield 'a generator' => [static function (): callable {
            $generator = (static fn(): \Generator => yield 1)();

            return static fn(): mixed => $generator->current();
        }, 'The task', 'Generator'];
        yield 'one of two closures on a line' => [static function (): callable {
            [$one, $other] = [static fn(): int => 1, static fn(): int => 2];

            return array_reverse([$one, $other])[0];
        }, 'The task', 'one of 2 closures that begin on line'];
    }

    /** @param \Closure(): callable $task */
    #[DataProvider('tasksThatStay')]
    public function testAnUnserializableTaskIsRefusedAtOnce(\Closure $task, string $path, string $what): void
    {
        $executor = $this->executor();
        foreach ([
            static fn(callable $task) => $executor->submit($task),
            static fn(callable $task) => $executor->map([1], $task),
            static fn(callable $task) => $executor->mapUnordered([1], $task),
        ] as $use) {
            $refused = self::thrown(UnserializableException::class, static fn() => $use($task()));

            self::assertStringContainsString($path, $refused->path);
            self::assertStringContainsString($what, $refused->what);
            self::assertStringContainsString($refused->path, $refused->getMessage());
        }
        self::assertUsable($executor);
    }

    /**
     * @return iterable<string, array{\Closure(): mixed, string, string}> creates the value; path and description of
     *         the refused part
     */
    public static function valuesThatStay(): iterable
    {
        yield 'a stream' => [static fn(): mixed => Streams::open('php://memory', 'r'), '', 'an open stream'];
        yield 'a stream in an array' => [
            static fn(): mixed => ['x' => [1, Streams::open('php://memory', 'r')]],
            "['x'][1]",
            'an open stream',
        ];
        yield 'a closure' => [static fn(): mixed => abs(...), '', 'a closure'];
        yield 'a closure in an object' => [static fn(): mixed => [Number::holding(abs(...))], '[0]->held', 'a closure'];
        yield 'an anonymous class' => [static fn(): mixed => [new class {}], '[0]', 'an object of an anonymous class'];
        yield 'what PHP does not serialize' => [
            static fn(): mixed => ['f' => new \SplFileInfo('/')],
            "['f']",
            'SplFileInfo',
        ];
        yield 'what refuses' => [static fn(): mixed => [new UnreadableObject(false)], '[0]', 'I stay'];
        yield 'a stream in a date' => [
            static fn(): mixed => AnnotatedDate::with([Streams::open('php://memory', 'r')]),
            '->note[0]',
            'an open stream',
        ];
        yield 'a stream that __serialize() returns' => [
            static fn(): mixed => new SelectiveObject(Streams::open('php://memory', 'r')),
            "->__serialize()['sent']",
            'an open stream',
        ];
        yield 'an iterator that __serialize() returns' => [
            static fn(): mixed => [new SelectiveObject([new \MultipleIterator()])],
            "[0]->__serialize()['sent'][0]",
            'of class MultipleIterator',
        ];
        yield 'a stream that __sleep() names' => [
            static fn(): mixed => new SleepingObject(Streams::open('php://memory', 'r')),
            '->sent',
            'an open stream',
        ];
        yield 'an iterator that __sleep() names' => [
            static fn(): mixed => new SleepingObject(1, new \MultipleIterator()),
            '->alsoSent',
            'of class MultipleIterator',
        ];
    }

    public function testValuesThatAClassDoesNotSerializeAreNotRefused(): void
    {
        $executor = $this->executor();
        $stream = Streams::open('php://memory', 'r');
        $results = iterator_to_array($executor->map([
            new SelectiveObject(1, $stream),
            new SelectiveObject(2, abs(...)),
            new SelectiveObject(3, Deep::arrays(5000)),
        ], static fn(SelectiveObject $object): array => [$object->sent, $object->omitted]));
        $slept = $executor->map(
            [new SleepingObject(1, 2, $stream)],
            static fn(SleepingObject $object): array => $object->properties(),
        );

        self::assertSame([[1, null], [2, null], [3, null]], $results);
        self::assertSame([[1, 2, null]], iterator_to_array($slept));
    }

    public function testADateKeepsItsProperties(): void
    {
        $date = AnnotatedDate::with(['x' => 1]);

        self::assertEquals(
            [$date],
            iterator_to_array($this->executor()->map([$date], static fn(AnnotatedDate $date): AnnotatedDate => $date)),
        );
    }

    /** @param \Closure(): mixed $value */
    #[DataProvider('valuesThatStay')]
    public function testAnUnserializableArgumentIsRefusedAfterEarlierResults(
        \Closure $value,
        string $path,
        string $what,
    ): void {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $results = new Collected(self::loop(
                $executor,
                $verb,
                ['a' => 1, 'b' => 'x', 'c' => $value(), 'd' => 2],
                static fn(mixed $value): mixed => $value,
            ));

            sort($results->keys);
            self::assertSame(['a', 'b'], $results->keys);
            self::assertInstanceOf(UnserializableException::class, $results->thrown);
            self::assertSame("The argument for \"c\"{$path}", $results->thrown->path);
            self::assertStringContainsString($what, $results->thrown->what);
        }
        self::assertUsable($executor);
    }

    /** @param \Closure(): mixed $value */
    #[DataProvider('valuesThatStay')]
    public function testAnUnserializableResultIsRefused(\Closure $value, string $path, string $what): void
    {
        $executor = $this->executor();
        $refused = self::failure(UnserializableException::class, $executor->submit(static fn(): mixed => $value()));

        self::assertSame("The result{$path}", $refused->path);
        self::assertStringContainsString($what, $refused->what);
        self::assertUsable($executor);
    }

    public function testTheRefusalOfAResultHasAdvice(): void
    {
        $task = static fn(): \SplMinHeap => new \SplMinHeap();
        $refused = self::failure(UnserializableException::class, $this->executor()->submit($task));

        self::assertSame('send its contents as an array', $refused->advice);
        self::assertStringEndsWith(": {$refused->advice}", $refused->getMessage());
    }

    public function testAnUnserializableResultOfALoopNamesItsInput(): void
    {
        $executor = $this->executor();
        $results = new Collected($executor->map(
            ['a' => 1, 'b' => 0],
            static fn(int $i): mixed => $i === 1 ? 1 : [abs(...)],
        ));

        self::assertSame(['a'], $results->keys);
        self::assertInstanceOf(UnserializableException::class, $results->thrown);
        self::assertSame('The result for "b"[0]', $results->thrown->path);
        self::assertUsable($executor);
    }

    public function testEachUnserializableValueOfManyIsRefused(): void
    {
        $executor = $this->executor();
        $futures = [];
        for ($i = 0; $i < 200; ++$i) {
            $futures[] = $executor->submit(static fn(): mixed => $i % 2 === 0 ? $i : Number::holding(abs(...)));
        }
        foreach ($futures as $i => $future) {
            if ($i % 2 === 0) {
                self::assertSame($i, $future->await());
            } else {
                self::assertSame('The result->held', self::failure(UnserializableException::class, $future)->path);
            }
        }
    }

    public function testTasksThatStayInTheBacklogDelayNoOthers(): void
    {
        $executor = $this->executor();
        $stream = Streams::open('php://memory', 'r');
        $futures = [];
        $refused = 0;
        for ($i = 0; $i < 200; ++$i) {
            try {
                $futures[] = $executor->submit($i % 2 === 0 ? new Number($i) : Number::holding($stream));
            } catch (UnserializableException) {
                ++$refused;
            }
        }

        self::assertSame(100, $refused);
        foreach ($futures as $i => $future) {
            self::assertSame(2 * $i, $future->await());
        }
    }

    public function testAnArgumentThatDoesNotOpenFailsItsTask(): void
    {
        $executor = $this->executor();
        $results = new Collected(
            $executor->map(['a' => 1, 'b' => new UnreadableObject(true)], static fn(mixed $value): int => 1),
        );

        self::assertSame(['a'], $results->keys);
        self::assertInstanceOf(TaskFailedException::class, $results->thrown);
        self::assertSame('b', $results->thrown->key);
        self::assertSame('I am not welcome', $results->thrown->thrown->message);
        self::assertUsable($executor);
    }

    public function testAResultThatDoesNotOpenFailsItsTask(): void
    {
        $executor = $this->executor();
        $failed = self::failure(
            TaskFailedException::class,
            $executor->submit(static fn(): UnreadableObject => new UnreadableObject(true)),
        );

        self::assertSame('I am not welcome', $failed->thrown->message);
        self::assertUsable($executor);
    }
}
