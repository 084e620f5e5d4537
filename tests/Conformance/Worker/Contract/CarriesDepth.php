<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Deep;
use Spindle\Tests\Conformance\Worker\Task\SelectiveObject;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;

use function Amp\async;

/**
 * Tests deeply nested values: they arrive complete, or are refused.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait CarriesDepth
{
    /** Needs a larger stack than that of a fiber, which is enough for about 1,300 levels in serialize(). */
    public function testADeeplyNestedValueThatIsSerializedInAFiberArrives(): void
    {
        $executor = $this->executor();
        foreach ([
            'arrays' => Deep::arrays(...),
            'objects' => Deep::objects(...),
            'hidden' => Deep::hiddenObjects(...),
        ] as $kind => $make) {
            $value = $make(4000);
            $results = new Collected($executor->map([1400, 4000], $make));

            self::assertNull($results->thrown, $kind);
            self::assertSame([1400, 4000], array_map(Deep::levels(...), $results->values), $kind);
            self::assertSame([4000], iterator_to_array($executor->map([$value], Deep::levels(...))), $kind);
            self::assertSame(
                4000,
                async(static fn(): mixed => $executor->submit([new Deep($value), 'count'])->await())->await(),
                $kind,
            );
            $items = self::items($executor, static function () use ($make): \Generator {
                yield $make(4000);
            });
            self::assertSame([4000], array_map(Deep::levels(...), iterator_to_array($items, false)), $kind);
        }
        self::assertUsable($executor);
    }

    public function testAClosureMayHaveSomethingDeepInAFiber(): void
    {
        $executor = $this->executor();
        foreach ([Deep::arrays(...), Deep::objects(...)] as $make) {
            $deep = $make(4000);
            $task = static fn(): int => Deep::levels($deep);
            self::assertSame(4000, async(static fn(): mixed => $executor->submit($task)->await())->await());
            $deep = $make(4200);
            $task = static fn(): int => Deep::levels($deep);
            $refused = self::failure(UnserializableException::class, async(static fn() => $executor->submit($task)));

            self::assertSame('nested deeper than 4096 levels', $refused->what);
        }
        self::assertUsable($executor);
    }

    public function testAResultThatIsNestedTooDeeplyIsRefused(): void
    {
        $executor = $this->executor();
        $arrays = self::failure(
            UnserializableException::class,
            $executor->submit(static fn(): array => ['x' => Deep::arrays(5000)]),
        );
        $objects = self::failure(
            UnserializableException::class,
            $executor->submit(static fn(): object => Deep::objects(5000)),
        );

        self::assertStringStartsWith("The result['x'][0][0]", $arrays->path);
        self::assertStringStartsWith('The result->next->next', $objects->path);
        self::assertSame('nested deeper than 4096 levels', $objects->what);
        self::assertLessThan(2000, \strlen($objects->getMessage()));
        self::assertUsable($executor);
    }

    public function testAnArgumentThatIsNestedTooDeeplyIsRefused(): void
    {
        $executor = $this->executor();
        $results = new Collected($executor->map(['a' => [], 'b' => Deep::arrays(5000)], Deep::levels(...)));

        self::assertSame([1], $results->values);
        self::assertInstanceOf(UnserializableException::class, $results->thrown);
        self::assertStringStartsWith('The argument for "b"[0][0]', $results->thrown->path);
        self::assertUsable($executor);
    }

    public function testATaskWithSomethingThatIsNestedTooDeeplyIsRefused(): void
    {
        $executor = $this->executor();
        $deep = Deep::arrays(5000);
        $task = static fn(): int => Deep::levels($deep);
        $refused = self::thrown(UnserializableException::class, static fn() => $executor->submit($task));

        self::assertStringStartsWith("The task's captured variable \$deep[0][0]", $refused->path);
        self::assertUsable($executor);
    }

    /** serialize() crashes the process at 20,000 levels of such objects. */
    public function testObjectsWithMethodsForSerializationAreRefusedWhenNestedTooDeeply(): void
    {
        $executor = $this->executor();
        $chain = static function (int $levels): SelectiveObject {
            $object = new SelectiveObject();
            while (--$levels > 0) {
                $object = new SelectiveObject($object);
            }

            return $object;
        };
        foreach ([$chain, Deep::hiddenObjects(...)] as $make) {
            $value = $make(10_000);
            $results = new Collected($executor->map([$value], get_debug_type(...)));
            $task = static fn(): string => get_debug_type($value);
            foreach ([
                $results->thrown,
                self::thrown(UnserializableException::class, static fn() => $executor->submit($task)),
                self::failure(UnserializableException::class, async(static fn() => $executor->submit($task))),
                self::failure(UnserializableException::class, $executor->submit(static fn(): object => $make(10_000))),
            ] as $refused) {
                self::assertInstanceOf(UnserializableException::class, $refused);
                self::assertSame('nested deeper than 4096 levels', $refused->what);
            }
        }
        self::assertUsable($executor);
    }

    public function testAnItemThatIsNestedTooDeeplyIsRefused(): void
    {
        $executor = $this->executor();
        $items = new Collected(self::items($executor, static function (): \Generator {
            yield 1;
            yield Deep::arrays(5000);
        }));

        self::assertSame([1], $items->values);
        self::assertInstanceOf(UnserializableException::class, $items->thrown);
        self::assertStringStartsWith('The item', $items->thrown->path);
        self::assertUsable($executor);
    }

    public function testAReportThatIsNestedTooDeeplyIsRefused(): void
    {
        $executor = $this->executor();
        $failed = self::failure(TaskFailedException::class, $executor->submit(static function (): void {
            TaskContext::current()->report(Deep::arrays(5000));
        }));

        self::assertSame(UnserializableException::class, $failed->thrown->class);
        self::assertUsable($executor);
    }

    public function testAnExceptionWithVeryManyPreviousOnesArrives(): void
    {
        $executor = $this->executor();
        $failed = self::failure(TaskFailedException::class, $executor->submit(static function (): never {
            $exception = new \DomainException('the first');
            for ($i = 0; $i < 5000; ++$i) {
                $exception = new \RuntimeException('the last', 0, $exception);
            }
            throw $exception;
        }));

        self::assertSame('the last', $failed->thrown->message);
        self::assertSame('the last', $failed->thrown->previous?->message);
        self::assertUsable($executor);
    }
}
