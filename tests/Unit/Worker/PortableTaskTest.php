<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use Amp\NullCancellation;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\CatchesThrown;
use Spindle\Worker\InlineExecutor;
use Spindle\Worker\Internal\TaskOutcome;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\PortableOutcome;
use Spindle\Worker\PortableTask;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;

/** Tests a portable task in the worker that runs it, and its outcome where that is read. */
final class PortableTaskTest extends TestCase
{
    use CatchesThrown;

    /** @var list<mixed> values that reached the pool */
    private array $reports = [];

    private ?TaskContext $outer = null;

    #[Before]
    protected function beInAWorker(): void
    {
        $this->outer = new TaskContext(
            1,
            static fn(): NullCancellation => new NullCancellation(),
            function (mixed $report): void {
                $this->reports[] = $report;
            },
        );
        TaskContext::enter($this->outer);
    }

    #[After]
    protected function leaveTheWorker(): void
    {
        TaskContext::enter(null);
    }

    public function testATaskReadsItsOwnAttemptAndKeyAndLeavesTheContextAsItWas(): void
    {
        $look = static fn(): string => TaskContext::current()->attempt . ' ' . TaskContext::current()->idempotencyKey;
        self::assertSame('3 a', self::outcomeOf(self::task($look, 3, 'a')));
        self::assertSame('1 b', self::outcomeOf(self::task($look, 1, 'b')), 'the next one of a batch');
        self::task(static fn() => throw new \DomainException(), 1, 'c')();
        self::assertSame($this->outer, TaskContext::current());
    }

    public function testATaskOfAnInlineExecutorHasItsOwnContextToo(): void
    {
        TaskContext::enter(null);
        $executor = new InlineExecutor();
        $look = static fn(): string => TaskContext::current()->attempt . ' ' . TaskContext::current()->idempotencyKey;
        $outcome = $executor->submit(self::task($look, 3, 'a'))->await();
        self::assertIsString($outcome);
        self::assertSame('3 a', PortableOutcome::read($outcome, 1, null));
        self::assertFalse(TaskContext::exists());

        $items = $executor->submit(self::task(static function () use ($look): \Generator {
            yield $look();
        }, 2, 'b'))->await();
        self::assertInstanceOf(\Generator::class, $items);
        foreach ($items as $item) {
            self::assertSame([0, '2 b'], PortableOutcome::item($item, 2, null));
        }
        self::assertFalse(TaskContext::exists());
    }

    public function testAGeneratorHasItsContextUntilItEnds(): void
    {
        $items = self::task(static function (): \Generator {
            yield TaskContext::current()->attempt;
            yield TaskContext::current()->attempt;

            return 'end';
        }, 4, 'a')();
        self::assertInstanceOf(\Generator::class, $items);
        $seen = [];
        foreach ($items as $item) {
            $seen[] = PortableOutcome::item($item, 1, null);
        }

        self::assertSame([[0, 4], [1, 4]], $seen);
        self::assertSame('end', PortableOutcome::read($items->getReturn(), 1, null));
        self::assertSame($this->outer, TaskContext::current());
    }

    public function testEachTaskOfAMapCallHasItsOwnObjectsAndStaticVariables(): void
    {
        $counter = new CallableCounter();
        $captures = static fn(): int => $counter->count();
        $counts = static function (): int {
            /** @var int $count */
            static $count = 0;

            return ++$count;
        };
        foreach ([$captures, $counts, $counter->count(...)] as $task) {
            $code = PortableTask::encode($task);
            $argument = PortableTask::encodeArgument(5, null);
            for ($i = 0; $i < 2; ++$i) {
                self::assertSame(1, self::outcomeOf(new PortableTask($code, $argument, 1, null)));
            }
        }
    }

    public function testReportsCarryTheKeyOfTheTask(): void
    {
        $tell = static function (): void {
            TaskContext::current()->report(['half']);
        };
        self::task($tell, 1, 'a')();
        self::task($tell, 1, 'b')();

        self::assertSame([['a', serialize(['half'])], ['b', serialize(['half'])]], $this->reports);
        self::assertSame(['half'], PortableOutcome::report(serialize(['half'])));
    }

