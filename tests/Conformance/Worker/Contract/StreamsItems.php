<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use Revolt\EventLoop;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Tests\Eventually;
use Spindle\Worker\MapOutcome;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;

use function Amp\delay;

/**
 * Tests tasks that are generators.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait StreamsItems
{
    public function testAGeneratorArrivesWithItsKeysItemsAndReturnValue(): void
    {
        $items = self::items($this->executor(), static function (): \Generator {
            yield 'a' => 1;
            yield 'a' => [Suit::Hearts];
            yield 1.5 => new Number(3);
            yield [7] => null;
            yield 'x';

            return 'the end';
        });
        $collected = new Collected($items);

        self::assertNull($collected->thrown);
        self::assertSame(['a', 'a', 1.5, [7], 0], $collected->keys);
        self::assertEquals([1, [Suit::Hearts], new Number(3), null, 'x'], $collected->values);
        self::assertSame('the end', $items->getReturn());
    }

    public function testAValueThatIsSentToAResultIsRefused(): void
    {
        $items = self::items($this->executor(), static fn(): \Generator => yield from [1, 2, 3]);
        self::assertSame(1, $items->current());

        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('A value was sent to the result of a generator task');
        $items->send('a value');
    }

    public function testAGeneratorMayHaveNoItems(): void
    {
        $items = self::items($this->executor(), static function (): \Generator {
            yield from [];

            return [1, 2];
        });

        self::assertSame([], (new Collected($items))->values);
        self::assertSame([1, 2], $items->getReturn());
    }

    public function testAMethodMayBeAGenerator(): void
    {
        $number = new Number(4);
        $items = self::items($this->executor(), static function () use ($number): \Generator {
            for ($i = 0; $i < 3; ++$i) {
                yield $number->increment();
            }
        });

        self::assertSame([5, 6, 7], iterator_to_array($items));
    }

    public function testAnExceptionComesAfterTheItemsBeforeIt(): void
    {
        $executor = $this->executor();
        $items = new Collected(self::items($executor, static function (): \Generator {
            yield 1;
            yield 2;
            throw new \DomainException('torn');
        }));

        self::assertSame([1, 2], $items->values);
        self::assertInstanceOf(TaskFailedException::class, $items->thrown);
        self::assertSame('torn', $items->thrown->thrown->message);
        self::assertInstanceOf(\DomainException::class, $items->thrown->getPrevious());
        self::assertUsable($executor);
    }

    public function testAnUnserializableItemEndsTheGenerator(): void
    {
        $executor = $this->executor();
        $items = new Collected(self::items($executor, static function (): \Generator {
            yield 1;
            yield ['x' => Number::holding(abs(...))];
            yield 3;
        }));

        self::assertSame([1], $items->values);
        self::assertInstanceOf(UnserializableException::class, $items->thrown);
        self::assertStringStartsWith('The item', $items->thrown->path);
        self::assertStringEndsWith("['x']->held", $items->thrown->path);
        self::assertUsable($executor);
    }

    public function testAnUnserializableReturnValueComesAfterTheItems(): void
    {
        $executor = $this->executor();
        $items = new Collected(self::items($executor, static function (): \Generator {
            yield 1;

            return Number::holding(abs(...));
        }));

        self::assertSame([1], $items->values);
        self::assertInstanceOf(UnserializableException::class, $items->thrown);
        self::assertSame('The result->held', $items->thrown->path);
        self::assertUsable($executor);
    }

    public function testTenThousandItemsComeInTheirOrder(): void
    {
        $items = new Collected(self::items($this->executor(), static fn(): \Generator => yield from range(0, 9999)));

        self::assertNull($items->thrown);
        self::assertSame(range(0, 9999), $items->keys);
        self::assertSame(range(0, 9999), $items->values);
    }

    public function testLargeItemsComeWhole(): void
    {
        $items = self::items($this->executor(), static function (): \Generator {
            for ($i = 0; $i < 8; ++$i) {
                yield str_repeat(\chr($i), 1 << 20);
            }
        });
        foreach ($items as $i => $item) {
            self::assertSame([1 << 20, \chr($i)], [\strlen($item), $item[0] ?? '']);
        }
    }

    public function testItemsAreNotProducedFarAhead(): void
    {
        $made = $this->path('made');
        $executor = $this->executor();
        $items = self::items($executor, static function () use ($made): \Generator {
            for ($i = 1; $i <= 1000; ++$i) {
                // a constant length, so that a concurrent read gets no mixture
                file_put_contents($made, \sprintf('%4d', $i));
                yield $i;
            }
        });
        $count = static fn(): int => (int) file_get_contents($made);
        foreach ($items as $item) {
            if ($item % 100 === 1) {
                // The task has enough time to produce the next item.
                Eventually::holds(static fn(): bool => $count() >= min(1000, $item + 1), 'another item is made');
                for ($i = 0; $i < 20; ++$i) {
                    self::assertUsable($executor);
                }
            }
            self::assertLessThanOrEqual($item + $this->itemsAhead() + 1, $count());
        }

        self::assertSame(1000, $count());
    }

    public function testAReleasedGeneratorEndsNoLaterTask(): void
    {
        $executor = $this->executor();
        $task = static function (int $i): \Generator {
            yield 0;
            $end = hrtime(true) + ($i === 0 ? 5_000_000 : 0);
            do {
                $now = hrtime(true);
            } while ($now < $end);
            yield from [1, 2, 3];
        };
        for ($round = 0; $round < 20; ++$round) {
            $left = $executor->submit(static function () use ($task): \Generator {
                yield from $task(0);
            });
            $others = [];
            for ($i = 0; $i < 10; ++$i) {
                $others[] = $executor->submit(static function () use ($task): \Generator {
                    yield from $task(1);
                });
            }
            $items = $left->await();
            $items->current();
            unset($items, $left);
            foreach ($others as $other) {
                self::assertCount(4, iterator_to_array($other->await(), false));
            }
        }
    }

    public function testAGeneratorThatIsLeftEnds(): void
    {
        $executor = $this->executor();
        foreach ([1, 100] as $taken) {
            $gate = $this->gate("gate-{$taken}");
            $items = self::items($executor, self::endless($gate));
            foreach ($items as $item) {
                if ($item === $taken) {
                    break;
                }
            }
            self::assertSame(['begun'], $gate->names());
            unset($items);
            $gate->awaitTasks(2);
        }
        self::assertUsable($executor);
    }

    public function testAGeneratorWithoutAReaderEnds(): void
    {
        $gate = $this->gate();
        $executor = $this->executor();
        $items = self::items($executor, self::endless($gate));
        $gate->awaitTasks(1);
        unset($items);
        $gate->awaitTasks(2);

        self::assertUsable($executor);
    }

    public function testAGeneratorIsCancelledWhileItIsRead(): void
    {
        $executor = $this->executor();
        $cancellation = new DeferredCancellation();
        $items = $executor->submit(static function (): \Generator {
            for ($i = 0;; ++$i) {
                yield $i;
            }
        }, $cancellation->getCancellation())->await();
        self::assertSame(0, $items->current());
        $items->next();
        $cancellation->cancel();

        self::assertInstanceOf(CancelledException::class, (new Collected(self::rest($items)))->thrown);
        self::assertUsable($executor);
    }

    public function testAGeneratorThatALoopDropsDelaysNothing(): void
    {
        $first = [];
        $executor = $this->executor();
        foreach ($executor->map(range(0, 7), static function (int $i): \Generator {
            while (true) {
                yield $i++;
            }
        }) as $key => $items) {
            $first[$key] = $items->current();
            unset($items);
        }

        self::assertSame(range(0, 7), $first);
        self::assertUsable($executor);
    }

    /**
     * The second result arrives only when the task of the first one has ended.
     *
     * @param 'map'|'mapUnordered'|'mapOutcomes'|'mapOutcomesUnordered' $method
     */
    #[DataProvider('mapMethods')]
    public function testAGeneratorThatALoopDropsEndsBeforeTheNextResult(string $method): void
    {
        $gate = $this->gate();
        $task = static function (int $i) use ($gate): \Generator {
            for ($end = hrtime(true) + 5e9; $i === 1 && $gate->names() === [] && hrtime(true) < $end;) {
                delay(0.001);
            }

            return (static function (bool $isOtherEnded) use ($gate, $i): \Generator {
                try {
                    while (true) {
                        yield $isOtherEnded;
                        delay(0);
                    }
                } finally {
                    $gate->say("ended {$i}");
                }
            })($gate->names() !== []);
        };
        $executor = $this->executor();
        $results = match ($method) {
            'map' => $executor->map([0, 1], $task),
            'mapUnordered' => $executor->mapUnordered([0, 1], $task),
            'mapOutcomes' => $executor->mapOutcomes([0, 1], $task),
            'mapOutcomesUnordered' => $executor->mapOutcomesUnordered([0, 1], $task),
        };
        $first = [];
        foreach ($results as $key => $result) {
            $items = $result instanceof MapOutcome ? $result->value() : $result;
            $first[$key] = $items->current();
            unset($items, $result);
        }

        self::assertSame([false, true], $first);
    }

    /** @return iterable<array{'map'|'mapUnordered'|'mapOutcomes'|'mapOutcomesUnordered'}> */
    public static function mapMethods(): iterable
    {
        yield ['map'];
        yield ['mapUnordered'];
        yield ['mapOutcomes'];
        yield ['mapOutcomesUnordered'];
    }

    public function testAGeneratorEndsWhenItsFutureIsReleased(): void
    {
        $gate = $this->gate();
        $executor = $this->executor();
        $executor->submit(self::endless($gate));
        EventLoop::run(); // runs while there is work

        self::assertContains($gate->names(), [[], ['begun', 'ended']]);
        self::assertUsable($executor);
    }

    public function testGeneratorsAreReadAlternately(): void
    {
        $executor = $this->executor();
        $task = static function (): \Generator {
            yield from range(0, 299);
        };
        $one = self::items($executor, $task);
        $other = self::items($executor, $task);
        $sum = 0;
        for (; $one->valid() && $other->valid(); $one->next(), $other->next()) {
            self::assertSame($one->current(), $other->current());
            ++$sum;
        }

        self::assertSame(300, $sum);
    }

    public function testAGeneratorIsReadInAnotherFiber(): void
    {
        $items = self::items($this->executor(), static fn(): \Generator => yield from range(0, 199));

        self::assertSame(range(0, 199), Async::run(static fn(): array => iterator_to_array($items))->await());
    }

    public function testTasksOfALoopMayBeGenerators(): void
    {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $task = static function (int $count): \Generator {
                for ($i = 0; $i < $count; ++$i) {
                    yield "{$i} of {$count}";
                }

                return $count;
            };
            $all = [];
            foreach (self::loop($executor, $verb, ['a' => 1, 'b' => 0, 'c' => 3], $task) as $key => $items) {
                $all[$key] = iterator_to_array($items);
                self::assertSame(\count($all[$key]), $items->getReturn());
            }
            ksort($all);

            self::assertSame(['a' => ['0 of 1'], 'b' => [], 'c' => ['0 of 3', '1 of 3', '2 of 3']], $all);
        }
    }

    public function testAGeneratorOfALoopThatFailsNamesItsKey(): void
    {
        $executor = $this->executor();
        $task = static function (int $count): \Generator {
            yield $count;
            throw new \DomainException('torn');
        };
        foreach ($executor->map(['a' => 1], $task) as $items) {
            $collected = new Collected($items);

            self::assertSame([1], $collected->values);
            self::assertInstanceOf(TaskFailedException::class, $collected->thrown);
            self::assertSame('a', $collected->thrown->key);
        }
        self::assertUsable($executor);
    }

    public function testAnUnserializableItemOfALoopNamesItsInput(): void
    {
        $executor = $this->executor();
        foreach ($executor->map(
            ['a' => 1],
            static fn(int $i): \Generator => yield $i => Number::holding(abs(...)),
        ) as $items) {
            $collected = new Collected($items);

            self::assertInstanceOf(UnserializableException::class, $collected->thrown);
            self::assertSame('The item for "a"[1]->held', $collected->thrown->path);
        }
        self::assertUsable($executor);
    }

    public function testAGeneratorOutlivesItsLoop(): void
    {
        $executor = $this->executor();
        $kept = [];
        foreach ($executor->map([3, 4], static fn(int $count): \Generator => yield from range(1, $count)) as $items) {
            $kept[] = $items;
        }

        self::assertSame(
            [[1, 2, 3], [1, 2, 3, 4]],
            array_map(static fn(\Generator $items): array => iterator_to_array($items), $kept),
        );
    }

    public function testATaskThatWasCancelledBeforeItsFirstItemHasNone(): void
    {
        $gate = $this->gate();
        $cancellation = new DeferredCancellation();
        $cancellation->cancel();
        $executor = $this->executor();
        $future = $executor->submit(self::endless($gate), $cancellation->getCancellation());
        self::failure(CancelledException::class, $future);
        self::assertUsable($executor);

        self::assertSame([], $gate->names());
    }

    /**
     * @param Gate $gate gate at which the task reports its beginning and its end
     *
     * @return \Closure(): \Generator<int, int>
     */
    protected static function endless(Gate $gate): \Closure
    {
        return static function () use ($gate): \Generator {
            $gate->say('begun');
            try {
                for ($i = 1; true; ++$i) {
                    yield $i;
                    delay(0);
                }
            } finally {
                $gate->say('ended');
            }
        };
    }

    /**
     * Yields the items that were not read.
     *
     * @param \Generator<mixed, mixed> $items
     *
     * @return \Generator<mixed, mixed>
     */
    private static function rest(\Generator $items): \Generator
    {
        for (; $items->valid(); $items->next()) {
            yield $items->key() => $items->current();
        }
    }
}
