<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Internal\LoadedFiles;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\HeldException;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Tests\ReadsErrorLog;
use Spindle\Worker\MapOutcome;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerStartException;

/**
 * Tests objects whose class exists only on one side: no other object is created in their place.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait KnowsClasses
{
    use ReadsErrorLog;

    /** Name of the case => code of the value, and the suffix of the missing class's name. */
    private const STRANGERS = [
        'an object' => ['new %s()', ''],
        'an object in an array' => ["[1, ['x' => new %s()]]", ''],
        'an object in an object' => ['(object) ["x" => new %s()]', ''],
        'an enum' => ['%sCase::One', 'Case'],
        'an enum in an array' => ['[true, %sCase::One]', 'Case'],
        'an enum beside what looks like one' => ["['E:8:\"Nobody:A\";', %sCase::One]", 'Case'],
        'a collection of objects' => ['new ArrayObject([new %s()])', ''],
    ];

    public function testAnArgumentOfAClassThatWorkersDoNotKnowIsAFailureThatNamesIt(): void
    {
        $class = $this->classHere();
        $pool = $this->pool();
        foreach (self::STRANGERS as $name => [$code, $suffix]) {
            $input = [$name => self::evaluated($code, $class)];
            $results = new Collected($pool->map(
                $input,
                static fn(mixed $argument): string => get_debug_type($argument),
            ));

            self::assertInstanceOf(TaskFailedException::class, $results->thrown, $name);
            self::assertSame($name, $results->thrown->key);
            self::assertNamesWhatAWorkerLacks("{$class}{$suffix}", $results->thrown, $name);
            self::assertUsable($pool);
        }
    }

    public function testATaskOfAClassThatWorkersDoNotKnowIsAFailureThatNamesIt(): void
    {
        $class = $this->classHere();
        $object = self::evaluated('new %s()', $class);
        $callable = [$object, 'answer'];
        \assert(\is_callable($object) && \is_callable($callable));
        $scoped = self::evaluated('%s::task()', $class);
        \assert($scoped instanceof \Closure);
        $tasks = [
            'an invokable object' => $object,
            'a method' => $callable,
            'a captured variable' => static fn(): string => get_debug_type($object),
            'a part of a captured variable' => static function () use ($callable): string {
                return get_debug_type($callable[0]);
            },
            'the class of a closure' => $scoped,
        ];
        $pool = $this->pool();
        foreach ($tasks as $name => $task) {
            $failure = self::failure(TaskFailedException::class, $pool->submit($task));
            self::assertNamesWhatAWorkerLacks($class, $failure, $name);
            self::assertStringStartsWith('The task did not run: ', $failure->getMessage(), $name);
            self::assertNull($failure->getPrevious(), $name);
        }

        self::assertUsable($pool);
    }

    public function testATaskOfAClassThatWorkersDoNotKnowEndsALoopOverOutcomes(): void
    {
        $class = $this->classHere();
        $object = self::evaluated('new %s()', $class);
        $scoped = self::evaluated('%s::task()', $class);
        \assert($scoped instanceof \Closure);
        $pool = $this->pool();
        $tasks = [
            'the class of a closure' => $scoped,
            'a captured variable' => static fn(int $i): string => get_debug_type($object),
        ];
        foreach ($tasks as $name => $task) {
            foreach ([$pool->mapOutcomes(...), $pool->mapOutcomesUnordered(...)] as $map) {
                $results = new Collected($map(range(1, 5000), $task));

                self::assertCount(0, $results->values, $name);
                self::assertInstanceOf(TaskFailedException::class, $results->thrown, $name);
                self::assertNamesWhatAWorkerLacks($class, $results->thrown, $name);
            }
        }

        self::assertUsable($pool);
    }

    public function testAnArgumentOfAClassThatWorkersDoNotKnowIsAnOutcome(): void
    {
        $object = self::evaluated('new %s()', $this->classHere());
        $outcomes = new Collected($this->pool()->mapOutcomes([1, $object, 3], get_debug_type(...)));

        self::assertNull($outcomes->thrown);
        self::assertSame([true, false, true], array_map(
            static fn(mixed $outcome): bool => $outcome instanceof MapOutcome && $outcome->succeeded(),
            $outcomes->values,
        ));
    }

    public function testAnInitialiserOfAClassThatWorkersDoNotKnowIsTheReasonWhyThereAreNone(): void
    {
        $class = $this->classHere();
        $object = self::evaluated('new %s()', $class);
        $pool = $this->pool(1, initialize: static fn(): string => get_debug_type($object));

        self::assertNamesWhatAWorkerLacks(
            $class,
            self::failure(WorkerStartException::class, $pool->submit(Number::answer(...))),
        );
    }

    public function testAResultOfAClassThatThisProcessDoesNotKnowIsAFailureThatNamesIt(): void
    {
        [$class, $bootstrap] = $this->classInWorkers();
        $pool = $this->pool(bootstrap: $bootstrap);
        $task = static fn(string $code): mixed => eval("return {$code};");
        foreach (self::STRANGERS as $name => [$code, $suffix]) {
            $code = str_replace('%s', $class, $code);
            $results = new Collected($pool->map(['a' => '7', $name => $code], $task));

            self::assertSame([7], $results->values);
            self::assertInstanceOf(TaskFailedException::class, $results->thrown, $name);
            self::assertSame($name, $results->thrown->key);
            self::assertNamesWhatIsMissingHere("{$class}{$suffix}", $results->thrown);
            self::assertNamesWhatIsMissingHere(
                "{$class}{$suffix}",
                self::failure(TaskFailedException::class, $pool->submit(static fn(): mixed => $task($code))),
            );
            self::assertUsable($pool);
        }
    }

    public function testAnEnumCaseThatThisProcessDoesNotHaveIsAFailureThatNamesIt(): void
    {
        $enum = 'Both' . bin2hex(random_bytes(6));
        require $this->file('here.php', "<?php enum {$enum} { case One; }");
        $pool = $this->pool(bootstrap: $this->file('there.php', "<?php enum {$enum} { case One; case Two; }"));
        $task = static fn(): mixed => \constant("{$enum}::Two");

        self::assertStringStartsWith(
            "The task sent a value that cannot be read: The pool's process has no enum case {$enum}::Two",
            self::failure(TaskFailedException::class, $pool->submit($task))->getMessage(),
        );
    }

    public function testAReportOfAClassThatThisProcessDoesNotKnowIsDroppedAndLogged(): void
    {
        [$class, $bootstrap] = $this->classInWorkers();
        $reports = [];
        $pool = $this->pool(1, bootstrap: $bootstrap, onReport: static function (mixed $report) use (&$reports): void {
            $reports[] = $report;
        });
        $task = static function () use ($class): int {
            TaskContext::current()->report(1);
            TaskContext::current()->report(new $class());
            TaskContext::current()->report(2);

            return 5;
        };
        $log = $this->errorLogOf(static fn() => self::assertSame(5, $pool->submit($task)->await()));

        self::assertSame([1, 2], $reports);
        self::assertStringContainsString("The pool's process has no class {$class}", implode($log));
    }

    public function testAnItemOfAClassThatThisProcessDoesNotKnowIsAFailureThatNamesIt(): void
    {
        [$class, $bootstrap] = $this->classInWorkers();
        $pool = $this->pool(bootstrap: $bootstrap);
        $items = $pool->submit(static function () use ($class): \Generator {
            yield 1;
            yield new $class();
        })->await();
        $results = new Collected($items);

        self::assertSame([1], $results->values);
        self::assertInstanceOf(TaskFailedException::class, $results->thrown);
        self::assertNamesWhatIsMissingHere($class, $results->thrown);
        self::assertUsable($pool);
    }

    public function testAnExceptionThatHoldsWhatThisProcessDoesNotKnowComesAsData(): void
    {
        [$class, $bootstrap] = $this->classInWorkers();
        $task = static function () use ($class): never {
            throw new HeldException('it holds something', new $class());
        };
        $failure = self::failure(TaskFailedException::class, $this->pool(bootstrap: $bootstrap)->submit($task));

        self::assertSame(HeldException::class, $failure->thrown->class);
        self::assertSame('it holds something', $failure->thrown->message);
        self::assertNull($failure->getPrevious());
    }

    public function testWhatOnlyTheMainScriptDeclaresIsReportedWithWhatToDo(): void
    {
        $name = 'OnlyInTheMainScript' . bin2hex(random_bytes(4));
        eval("function {$name}(): int { return 1; } final class {$name} {} const {$name} = 1;");
        $pool = $this->pool(1);
        /** @var callable-string $function */
        $function = unserialize(serialize($name));
        foreach ([
            static fn(): mixed => $function(),
            static fn(): object => new $name(),
            static fn(): mixed => \constant($name),
        ] as $task) {
            self::assertStringEndsWith(
                ". Let Composer autoload {$name}, or load it in the file of WorkerPoolOptions(bootstrap:)",
                self::failure(TaskFailedException::class, $pool->submit($task))->getMessage(),
            );
        }
        /** @var callable-string $missing */
        $missing = unserialize(serialize('NowhereAtAll'));
        $task = static fn(): mixed => $missing();
        $message = self::failure(TaskFailedException::class, $pool->submit($task))->getMessage();
        self::assertStringNotContainsString('bootstrap', $message);
    }

    public function testAnAnonymousExceptionHasNoGeneratedNameInTheMessage(): void
    {
        $task = static fn() => throw new class ('no') extends \RuntimeException {};
        $message = self::failure(TaskFailedException::class, $this->pool(1)->submit($task))->getMessage();

        self::assertSame(
            'The task threw RuntimeException@anonymous: no in ' . __FILE__ . ':' . (__LINE__ - 4),
            $message,
        );
    }

    public function testOtherCallsOfUnserializeAreNotAffected(): void
    {
        $seen = static fn(): string
            => \ini_get('unserialize_callback_func') . get_debug_type(unserialize('O:10:"NobodyEver":0:{}'));
        $unknown = self::evaluated('new %s()', $this->classHere());
        $pool = $this->pool(1);
        $arguments = [1, new Number(1), [Suit::Hearts, new Number(1)]];
        $results = iterator_to_array($pool->map($arguments, static fn(mixed $argument): string => $seen()));
        self::failure(TaskFailedException::class, $pool->submit(static fn(): string => get_debug_type($unknown)));

        self::assertSame(array_fill(0, 3, '__PHP_Incomplete_Class'), $results);
        self::assertSame('__PHP_Incomplete_Class', $pool->submit($seen)->await());
        self::assertSame('__PHP_Incomplete_Class', $seen());
    }

    /** @return string class that exists only in this process, with an enum */
    private function classHere(): string
    {
        $class = 'Here' . bin2hex(random_bytes(6));
        $file = $this->file('here.php', self::source($class));
        LoadedFiles::record();
        require $file;

        return $class;
    }

    /** @return array{string, string} class that exists only in workers, and its file */
    private function classInWorkers(): array
    {
        $class = 'There' . bin2hex(random_bytes(6));

        return [$class, $this->file('there.php', self::source($class))];
    }

    private static function source(string $class): string
    {
        return <<<PHP
            <?php
            final class {$class} {
                public int \$number = 1;
                public function __invoke(): int { return \$this->number; }
                public function answer(): int { return \$this->number; }
                public static function task(): Closure {
                    return static fn(): int => 1;
                }
            }
            enum {$class}Case { case One; }
            PHP;
    }

    private static function evaluated(string $code, string $class): mixed
    {
        return eval('return ' . str_replace('%s', $class, $code) . ';');
    }

    private static function assertNamesWhatAWorkerLacks(string $class, \Throwable $failure, string $of = ''): void
    {
        self::assertStringContainsString(
            "A worker has no class {$class}. A worker does not run the main script. Let Composer autoload it, or load "
                . 'it in the file of WorkerPoolOptions(bootstrap:)',
            $failure->getMessage(),
            $of,
        );
        self::assertStringNotContainsString('agent', $failure->getMessage(), $of);
    }

    private static function assertNamesWhatIsMissingHere(string $class, \Throwable $failure): void
    {
        self::assertStringContainsString(
            "The pool's process has no class {$class}, but a worker has sent an object of it",
            $failure->getMessage(),
        );
    }
}