    public function testATaskThatIsAnnouncedSaysThatItStarts(): void
    {
        (new PortableTask(PortableTask::encode(static fn(): int => 1), null, 1, 'a', true))();

        self::assertSame([['a']], $this->reports);
    }

    public function testATaskThatIsAnnouncedSaysThatItEndsWithALargeOutcome(): void
    {
        (new PortableTask(PortableTask::encode(static fn(): string => str_repeat('x', 1 << 16)), null, 1, 'a', true))();

        self::assertSame([['a'], ['a', null]], $this->reports);
    }

    public function testATaskThatIsAnnouncedSaysWhichOfItsItemsAreLarge(): void
    {
        $task = static function (): \Generator {
            yield 'small';
            yield str_repeat('x', 1 << 16);
            yield str_repeat('y', 1 << 16);

            return str_repeat('z', 1 << 16);
        };
        $items = (new PortableTask(PortableTask::encode($task), null, 1, 'a', true))();
        self::assertInstanceOf(\Generator::class, $items);
        $seen = [];
        foreach ($items as $_) {
            $seen[] = \count($this->reports);
        }

        self::assertSame([1, 2, 3], $seen);
        self::assertSame([['a'], ['a', 1], ['a', 2], ['a', null]], $this->reports);
    }

    public function testAnExceptionIsAnOutcome(): void
    {
        $outcome = self::task(static fn() => throw new \DomainException('bad', 7), 1, 'a')();
        self::assertIsString($outcome);
        self::assertFalse(PortableOutcome::isSuccess($outcome));
        self::assertTrue(PortableOutcome::thrown($outcome)?->isA(\LogicException::class));
        $failed = self::thrown(TaskFailedException::class, static fn() => PortableOutcome::read($outcome, 2, 'key'));
        self::assertSame([2, 'key', 7], [$failed->attempts, $failed->key, $failed->thrown->code]);
        self::assertInstanceOf(\DomainException::class, $failed->getPrevious());
    }

    /** @param int $bytes length of the exception's message */
    #[TestWith([0, 1, true])]
    #[TestWith([10_000, 1, true])]
    #[TestWith([70_000, 1, false])]
    #[TestWith([70_000, 1 << 20, true])]
    #[TestWith([2 << 20, 1 << 20, false])]
    public function testALargeExceptionIsShortenedButKeepsItsClassAndPlace(int $bytes, int $limit, bool $isWhole): void
    {
        $throw = static function () use ($bytes): never {
            $cause = new \LogicException('first ' . str_repeat('c', $bytes));

            throw new \DomainException('disk ' . str_repeat('ä', intdiv($bytes, 2)), 7, $cause);
        };
        $line = __LINE__ - 2;
        foreach ([$throw, static fn(): \Generator => yield $throw()] as $task) {
            $outcome = (new PortableTask(PortableTask::encode($task), null, 1, 'a', maxResultBytes: $limit))();
            if ($outcome instanceof \Generator) {
                $outcome->rewind();
                $outcome = $outcome->getReturn();
            }
            $thrown = PortableOutcome::thrown($outcome);
            self::assertNotNull($thrown);
            self::assertLessThanOrEqual(max($limit, PortableTask::MIN_EXCEPTION_BYTES) + 1, \strlen($outcome));
            self::assertSame(
                [\DomainException::class, 7, __FILE__, $line],
                [$thrown->class, $thrown->code, $thrown->file, $thrown->line],
            );
            self::assertTrue($thrown->isA(\LogicException::class));
            self::assertSame($isWhole ? 5 + 2 * intdiv($bytes, 2) : 8191 + 3, \strlen($thrown->message));
            self::assertStringStartsWith('disk', $thrown->message);
            self::assertStringStartsWith('first', $thrown->previous->message ?? '');
            self::assertNotSame([], $thrown->trace);
        }
    }

