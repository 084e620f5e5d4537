<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use PHPUnit\Framework\Attributes\DataProvider;
use Revolt\EventLoop;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\FailingTasks;
use Spindle\Tests\Conformance\Worker\Task\FieldException;
use Spindle\Tests\Conformance\Worker\Task\HoldingException;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;

use function Amp\delay;

/**
 * Tests what the caller learns about an exception of a task.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait ReportsFailures
{
    public function testAFailureHasAllOfItsExceptionAsData(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit(static fn() => FailingTasks::withSecret('hush')),
        );
        $thrown = $failed->thrown;

        self::assertSame(\DomainException::class, $thrown->class);
        self::assertSame('no such user', $thrown->message);
        self::assertSame(7, $thrown->code);
        self::assertStringEndsWith('/FailingTasks.php', $thrown->file);
        self::assertGreaterThan(10, $thrown->line);
        self::assertTrue($thrown->isA(\LogicException::class));
        self::assertFalse($thrown->isA(\RuntimeException::class));
        self::assertSame(
            [\LengthException::class, 'too long', 8],
            [$thrown->previous?->class, $thrown->previous?->message, $thrown->previous?->code],
        );
        self::assertSame(
            [HoldingException::class, 'deep', 9],
            [
                $thrown->previous?->previous?->class,
                $thrown->previous?->previous?->message,
                $thrown->previous?->previous?->code,
            ],
        );
        self::assertNull($thrown->previous?->previous?->previous);
        self::assertSame(1, $failed->attempts);
        self::assertNull($failed->key);
    }

    public function testTheDepthLimitOfTheProcessDoesNotMatter(): void
    {
        $executor = $this->executor();
        $before = (string) ini_set('unserialize_max_depth', '1');
        try {
            $failed = self::failure(
                TaskFailedException::class,
                $executor->submit(static fn() => FailingTasks::withSecret('hush')),
            );
            $results = iterator_to_array($executor->map([1, '2', null], static fn(mixed $value): mixed => $value));
            $refused = self::failure(
                UnserializableException::class,
                $executor->submit(static fn(): array => [[[abs(...)]]]),
            );
        } finally {
            ini_set('unserialize_max_depth', $before);
        }

        self::assertSame('deep', $failed->thrown->previous?->previous?->message);
        self::assertSame([1, '2', null], $results);
        self::assertSame('The result[0][0][0]', $refused->path);
    }

    public function testTheMessageSaysWhatWasThrownAndWhere(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit(static fn() => FailingTasks::withSecret('hush')),
        );

        self::assertStringContainsString('The task threw DomainException: no such user in ', $failed->getMessage());
        self::assertStringContainsString("/FailingTasks.php:{$failed->thrown->line}", $failed->getMessage());
    }

    public function testTheTraceHasCallsAndNoArguments(): void
    {
        $secret = 'hush hush';
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit(static fn() => FailingTasks::withSecret($secret)),
        );

        self::assertSame('withSecret', $failed->thrown->trace[0]['function'] ?? null);
        self::assertSame(FailingTasks::class, $failed->thrown->trace[0]['class'] ?? null);
        self::assertStringContainsString('FailingTasks::withSecret()', $failed->thrown->traceAsString());
        self::assertStringNotContainsString('hush hush', serialize($failed->thrown));
    }

    public function testTheOriginalIsPrevious(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit(static fn(): int => FailingTasks::at(3, 3)),
        );

        self::assertInstanceOf(\DomainException::class, $failed->getPrevious());
        self::assertSame('bad 3', $failed->getPrevious()->getMessage());
        self::assertStringEndsWith('/FailingTasks.php', $failed->getPrevious()->getFile());
        self::assertSame($failed->thrown->line, $failed->getPrevious()->getLine());
    }

    public function testAnUnserializableExceptionComesAsData(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit([FailingTasks::class, 'withObjectThatStays']),
        );

        self::assertNull($failed->getPrevious());
        self::assertSame(
            [HoldingException::class, 'held', 5],
            [$failed->thrown->class, $failed->thrown->message, $failed->thrown->code],
        );
        self::assertSame('inner', $failed->thrown->previous?->message);
    }

    public function testAnExceptionOfAnAnonymousClassComesAsData(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit(static fn() => throw new class ('odd') extends \LogicException {}),
        );

        self::assertSame('odd', $failed->thrown->message);
        self::assertTrue($failed->thrown->isA(\LogicException::class));
    }

    public function testAnExceptionWithAConstructorOfItsOwnComesWhole(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit([FailingTasks::class, 'withField']),
        );
        $original = $failed->getPrevious();

        self::assertInstanceOf(FieldException::class, $original);
        self::assertSame(['name', 'name must not be Spades'], [$original->field, $original->getMessage()]);
    }

    public function testACodeMayBeAString(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit([FailingTasks::class, 'withField']),
        );

        self::assertSame(['HY000', 'HY000'], [$failed->thrown->code, $failed->getPrevious()?->getCode()]);
    }

    public function testEachPreviousExceptionKeepsItsCode(): void
    {
        $failed = self::failure(
            TaskFailedException::class,
            $this->executor()->submit(
                static fn() => throw new \LogicException('outer', 3, new FieldException('name', Suit::Spades)),
            ),
        );
        $original = $failed->getPrevious();

        self::assertSame([3, 'HY000'], [$original?->getCode(), $original?->getPrevious()?->getCode()]);
    }

    /** @return iterable<string, array{callable(): mixed, class-string<\Error>}> */
    public static function errors(): iterable
    {
        yield 'a wrong type' => [[FailingTasks::class, 'withWrongType'], \TypeError::class];
        yield 'an undefined function' => [[FailingTasks::class, 'withUndefinedFunction'], \Error::class];
        yield 'code that is none' => [[FailingTasks::class, 'withBadCode'], \ParseError::class];
        yield 'a division by zero' => [static fn(): int => intdiv(1, 0), \DivisionByZeroError::class];
    }

    /**
     * @param callable(): mixed    $task
     * @param class-string<\Error> $class
     */
    #[DataProvider('errors')]
    public function testAnErrorIsAFailureLikeAnother(callable $task, string $class): void
    {
        $executor = $this->executor();
        $failed = self::failure(TaskFailedException::class, $executor->submit($task));

        self::assertSame($class, $failed->thrown->class);
        self::assertInstanceOf($class, $failed->getPrevious());
        self::assertUsable($executor);
    }

    public function testAFailureFailsOnlyItsOwnTask(): void
    {
        $executor = $this->executor();
        $futures = [];
        for ($i = 0; $i < 200; ++$i) {
            $futures[] = $executor->submit(static fn(): int => FailingTasks::at($i % 3, 1));
        }
        foreach ($futures as $i => $future) {
            if ($i % 3 === 1) {
                self::failure(TaskFailedException::class, $future);
            } else {
                self::assertSame($i % 3, $future->await());
            }
        }
    }

    public function testAFailureEndsALoopAfterTheResultsBeforeIt(): void
    {
        $executor = $this->executor();
        $input = ['a' => 0, 'b' => 1, 'c' => 2, 'd' => 3];
        $results = new Collected($executor->map($input, static fn(int $i): int => FailingTasks::at($i, 2)));

        self::assertSame(['a', 'b'], $results->keys);
        self::assertInstanceOf(TaskFailedException::class, $results->thrown);
        self::assertSame('c', $results->thrown->key);
        self::assertStringContainsString(
            'The task for "c" threw DomainException: bad 2',
            $results->thrown->getMessage(),
        );
        self::assertUsable($executor);
    }

    public function testOfSeveralFailuresMapThrowsTheFirstInTheOrderOfTheInput(): void
    {
        $task = static function (int $i): int {
            delay($i === 3 ? 0.02 : 0.0);

            return $i < 3 ? $i : throw new \DomainException("bad {$i}");
        };
        $results = new Collected($this->executor()->map(range(0, 20), $task));

        self::assertSame([0, 1, 2], $results->values);
        self::assertInstanceOf(TaskFailedException::class, $results->thrown);
        self::assertSame(3, $results->thrown->key);
    }

    public function testAFailureEndsAnUnorderedLoopAndNamesItsKey(): void
    {
        $executor = $this->executor();
        $results = new Collected($executor->mapUnordered(
            ['a' => 0, 'b' => 1, 'c' => 2],
            static fn(int $i): int => FailingTasks::at($i, 1),
        ));

        self::assertInstanceOf(TaskFailedException::class, $results->thrown);
        self::assertSame('b', $results->thrown->key);
        self::assertNotContains('b', $results->keys);
        self::assertUsable($executor);
    }

    public function testAFailurePreventsTheStartOfOtherTasks(): void
    {
        $gate = $this->gate();
        $task = static fn(int $i): string => $i === 1 ? throw new \DomainException('bad') : $gate->say((string) $i);
        $pulled = 0;
        $input = static function () use (&$pulled): \Generator {
            while (true) {
                yield ++$pulled;
            }
        };
        $executor = $this->executor();
        $results = new Collected($executor->map($input(), $task));
        self::assertInstanceOf(TaskFailedException::class, $results->thrown);
        $pulledThen = $pulled;
        $this->awaitWhatRuns($executor, 'first');
        $started = $gate->names();
        $this->awaitWhatRuns($executor, 'second');

        self::assertSame($pulledThen, $pulled);
        self::assertSame($started, $gate->names());
    }

    public function testAKeyThatIsAnObjectIsThatObject(): void
    {
        $key = new \stdClass();
        $input = static function () use ($key): \Generator {
            yield $key => 1;
        };
        $results = new Collected($this->executor()->map($input(), static fn(int $i): int => FailingTasks::at($i, 1)));

        self::assertInstanceOf(TaskFailedException::class, $results->thrown);
        self::assertSame($key, $results->thrown->key);
    }

    public function testAFailureThatIsNotAwaitedReachesTheErrorHandlerOfTheLoop(): void
    {
        $heard = [];
        $before = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler(static function (\Throwable $thrown) use (&$heard): void {
            $heard[] = $thrown->getPrevious();
        });
        try {
            $executor = $this->executor();
            $executor->submit(static fn(): int => FailingTasks::at(1, 1));
            EventLoop::run();
            gc_collect_cycles();
            self::assertUsable($executor); // runs the loop again
        } finally {
            EventLoop::setErrorHandler($before);
        }

        self::assertCount(1, $heard);
        self::assertInstanceOf(TaskFailedException::class, $heard[0]);
    }

    public function testTasksWithoutReferencedFuturesRun(): void
    {
        $gate = $this->gate();
        $executor = $this->executor();
        for ($i = 0; $i < 5; ++$i) {
            $executor->submit(static fn(): string => $gate->say("task {$i}"));
        }
        EventLoop::run();

        self::assertCount(5, $gate->names());
    }

    public function testAMissingTaskIsAFailureThatNamesIt(): void
    {
        $name = 'made_here_' . bin2hex(random_bytes(4));
        eval("function {$name}(): int { return 1; }");
        \assert(\is_callable($name));
        $outcome = new Collected((function () use ($name): \Generator {
            yield $this->executor()->submit($name)->await();
        })());

        if ($outcome->thrown === null) {
            // the function exists where the task runs in this process, or in a fork of it
            self::assertSame([1], $outcome->values);
        } else {
            self::assertInstanceOf(TaskFailedException::class, $outcome->thrown);
            self::assertStringContainsString("A worker has no function {$name}()", $outcome->thrown->getMessage());
        }
    }

    public function testANumberIsNotLostBehindAFailure(): void
    {
        $executor = $this->executor();
        $failing = $executor->submit(static fn(): int => FailingTasks::at(1, 1));
        $good = $executor->submit(new Number(5));

        self::assertSame(5, $good->await());
        self::failure(TaskFailedException::class, $failing);
    }
}