    public function testALongChainWithDeepTracesIsShortened(): void
    {
        $recurse = static function (int $depth) use (&$recurse): never {
            $depth > 0 ? $recurse($depth - 1) : throw self::chain(90);
        };
        $task = static fn() => $recurse(2000);
        $outcome = (new PortableTask(PortableTask::encode($task), null, 1, 'a', maxResultBytes: 1))();
        self::assertIsString($outcome);

        self::assertLessThanOrEqual(PortableTask::MIN_EXCEPTION_BYTES, \strlen($outcome));
        self::assertStringStartsWith('90 ', PortableOutcome::thrown($outcome)->message ?? '');
        self::assertStringStartsWith('85 ', array_reduce(
            range(1, 5),
            static fn(?Thrown $thrown): ?Thrown => $thrown?->previous,
            PortableOutcome::thrown($outcome),
        )->message ?? '');
    }

    private static function chain(int $length): \Exception
    {
        $message = "{$length} " . str_repeat('m', 100_000);

        return new \Exception($message, 0, $length > 0 ? self::chain($length - 1) : null);
    }

    public function testARefusalIsNotReplacedByASmallLimitOfResults(): void
    {
        $code = PortableTask::encode([self::class, 'closure'](...));
        $outcome = (new PortableTask($code, null, 1, 'a', maxResultBytes: 1))();
        self::assertIsString($outcome);

        self::assertStringStartsWith("The result['x'] is a closure", (string) PortableOutcome::refusal($outcome));
    }

    public function testAnUnserializableResultIsRefused(): void
    {
        $outcome = self::task([self::class, 'closure'](...), 1, 'a')();
        self::assertIsString($outcome);
        self::assertNull(PortableOutcome::thrown($outcome));

        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessage("The result['x'] is a closure");
        PortableOutcome::read($outcome, 1, null);
    }

    public function testTheRefusalOfAResultHasTheSameAdviceAsThatOfAnArgument(): void
    {
        $outcome = PortableOutcome::returned(new \SplMinHeap());
        $failure = TaskOutcome::failure(\ord($outcome[0]), substr($outcome, 1), 1, 'key');

        self::assertStringStartsWith('The result for "key" is of class SplMinHeap', $failure->getMessage());
        self::assertStringEndsWith(': send its contents as an array', $failure->getMessage());
    }

    public function testARefusalFromAnOlderVersionHasNoAdvice(): void
    {
        $refusal = serialize(['The result', 'a closure']);
        $failure = TaskOutcome::failure(WorkerProtocol::UNSERIALIZABLE, $refusal, 1, null);

        self::assertSame(
            "The result is a closure, which can't be sent to another process",
            $failure->getMessage(),
        );
    }

    public function testAWorkerDeathIsReportedWithItsCause(): void
    {
        $died = WorkerCrashedException::died(null, 9, null, false, 'last words', 5 << 20, 1, null);
        $told = self::thrown(
            WorkerCrashedException::class,
            static fn() => PortableOutcome::read(PortableOutcome::failed($died, null), 3, 'key'),
        );
        self::assertSame(
            [null, 9, false, 'last words', 5 << 20, 3, 'key'],
            [
                $told->exitCode,
                $told->signal,
                $told->calledExit,
                $told->stderr,
                $told->memoryPeak,
                $told->attempts,
                $told->key,
            ],
        );
        self::assertStringEndsWith("; the worker's standard error ended with: last words", $told->getMessage());
        $this->expectException(TaskTimeoutException::class);
        $this->expectExceptionMessage('more than 2.5 seconds');
        PortableOutcome::read(PortableOutcome::failed(TaskTimeoutException::after(2.5, 1, null), 2.5), 1, null);
    }

    /** @return array<string, \Closure> */
    public static function closure(): array
    {
        return ['x' => static fn(): int => 1];
    }

    private static function task(\Closure $task, int $attempt, string $key): PortableTask
    {
        return new PortableTask(PortableTask::encode($task), null, $attempt, $key);
    }

    private static function outcomeOf(PortableTask $task): mixed
    {
        $outcome = $task();
        self::assertIsString($outcome);

        return PortableOutcome::read($outcome, 1, null);
    }
}
